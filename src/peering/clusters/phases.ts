import {
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignClusterReason,
  type PeeringPhase,
} from '../../api/foreign-cluster.ts';
import { MAX_MESSAGE_LENGTH, REASON_PATTERN } from '../../api/limits.ts';
import { fingerprintOf } from '../identity/identity.ts';
import type { PeeringReport } from '../ports.ts';
import type { Observed } from './observed.ts';

export interface Cause {
  reason: string;
  message: string;
}

export interface Stated extends Cause {
  phase: PeeringPhase;
}

const REASON = new RegExp(REASON_PATTERN, 'u');

const cause = (reason: ForeignClusterReason, message: string): Cause => ({ reason, message });

/** Where it stands with what we want of it. */
export function outgoingState(seen: Observed): Stated {
  const { wish, outgoing, view } = seen;
  const obstacle = obstacleOf(seen);
  if (obstacle !== undefined) return { phase: 'None', ...obstacle };
  const isAsking = wish?.wanted === true && (outgoing.phase === 'None' || outgoing.phase === 'Pending');
  if (isAsking && view === undefined) return { phase: 'Pending', ...noLinkCause(seen) };
  if (isAsking && outgoing.phase === 'None') {
    return { phase: 'Pending', ...cause(REASONS.waitingForOffer, 'asked for an offer') };
  }
  return outgoing.phase === 'None' ? { phase: 'None', ...notAskedCause(seen) } : stated(outgoing);
}

/** Where it stands with what it wants of us. */
export function incomingState(seen: Observed): Stated {
  const { wish, incoming } = seen;
  const obstacle = obstacleOf(seen);
  if (obstacle !== undefined) return { phase: 'None', ...obstacle };
  if (incoming.phase !== 'None') return stated(incoming);
  return { phase: 'None', ...notLentCause(wish?.incoming, wish?.sharingPolicy?.metadata.name) };
}

/** Why neither direction can come about, whatever anybody wants. */
function obstacleOf({ cluster, clusterID, isOurselves, duplicateOf }: Observed): Cause | undefined {
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

function notAskedCause({ cluster, wish }: Observed): Cause {
  if (cluster.metadata.deletionTimestamp !== undefined) {
    return cause(REASONS.ending, 'the ForeignCluster is being deleted');
  }
  if (cluster.spec?.outgoing === 'Disabled') return cause(REASONS.notWanted, 'spec.outgoing is Disabled');
  const hint = 'set spec.outgoing to Enabled to ask it all the same';
  if (wish?.policy === undefined) {
    return cause(REASONS.noPolicy, `no AcceptancePolicy means this cluster; ${hint}`);
  }
  return cause(
    REASONS.notWanted,
    `AcceptancePolicy ${wish.policy.metadata.name} does not ask by itself; ${hint}`,
  );
}

function notLentCause(wish: string | undefined, policy: string | undefined): Cause {
  if (wish === 'Disabled') return cause(REASONS.notWanted, 'it may not use us');
  if (policy === undefined) return cause(REASONS.noPolicy, 'no SharingPolicy means this cluster');
  return cause(REASONS.ok, `it has not asked; SharingPolicy ${policy} would decide`);
}

/** Why there is no link. */
export function noLinkCause({ cluster, problem, isDialled, hasEndpoint, wish }: Observed): Cause {
  if (problem !== undefined)
    return { reason: problem.reason, message: problemMessage(cluster.metadata.name, problem) };
  if (!hasEndpoint) return cause(REASONS.noEndpoint, 'no endpoint is known, and it has not come by itself');
  if (!isDialled && wish?.wanted !== true) {
    return cause(REASONS.notWanted, 'not dialled: no policy and no wish would make use of it');
  }
  return cluster.status?.link?.since === undefined
    ? cause(REASONS.settingUp, 'being dialled')
    : cause(REASONS.linkLost, 'the link was lost; being dialled again');
}

/** With what a person can do about it, where that is known. */
function problemMessage(
  name: string,
  { reason, message, answeredBy }: NonNullable<Observed['problem']>,
): string {
  if (reason !== REASONS.identityUnconfirmed || answeredBy === undefined) return message;
  return (
    `the cluster that answers has the ClusterID ${answeredBy} (${fingerprintOf(answeredBy)}); compare it with what ` +
    `its owner tells you, then trust it: kubectl patch foreigncluster ${name} --type merge ` +
    `-p '{"spec":{"clusterID":"${answeredBy}"}}'`
  );
}

/** A report in the form of the status. What a peer has said in it may be of any length. */
function stated({ phase, reason, message = '' }: PeeringReport): Stated {
  const isWord = reason !== undefined && REASON.test(reason);
  return {
    phase,
    reason: isWord ? reason : REASONS.ok,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
  };
}
