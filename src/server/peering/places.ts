import { Crowd } from '../crowd.ts';

export interface PlaceLimits {
  /** Connections in all. */
  total: number;
  /** Of one caller. */
  perCaller: number;
  /** Of all unknown callers together: anybody can make any number of identities. */
  strangers: number;
}

export const DEFAULT_PLACES: Readonly<PlaceLimits> = { total: 2_048, perCaller: 256, strangers: 128 };

/** A connection whose caller has proved an identity. */
interface Candidate {
  clusterID: string;
  /** Whether we deal with that cluster. */
  isKnown: boolean;
  /** Where it came from. */
  address: string;
  /** Ends the connection, for another stranger. */
  end: () => void;
}

type Leave = () => void;

/**
 * Counts connections, so that nobody can take all of them. Known callers have what is theirs. Of strangers one goes for one
 * that comes: whoever makes identities at one address crowds out only themselves.
 */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #byCaller = new Map<string, number>();
  readonly #strangers: Crowd;
  #total = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
    this.#strangers = new Crowd(limits.strangers);
  }

  get open(): number {
    return this.#total;
  }

  /** Undefined when there is no place. Leaving twice is harmless. */
  admit({ clusterID, isKnown, address, end }: Candidate): Leave | undefined {
    const { total, perCaller } = this.#limits;
    const ofCaller = this.#byCaller.get(clusterID) ?? 0;
    if (this.#total >= total || ofCaller >= perCaller) return undefined;
    this.#total += 1;
    this.#byCaller.set(clusterID, ofCaller + 1);
    const leaveStrangers = isKnown ? undefined : this.#strangers.enter(address, end);
    return once(() => {
      this.#total -= 1;
      leaveStrangers?.();
      decrease(this.#byCaller, clusterID);
    });
  }
}

function once(leave: Leave): Leave {
  let left = false;
  return () => {
    if (!left) leave();
    left = true;
  };
}

function decrease(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
