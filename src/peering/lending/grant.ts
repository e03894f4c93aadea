import { isConditionTrue } from '../../api/conditions.ts';
import { PEERING_REQUEST_CONDITIONS, type PeeringRequest } from '../../api/peering-request.ts';
import { FOREIGN_CLUSTER_REASONS, PEERING_PHASES } from '../../api/foreign-cluster.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { present } from '../../lib/fields.ts';
import { verifySignature } from '../identity/identity.ts';
import type { PeerIdentity, PeeringReport } from '../ports.ts';
import type { ApiAccess, GrantDocument, OfferDocument } from '../protocol/documents.ts';

/** Longest message to a peer, in characters; the protocol allows 1024. */
const MAX_MESSAGE = 1000;

/** What we answer to a peer that asks, from what is stored about it. */
export function grantOf(request: PeeringRequest, api: ApiAccess | undefined): GrantDocument {
  const { status = {}, metadata } = request;
  const { phase, reason = FOREIGN_CLUSTER_REASONS.waitingForDecision, message, contract } = status;
  const { policy, withheld, ends } = status;
  const why = {
    reason,
    ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE) }),
  };
  if (metadata.deletionTimestamp !== undefined)
    return { state: 'Ended', ...(phase === 'Ending' ? why : REVOKED) };
  if (phase === 'Denied') return { state: 'Denied', ...why };
  // Denied, but what was made for it is not gone yet.
  if (phase === 'Ending') return { state: 'Ended', ...why };
  const without = withheld === undefined ? {} : { withheld };
  if (phase !== 'Established' || contract?.providerSignature === undefined)
    return { state: 'Pending', ...why, ...without };
  if (api === undefined) {
    const message = 'the address of our API server is not known yet';
    return { state: 'Pending', reason: FOREIGN_CLUSTER_REASONS.settingUp, message, ...without };
  }
  const { text, providerSignature: signature } = contract;
  return {
    state: 'Active',
    ...why,
    ...without,
    ...present({ policy, ends }),
    contract: { text, signature },
    api,
  };
}

const isActive = ({ status, metadata }: PeeringRequest): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase === 'Established';

/**
 * Whether a peer gets what comes with a contract. It does also while a revised contract is being set up, which happens
 * for each namespace that comes or goes. `tenantNamespaces` are there since the first contract that was in force.
 */
export const isInForce = (request: PeeringRequest): boolean => {
  const { phase, tenantNamespaces } = request.status ?? {};
  const isRevised = phase === 'Accepted' && tenantNamespaces !== undefined;
  return isActive(request) || (isRevised && request.metadata.deletionTimestamp === undefined);
};

/** Whether a peer may open streams and have credentials: not while a fence or a suspension closes what it has. */
export const isServed = (request: PeeringRequest): boolean => {
  const { reason, conditions } = request.status ?? {};
  const { fenced, suspended } = FOREIGN_CLUSTER_REASONS;
  if (reason === fenced || reason === suspended) return false;
  // While it is wound down, that is the reason.
  return isInForce(request) && !isConditionTrue(conditions, PEERING_REQUEST_CONDITIONS.suspended);
};

/** Returns only an offer that still bears our signature: one that somebody has edited is not sent. */
export function offerDocumentOf(request: PeeringRequest, own: PeerIdentity): OfferDocument | undefined {
  const { offer, offerSignature: signature } = request.status ?? {};
  if (request.metadata.deletionTimestamp !== undefined) return undefined;
  if (offer === undefined || signature === undefined) return undefined;
  if (!verifySignature(own.publicKey, 'offer', canonicalText(offer), signature)) return undefined;
  return { offer, signature };
}

/** Said until the cause is written into the status. */
const REVOKED = { reason: FOREIGN_CLUSTER_REASONS.revoked, message: 'the PeeringRequest is being deleted' };

/** For the ForeignCluster's `incoming`. */
export function reportOf(request: PeeringRequest | undefined): PeeringReport {
  if (request === undefined) return { phase: 'None' };
  const { phase: written, reason, message } = request.status ?? {};
  const phase = request.metadata.deletionTimestamp === undefined ? written : 'Ending';
  return {
    phase: PEERING_PHASES.find((known) => known === phase) ?? 'Pending',
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  };
}
