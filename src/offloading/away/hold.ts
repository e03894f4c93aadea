/** Until when new pods of a namespace stay on real nodes, since a cluster is away whose pods come home. Pure. */
import type { HeldOff, NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { timestamp } from '../../api/conditions.ts';
import { ALL_OWNERS, heldUntil, withHeldOff } from '../held-off.ts';
import { moveAfterMs } from './decide.ts';

/** Before pods move, so that no replacement is let in by a webhook that does not know of it yet. Milliseconds. */
export const HOLD_BEFORE_MS = 5_000;
const HOLD_OFF_SECONDS = 600;
/** It is renewed while the cluster is away, so one that is to end with the absence is still this long. */
const LEAST_HOLD_MS = 60_000;

export interface Hold {
  /** To be written to `status.heldOff`; undefined: it is as it should be. */
  heldOff?: HeldOff[];
  /** It begins with this write; otherwise it is made longer. */
  isNew?: boolean;
  /** When it is to be looked at again, in milliseconds. */
  afterMs: number;
}

/**
 * Undefined: the namespace does not bring its pods home.
 *
 * @param awayMs since when the virtual node is not Ready
 */
export function decideHold(
  offloading: NamespaceOffloading,
  { virtualNode, awayMs, nowMs }: { virtualNode: string; awayMs: number; nowMs: number },
): Hold | undefined {
  const { whenAway, holdOffSeconds = HOLD_OFF_SECONDS } = offloading.spec;
  const dueMs = moveAfterMs(offloading);
  if (dueMs === undefined || whenAway?.to !== 'Home') return undefined;
  if (awayMs < dueMs - HOLD_BEFORE_MS) return { afterMs: dueMs - HOLD_BEFORE_MS - awayMs };
  const holdMs = Math.max(LEAST_HOLD_MS, holdOffSeconds * 1000);
  const heldOff = offloading.status?.heldOff ?? [];
  const untilMs = heldUntil(heldOff, { owner: ALL_OWNERS, virtualNode }, nowMs);
  const leftMs = (untilMs ?? nowMs) - nowMs;
  if (leftMs > holdMs / 2) return { afterMs: leftMs - holdMs / 2 };
  const entry = { owner: ALL_OWNERS, virtualNode, until: timestamp(nowMs + holdMs) };
  const isNew = untilMs === undefined;
  return { heldOff: withHeldOff(heldOff, entry, nowMs), ...(isNew && { isNew }), afterMs: holdMs / 2 };
}
