/** Ending a namespace's pods on virtual nodes that it no longer uses: which pods, and how far that is. */
import type { OnRemoval } from '../api/namespace-offloading.ts';
import { ANNOTATION_STRATEGY } from '../api/names.ts';
import { isControlled, isFinished, isOfDaemonSet } from '../api/pod.ts';
import { hasBody } from '../api/sent-abroad.ts';
import type { Pod } from '../api/wire.ts';
import type { Clock } from '../lib/clock.ts';

/** Names of Nodes from which a namespace is drained. */
export interface DrainedNodes {
  /** Of VirtualNodes that peering keeps: every pod there has to go. */
  peers: ReadonlySet<string>;
  /** Of VirtualNodes that keep their mapping (made by hand, or also named by a policy): only pods that the webhook admitted go. */
  byHand: ReadonlySet<string>;
  /** Those of `peers` whose agent begins no pod of the namespace any more. */
  closed?: ReadonlySet<string>;
}

export interface DrainContext {
  nodes: DrainedNodes;
  onRemoval: OnRemoval;
  /**
   * When the drain began, milliseconds since the epoch. A pod that was created later without the webhook was sent there by its
   * own template, and so is its successor: deleting such pods would never end. Once nothing is begun there, only one of them that
   * began before has to go.
   */
  since: number;
  /** The NamespaceOffloading itself is deleted: admitted pods that have no node yet go, too. */
  isRemoved: boolean;
}

/** Stay: not ours to end. Delete: its controller makes another. Remake: nobody would make another, so we do. */
type DrainAction = 'Stay' | 'Delete' | 'Remake';

/** What is done with a pod when its namespace is drained from those nodes. Pure. */
export function drainAction(pod: Pod, context: DrainContext): DrainAction {
  if (!isConcerned(pod, context)) return 'Stay';
  // Its controller would put another one on the very same node.
  if (isOfDaemonSet(pod)) return 'Stay';
  return isMadeAnew(pod) && context.onRemoval !== 'End' ? 'Remake' : 'Delete';
}

/** Whether nobody else would make another one, though one is wanted. */
export const isMadeAnew = (pod: Pod): boolean => !isControlled(pod) && !isFinished(pod);

function isConcerned(pod: Pod, { nodes, since, isRemoved }: DrainContext): boolean {
  const { metadata, spec } = pod;
  const isAdmitted = metadata.annotations?.[ANNOTATION_STRATEGY] !== undefined;
  const nodeName = spec?.nodeName ?? '';
  // It may be bound to virtual nodes only, and would wait forever.
  if (nodeName === '') return isAdmitted && isRemoved;
  if (isAdmitted) return nodes.peers.has(nodeName) || nodes.byHand.has(nodeName);
  if (!nodes.peers.has(nodeName)) return false;
  const isLate = nodes.closed?.has(nodeName) === true && hasBody(pod);
  return isLate || Date.parse(metadata.creationTimestamp) <= since;
}

/** What is drained: a whole cluster, or one of its virtual nodes. Used as a key; neither name contains a slash. */
export const placeOf = (cluster: string, virtualNode?: string): string =>
  virtualNode === undefined ? cluster : `${cluster}/${virtualNode}`;

export function partsOf(place: string): { cluster: string; virtualNode?: string } {
  const [cluster = '', virtualNode] = place.split('/');
  return { cluster, ...(virtualNode !== undefined && { virtualNode }) };
}

/** How often ending pods and disappearing mappings are looked at, besides the changes that watches report. */
export const LOOK_MS = 2000;
const MAX_LOOK_MS = 60_000;

/**
 * When to look again at a drain that has lasted so long, milliseconds: each look lists the pods of the namespace, and a
 * provider that does not answer may never end its pods.
 */
export const nextLookMs = (drainedForMs: number): number =>
  Math.min(MAX_LOOK_MS, Math.max(LOOK_MS, drainedForMs / 20));

interface Drain {
  /** When it was first seen, milliseconds since the epoch. */
  since: number;
  /** When its pods had gone, monotonic milliseconds. */
  emptied?: number;
}

/**
 * Places that NamespaceOffloadings are drained from, and which of them have no pods left, so that the mapping may go, too.
 * Kept in memory only: after a restart the pods are looked for once more.
 */
export class Drains {
  readonly #clock: Clock;
  /** By UID and place. */
  readonly #drains = new Map<string, Map<string, Drain>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Exactly these places are drained now; a place that is selected again is forgotten. */
  set(uid: string, places: readonly string[]): void {
    const before = this.#drains.get(uid);
    if (places.length === 0) {
      this.#drains.delete(uid);
      return;
    }
    const since = this.#clock.now();
    this.#drains.set(uid, new Map(places.map((place) => [place, before?.get(place) ?? { since }])));
  }

  /** When the latest of these drains began, milliseconds since the epoch. */
  latestSince(uid: string, places: readonly string[]): number {
    const drains = this.#drains.get(uid);
    return Math.max(...places.map((place) => drains?.get(place)?.since ?? 0));
  }

  /** The pods of the place have gone. Returns whether that is new. */
  setEmpty(uid: string, place: string): boolean {
    const drain = this.#drains.get(uid)?.get(place);
    if (drain === undefined || drain.emptied !== undefined) return false;
    drain.emptied = this.#clock.monotonic();
    return true;
  }

  isEmpty(uid: string, place: string): boolean {
    return this.emptyForMs(uid, place) !== undefined;
  }

  emptyForMs(uid: string, place: string): number | undefined {
    const emptied = this.#drains.get(uid)?.get(place)?.emptied;
    return emptied === undefined ? undefined : this.#clock.monotonic() - emptied;
  }

  /** Forgets all NamespaceOffloadings but these. */
  retain(uids: ReadonlySet<string>): void {
    for (const uid of this.#drains.keys()) if (!uids.has(uid)) this.#drains.delete(uid);
  }
}
