/** How soon the gateway looks again, in milliseconds. Pure. */
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Clock } from '../../lib/clock.ts';
import { onGridMs } from '../../lib/grid.ts';

const OBSERVE_MS = 1000;
/** WireGuard follows a peer that moves by itself; the status does within this time. */
const CALM_OBSERVE_MS = 10_000;
/** While all nodes answer, they are asked in one of so many rounds. */
const CALM_ROUNDS = 10;

export interface CalmFacts {
  /** Between two probes of a peer. */
  probeSeconds: number;
  tunnels: number;
  /** Tunnels whose peer is probed. */
  probed: number;
  /** Every peer has answered its last probe. */
  isAnswered: boolean;
  /** WireGuard has told of its peers. */
  isTold: boolean;
  /** Of the host; undefined: not known yet. */
  problems: number | undefined;
}

/**
 * When WireGuard and the results of the probes are read again: rarely while every tunnel is well, since the first probe that a peer
 * does not answer calls at once. Where probes are rarer than a second, that would be too late to tell what came with the last answer.
 */
export function observeAgainMs(facts: CalmFacts): number {
  const { probeSeconds, tunnels, probed, isAnswered, isTold, problems } = facts;
  const isCalm = isAnswered && isTold && tunnels === probed && problems === 0;
  return isCalm && probeSeconds * 1000 <= OBSERVE_MS ? CALM_OBSERVE_MS : OBSERVE_MS;
}

/** When the other nodes of the cluster are asked again. */
export const knockAgainMs = (probeSeconds: number, allAnswer: boolean): number =>
  probeSeconds * 1000 * (allAnswer ? CALM_ROUNDS : 1);

/** The same, at a multiple of that time: so all that is looked at again and again comes in one wake-up, with the beats of the tunnels. */
export function inStep(result: ReconcileResult | void, clock: Clock): ReconcileResult | void {
  const periodMs = result?.requeueAfterMs;
  if (periodMs === undefined) return result;
  return { requeueAfterMs: onGridMs(clock.now(), periodMs, periodMs) };
}
