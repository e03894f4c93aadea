import type { HeldOff, NamespaceOffloading } from '../api/namespace-offloading.ts';
import { controllerOf } from '../api/pod.ts';
import type { Pod } from '../api/wire.ts';

/** `Kind/name` of the pod's controller, or `Pod/name` where it has none. All pods of a controller have one key. */
export function ownerKey(pod: Pick<Pod, 'metadata'>): string {
  const owner = controllerOf(pod);
  return owner === undefined ? `Pod/${pod.metadata.name}` : `${owner.kind}/${owner.name}`;
}

/** Owner in an entry that keeps all pods of the namespace on real nodes, since that cluster is away. */
export const ALL_OWNERS = '*';

/** Entries in one NamespaceOffloading; beyond that, the entry that ends first is dropped. */
export const MAX_HELD_OFF = 64;

const endOf = ({ until }: HeldOff): number => Date.parse(until);

/** The entries that still hold; an end that cannot be read counts as passed. */
export const inForce = (heldOff: readonly HeldOff[], nowMs: number): HeldOff[] =>
  heldOff.filter((entry) => endOf(entry) > nowMs);

/** Until when the owner is kept off that virtual node, milliseconds since the epoch; undefined: it is not. */
export function heldUntil(
  heldOff: readonly HeldOff[],
  { owner, virtualNode }: Omit<HeldOff, 'until'>,
  nowMs: number,
): number | undefined {
  const ends = inForce(heldOff, nowMs)
    .filter((entry) => entry.owner === owner && entry.virtualNode === virtualNode)
    .map(endOf);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** The list with that entry, without what has passed, each pair of owner and virtual node once, and bounded. */
export function withHeldOff(heldOff: readonly HeldOff[], added: HeldOff, nowMs: number): HeldOff[] {
  const others = inForce(heldOff, nowMs).filter(
    ({ owner, virtualNode }) => owner !== added.owner || virtualNode !== added.virtualNode,
  );
  const kept = others.toSorted((a, b) => endOf(a) - endOf(b)).slice(-(MAX_HELD_OFF - 1));
  return [...kept, added];
}

/** Whether new pods of the namespace stay on real nodes: a cluster is, or was, away, and `whenAway` brings its pods home. */
export const isKeptHome = ({ spec, status }: NamespaceOffloading, nowMs: number): boolean =>
  spec.whenAway?.pods === 'Move' &&
  spec.whenAway.to === 'Home' &&
  inForce(status?.heldOff ?? [], nowMs).some(({ owner }) => owner === ALL_OWNERS);
