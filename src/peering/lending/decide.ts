import {
  FOREIGN_CLUSTER_REASONS,
  type ForeignClusterReason,
  type PeeringWish,
} from '../../api/foreign-cluster.ts';
import { DISCOVERY_SOURCES, type PeerSelector } from '../../api/peer-selector.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { TokenCheckResult } from '../identity/join-tokens.ts';
import { matches, networkKeyName, type PeerFacts, sharingPolicyFor } from '../policy/match.ts';

const REASONS = FOREIGN_CLUSTER_REASONS;

export type Decision =
  | { state: 'Approved'; policy: SharingPolicy; token?: string; message: string }
  | { state: 'Pending' | 'Denied'; reason: ForeignClusterReason; message: string };

export interface DecisionInput {
  /** ForeignCluster.spec.incoming; Auto if there is no ForeignCluster. */
  incoming: PeeringWish;
  /** PeeringRequest.spec.approval. */
  approval?: PeeringRequest['spec']['approval'];
  policy?: SharingPolicy | undefined;
  /** The peer was let in before and has not been refused since. */
  admitted: boolean;
  /** The peer wants to be tethered to us. */
  tether?: boolean;
  /** The other cluster that we are tethered to, or about to be, as people call it. */
  tetheredTo?: string | undefined;
  /** The result of checking the join token that the peer has shown, now or when it was let in. */
  token?: TokenCheckResult | undefined;
}

/**
 * Decides whether a peer may use this cluster. The first row that applies counts:
 *
 * | what is the case | decision |
 * | --- | --- |
 * | ForeignCluster: incoming Disabled | Denied |
 * | PeeringRequest: approval Denied | Denied |
 * | we are tethered to another cluster | Denied: that one decides about all that we have |
 * | no SharingPolicy selects the peer | Denied: nobody has said what to lend to it, whatever else people have allowed |
 * | the peer wants to be tethered, and the policy does not allow that | Denied |
 * | approval Approved, or incoming Enabled | Approved: a person has decided |
 * | the peer was let in before | Approved: `approval` of a policy decides who comes in, not who stays |
 * | policy Automatic | Approved |
 * | a valid join token, whether the policy asks for a token or for a person | Approved |
 * | policy Token, without a token | Pending |
 * | policy Token, with an invalid token | Denied: the message says what is wrong with it |
 * | policy Manual | Pending |
 */
export function decide(input: DecisionInput): Decision {
  const { incoming, approval, policy, admitted, tether, tetheredTo, token } = input;
  if (incoming === 'Disabled') {
    return denied(REASONS.deniedHere, 'its ForeignCluster says incoming: Disabled');
  }
  if (approval === 'Denied') {
    return denied(REASONS.deniedHere, 'a person has denied the PeeringRequest');
  }
  if (tetheredTo !== undefined) {
    const message = `this cluster is tethered to ${tetheredTo}, and lends to no other cluster`;
    return denied(REASONS.tethered, message);
  }
  if (policy === undefined) {
    const also = approval === 'Approved' || incoming === 'Enabled' ? ', although a person lets it in' : '';
    return denied(REASONS.noPolicy, `no SharingPolicy selects this cluster, so nothing is lent to it${also}`);
  }
  if (tether === true && policy.spec.tethering !== 'Allow') {
    const message = `SharingPolicy ${policy.metadata.name} does not allow it to be tethered: set spec.tethering to Allow`;
    return denied(REASONS.tetheringForbidden, message);
  }
  const how = howItComesIn({ incoming, approval, policy, admitted, token });
  if (how === undefined) return notYet(policy, token);
  const byToken = token?.result === 'ok' && { token: token.name };
  return { state: 'Approved', policy, message: how, ...byToken };
}

function howItComesIn(input: DecisionInput & { policy: SharingPolicy }): string | undefined {
  const { incoming, approval, policy, admitted, token } = input;
  const amounts = `SharingPolicy ${policy.metadata.name} says how much`;
  if (approval === 'Approved') return `approved by a person; ${amounts}`;
  if (incoming === 'Enabled') return `its ForeignCluster says incoming: Enabled; ${amounts}`;
  if (token?.result === 'ok') return `let in by join token ${token.name}; ${amounts}`;
  if (policy.spec.approval === 'Automatic') {
    return `SharingPolicy ${policy.metadata.name} lets it in by itself`;
  }
  return admitted ? `let in before; ${amounts}` : undefined;
}

function notYet(policy: SharingPolicy, token: TokenCheckResult | undefined): Decision {
  const { name } = policy.metadata;
  const bad = token === undefined || token.result === 'ok' ? undefined : token.result;
  if (policy.spec.approval !== 'Token') {
    const shown = bad === undefined ? '' : `; the join token it has shown was refused (${bad})`;
    const message = `SharingPolicy ${name} leaves it to a person: set spec.approval of this PeeringRequest${shown}`;
    return { state: 'Pending', reason: REASONS.waitingForApproval, message };
  }
  if (bad !== undefined) return denied(bad, TOKEN_MESSAGES[bad]);
  return {
    state: 'Pending',
    reason: REASONS.tokenRequired,
    message: `SharingPolicy ${name} asks for a join token; make one with: tributary token create`,
  };
}

const TOKEN_MESSAGES = {
  TokenInvalid: 'the join token is not one of this cluster',
  TokenExpired: 'the join token has expired; ask for a new one',
  TokenUsed: 'the join token was used by another cluster; ask for a new one',
} as const;

const denied = (reason: ForeignClusterReason, message: string): Decision => ({
  state: 'Denied',
  reason,
  message,
});

/** What still counts of an earlier decision. */
export interface EarlierAdmission {
  /** Name of the SharingPolicy that let the peer in. */
  policy: string | undefined;
  /** The peer has a link, so that we know all facts about it. */
  linked: boolean;
}

/**
 * Returns the policy that decides about a peer. A peer that was let in must not be refused because we do not know a fact
 * about it at the moment: we know its network keys only while it has a link, and how it was found only while we hear its
 * announcement. So the policy that let it in stays, as long as that policy exists and could still select the peer.
 */
export function policyFor(
  policies: readonly SharingPolicy[],
  facts: PeerFacts,
  standing?: EarlierAdmission,
): SharingPolicy | undefined {
  const today = (): SharingPolicy | undefined => sharingPolicyFor(policies, facts);
  if (standing === undefined) return today();
  const own = (): SharingPolicy | undefined =>
    policies.find(
      ({ metadata, spec }) =>
        metadata.name === standing.policy &&
        metadata.deletionTimestamp === undefined &&
        couldStillMean(spec.peers, facts, standing.linked),
    );
  return standing.linked ? (today() ?? own()) : (own() ?? today());
}

function couldStillMean(selector: PeerSelector, facts: PeerFacts, linked: boolean): boolean {
  const { networkKeySecretRef: ref } = selector;
  const networkKeys = linked || ref === undefined ? facts.networkKeys : [networkKeyName(ref)];
  return matches(selector, { ...facts, foundBy: DISCOVERY_SOURCES, networkKeys });
}
