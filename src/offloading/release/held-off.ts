import type { HeldOff } from '../../api/namespace-offloading.ts';

/** Entries in one NamespaceOffloading; beyond it the one that ends first goes. */
export const MAX_HELD_OFF = 64;

const endOf = ({ until }: HeldOff): number => Date.parse(until);

/** What of the list still holds; an end that cannot be read has passed. */
export const inForce = (heldOff: readonly HeldOff[], nowMs: number): HeldOff[] =>
  heldOff.filter((entry) => endOf(entry) > nowMs);

/** When the owner may go to that virtual node again, in milliseconds since the epoch; undefined: now. */
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

/** The list with that entry: without what has passed, each pair of owner and virtual node once, bounded. */
export function withHeldOff(heldOff: readonly HeldOff[], added: HeldOff, nowMs: number): HeldOff[] {
  const others = inForce(heldOff, nowMs).filter(
    ({ owner, virtualNode }) => owner !== added.owner || virtualNode !== added.virtualNode,
  );
  const kept = others.toSorted((a, b) => endOf(a) - endOf(b)).slice(-(MAX_HELD_OFF - 1));
  return [...kept, added];
}
