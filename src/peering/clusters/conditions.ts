import { withCondition, withoutCondition } from '../../api/conditions.ts';
import {
  FOREIGN_CLUSTER_CONDITIONS as TYPES,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignCluster,
  type ForeignClusterReason,
  type PeeringPhase,
  type PeeringState,
} from '../../api/foreign-cluster.ts';
import { MAX_MESSAGE_LENGTH, REASON_PATTERN } from '../../api/limits.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import type { Condition } from '../../api/wire.ts';
import { type Judged, networkOf } from './network.ts';
import { fingerprintOf } from '../identity/identity.ts';
import type { DialProblem, LinkView, PeeringReport } from '../ports.ts';
import type { ClusterIntent } from './intent.ts';

interface Cause {
  reason: string;
  message: string;
}

/** All that is known of one ForeignCluster at one moment. */
export interface ForeignClusterFacts {
  cluster: ForeignCluster;
  /** The cluster that it is about; undefined: nobody has said which identity is wanted. */
  clusterID: string | undefined;
  /** All ForeignClusters about the same cluster, this one among them. */
  siblings: readonly ForeignCluster[];
  /** The name of the one that stands for the cluster instead of this one. */
  duplicateOf: string | undefined;
  /** It is about us. */
  isOurselves: boolean;
  view: LinkView | undefined;
  problem: DialProblem | undefined;
  /** It is dialled; those that are dialled have at least one endpoint. */
  isDialled: boolean;
  hasEndpoint: boolean;
  intent: ClusterIntent | undefined;
  outgoing: PeeringReport;
  incoming: PeeringReport;
  /** The network to it; undefined: no gateway of ours has one. */
  tunnel?: Tunnel | undefined;
  now: number;
  incomingTtlMs: number;
}

export interface Stated extends Cause {
  phase: PeeringPhase;
}

const REASON = new RegExp(REASON_PATTERN, 'u');

const cause = (reason: ForeignClusterReason, message: string): Cause => ({ reason, message });

/** How far what we want of it has come. */
export function outgoingState(seen: ForeignClusterFacts): Stated {
  const { intent, outgoing, view } = seen;
  const obstacle = obstacleOf(seen);
  if (obstacle !== undefined) return { phase: 'None', ...obstacle };
  const isAsking = intent?.wanted === true && (outgoing.phase === 'None' || outgoing.phase === 'Pending');
  if (isAsking && view === undefined) return { phase: 'Pending', ...noLinkCause(seen) };
  if (isAsking && outgoing.phase === 'None') {
    return { phase: 'Pending', ...cause(REASONS.waitingForOffer, 'asked for an offer') };
  }
  return outgoing.phase === 'None' ? { phase: 'None', ...notAskedCause(seen) } : stated(outgoing);
}

/** How far what it wants of us has come. */
export function incomingState(seen: ForeignClusterFacts): Stated {
  const { intent, incoming } = seen;
  const obstacle = obstacleOf(seen);
  if (obstacle !== undefined) return { phase: 'None', ...obstacle };
  if (incoming.phase !== 'None') return stated(incoming);
  return { phase: 'None', ...notLentCause(intent?.incoming, intent?.sharingPolicy?.metadata.name) };
}

/** Why neither direction can come about, whatever anybody wants. */
function obstacleOf({
  cluster,
  clusterID,
  isOurselves,
  duplicateOf,
}: ForeignClusterFacts): Cause | undefined {
  if (clusterID === undefined) {
    return cause(
      REASONS.identityUnconfirmed,
      'spec.clusterID is not set, so that nobody is trusted to be it',
    );
  }
  if (isOurselves) return cause(REASONS.invalid, 'this is the ClusterID of our own cluster');
  if (duplicateOf === undefined) return undefined;
  const message = `ForeignCluster ${duplicateOf} stands for the same cluster, and counts; ${cluster.metadata.name} has no effect`;
  return cause(REASONS.duplicate, message);
}

function notAskedCause({ cluster, intent }: ForeignClusterFacts): Cause {
  if (cluster.metadata.deletionTimestamp !== undefined) {
    return cause(REASONS.ending, 'the ForeignCluster is being deleted');
  }
  if (cluster.spec?.outgoing === 'Disabled') return cause(REASONS.notWanted, 'spec.outgoing is Disabled');
  const hint = 'set spec.outgoing to Enabled to ask it all the same';
  if (intent?.policy === undefined) {
    return cause(REASONS.noPolicy, `no AcceptancePolicy selects this cluster; ${hint}`);
  }
  return cause(
    REASONS.notWanted,
    `AcceptancePolicy ${intent.policy.metadata.name} does not ask by itself; ${hint}`,
  );
}

function notLentCause(intent: string | undefined, policy: string | undefined): Cause {
  if (intent === 'Disabled') return cause(REASONS.notWanted, 'it may not use us');
  if (policy === undefined) return cause(REASONS.noPolicy, 'no SharingPolicy selects this cluster');
  return cause(REASONS.ok, `it has not asked; SharingPolicy ${policy} would decide`);
}

/** Why there is no link. */
function noLinkCause(seen: ForeignClusterFacts): Cause {
  const { cluster, problem, isDialled, hasEndpoint, intent } = seen;
  if (problem !== undefined) return { reason: problem.reason, message: problemMessage(seen, problem) };
  if (!hasEndpoint) return cause(REASONS.noEndpoint, 'no endpoint is known, and it has not come by itself');
  if (!isDialled && intent?.wanted !== true) {
    return cause(REASONS.notWanted, 'not dialled: no policy and no intent would make use of it');
  }
  return cluster.status?.link?.since === undefined
    ? cause(REASONS.settingUp, 'being dialled')
    : cause(REASONS.linkLost, 'the link was lost; being dialled again');
}

/** The message, and what a person can do about it, where that is known. */
function problemMessage(
  { cluster, outgoing, incoming }: ForeignClusterFacts,
  { reason, message, answeredBy }: NonNullable<ForeignClusterFacts['problem']>,
): string {
  const { name } = cluster.metadata;
  if (reason === REASONS.unreachable) {
    const who = cluster.status?.clusterName ?? name;
    const holds = outgoing.credentialExpires;
    const until = holds === undefined ? '' : `, and the credential there holds until ${holds}`;
    const runs = outgoing.phase === 'Established' || incoming.phase === 'Established';
    const so = runs ? ` Pods of both run on${until}.` : '';
    return `nothing answers at the endpoint of ${who}: its role cluster, or that port, is down or not let through.${so} Cause: ${message}`;
  }
  if (reason !== REASONS.identityUnconfirmed || answeredBy === undefined) return message;
  return (
    `the cluster that answers has the ClusterID ${answeredBy} (${fingerprintOf(answeredBy)}); compare it with what ` +
    `its owner tells you, then trust it: kubectl patch foreigncluster ${name} --type merge ` +
    `-p '{"spec":{"clusterID":"${answeredBy}"}}'`
  );
}

/** A report in the form of the status. It may hold words of a peer, of any length. */
function stated({ phase, reason, message = '' }: PeeringReport): Stated {
  const isWord = reason !== undefined && REASON.test(reason);
  return {
    phase,
    reason: isWord ? reason : REASONS.ok,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
  };
}

export function forgeConditions(
  seen: ForeignClusterFacts,
  { outgoing, incoming }: { outgoing: PeeringState; incoming: PeeringState },
): readonly Condition[] {
  const { cluster, now } = seen;
  const { generation: observedGeneration } = cluster.metadata;
  const judged: [type: string, Judged][] = [
    [TYPES.identity, identity(seen)],
    [TYPES.connected, connected(seen)],
    [TYPES.outgoing, established(outgoing)],
    [TYPES.incoming, established(incoming)],
  ];
  const before = cluster.status?.conditions ?? [];
  const network = networkOf(seen);
  if (network !== undefined) judged.push([TYPES.network, network]);
  return judged.reduce<readonly Condition[]>(
    (conditions, [type, wanted]) =>
      withCondition(
        conditions,
        { type, ...wanted, ...(observedGeneration !== undefined && { observedGeneration }) },
        now,
      ),
    network === undefined ? withoutCondition(before, TYPES.network) : before,
  );
}

/** What was proved once stays proved, unless somebody else answers. */
function identity({ cluster, clusterID, view, problem, ...rest }: ForeignClusterFacts): Judged {
  if (view !== undefined) return yes('it has proved its identity by TLS');
  const why = noLinkCause({ cluster, clusterID, view, problem, ...rest });
  if (problem?.reason === REASONS.wrongIdentity || clusterID === undefined)
    return { status: 'False', ...why };
  if (cluster.status?.clusterID === clusterID) return yes('it has proved its identity by TLS');
  return { status: 'Unknown', ...why };
}

function connected(seen: ForeignClusterFacts): Judged {
  const { view } = seen;
  if (view === undefined) return { status: 'False', ...noLinkCause(seen) };
  return yes(view.dialledBy === 'Them' ? 'it has opened the link' : 'we have opened the link');
}

const established = ({ phase, reason = REASONS.ok, message = '' }: PeeringState): Judged =>
  phase === 'Established' ? yes(message) : { status: 'False', reason, message };

const yes = (message: string): Judged => ({ status: 'True', reason: REASONS.ok, message });
