/** A peer that no policy selects any more is not thrown out: its home gets time to move its pods. Pure. */
import { timestamp } from '../../api/conditions.ts';
import { FOREIGN_CLUSTER_REASONS } from '../../api/foreign-cluster.ts';
import { ANNOTATION_END_NOW } from '../../api/names.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import { TETHER_POLICY } from '../mode/sharing-policy.ts';
import type { Decision } from './decide.ts';
import { isInForce } from './grant.ts';

export interface WindDown {
  decision: Decision;
  /** How long a peer keeps what it has; 0: not at all. */
  graceMs: number;
  /** The peer still wants what the contract grants. One whose pods have moved gives it back. */
  isAccepted: boolean;
  nowMs: number;
}

/**
 * Until when a peer keeps its tenant, in milliseconds since 1970; undefined: it is ended now. Only what a policy ends has a grace:
 * who denies a peer by name means it, and a device that ends a tether has terms of its own.
 */
export function windsDownUntil(
  request: PeeringRequest,
  { decision, graceMs, isAccepted, nowMs }: WindDown,
): number | undefined {
  const { metadata, spec, status = {} } = request;
  if (decision.state !== 'Denied' || decision.reason !== FOREIGN_CLUSTER_REASONS.noPolicy) return undefined;
  if (!isAccepted || !isInForce(request)) return undefined;
  if (spec.tether === true || spec.fence !== undefined || status.policy === TETHER_POLICY) return undefined;
  if (metadata.annotations?.[ANNOTATION_END_NOW] === 'true') return undefined;
  const untilMs = status.ends === undefined ? nowMs + graceMs : Date.parse(status.ends);
  // No longer than from now on, whatever clock or person has written it.
  return untilMs > nowMs ? Math.min(untilMs, nowMs + graceMs) : undefined;
}

/** For people here and, as the message of a grant, over there. */
export const windDownMessage = (
  { metadata: { name } }: PeeringRequest,
  { why, untilMs }: { why: string; untilMs: number },
): string =>
  `${why}; its pods end here at ${timestamp(untilMs)}, and its cluster is told to move them before. To keep them: a ` +
  `SharingPolicy that selects it. To end them now: kubectl annotate peeringrequest ${name} ${ANNOTATION_END_NOW}=true`;
