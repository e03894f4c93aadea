import type { Clock } from '../lib/clock.ts';

interface Departure {
  /** When it was first seen, milliseconds since the epoch. */
  since: number;
  /** When its pods had gone, monotonic milliseconds. */
  emptied?: number;
}

/** What is left: a cluster, or only one of its virtual nodes. A key, for neither's name has a slash. */
export const placeOf = (cluster: string, virtualNode?: string): string =>
  virtualNode === undefined ? cluster : `${cluster}/${virtualNode}`;

export function partsOf(place: string): { cluster: string; virtualNode?: string } {
  const [cluster = '', virtualNode] = place.split('/');
  return { cluster, ...(virtualNode !== undefined && { virtualNode }) };
}

/** How often pods that end, and mappings that go, are looked for besides the changes that are told. */
export const LOOK_MS = 2000;
const MAX_LOOK_MS = 60_000;

/**
 * When to look again at what has been left for so long, milliseconds: each look lists the pods of the namespace, and a
 * provider that does not answer may never end its own.
 */
export const lookAfterMs = (leftForMs: number): number =>
  Math.min(MAX_LOOK_MS, Math.max(LOOK_MS, leftForMs / 20));

/**
 * Places that NamespaceOffloadings are leaving, and from which of them the pods have gone, so that the mapping may go,
 * too. Lost with the process: then the pods are looked for once more.
 */
export class Departures {
  readonly #clock: Clock;
  /** By UID and place. */
  readonly #departures = new Map<string, Map<string, Departure>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Exactly these places are being left; one that is selected again is forgotten. */
  begin(uid: string, places: readonly string[]): void {
    const before = this.#departures.get(uid);
    if (places.length === 0) {
      this.#departures.delete(uid);
      return;
    }
    const since = this.#clock.now();
    const next = new Map(places.map((place) => [place, before?.get(place) ?? { since }]));
    this.#departures.set(uid, next);
  }

  /** Since when, milliseconds since the epoch. */
  since(uid: string, place: string): number | undefined {
    return this.#departures.get(uid)?.get(place)?.since;
  }

  /** Its pods have gone. Returns whether that is news. */
  empty(uid: string, place: string): boolean {
    const departure = this.#departures.get(uid)?.get(place);
    if (departure === undefined || departure.emptied !== undefined) return false;
    departure.emptied = this.#clock.monotonic();
    return true;
  }

  isEmpty(uid: string, place: string): boolean {
    return this.emptyForMs(uid, place) !== undefined;
  }

  emptyForMs(uid: string, place: string): number | undefined {
    const emptied = this.#departures.get(uid)?.get(place)?.emptied;
    return emptied === undefined ? undefined : this.#clock.monotonic() - emptied;
  }

  /** Of those that are gone. */
  retain(uids: ReadonlySet<string>): void {
    for (const uid of this.#departures.keys()) if (!uids.has(uid)) this.#departures.delete(uid);
  }
}
