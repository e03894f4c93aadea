import {
  CLUSTER_MODE_CONDITIONS,
  CLUSTER_MODE_REASONS,
  type ClusterMode,
  type ClusterModeReason,
  type ClusterModeStatus,
  type FenceTerms,
  type Mode,
  type ModePhase,
  TETHER_DEFAULTS,
  type TetherSpec,
  type TetherStatus,
} from '../../api/cluster-mode.ts';
import { timestamp, withCondition } from '../../api/conditions.ts';
import { type Direction, FOREIGN_CLUSTER_REASONS } from '../../api/foreign-cluster.ts';
import { present } from '../../lib/fields.ts';
import { isPeered } from '../clusters/foreign-cluster.ts';
import type { PeeringReport } from '../ports.ts';

const REASONS = CLUSTER_MODE_REASONS;

/** The other cluster, as its ForeignCluster and its peerings show it. */
export interface OtherCluster {
  clusterID: string;
  clusterName?: string;
  isLinked: boolean;
  /** Whether we use it. */
  outgoing: PeeringReport;
  /** Whether it uses us. */
  incoming: PeeringReport;
  /** Names of the Nodes here that stand for it. */
  nodes: readonly string[];
  /** It has handed itself over to this cluster. */
  isDevice: boolean;
  /** The directions in which a person has said in its ForeignCluster not to peer. */
  disabled?: readonly Direction[];
  /** Where no tether is asked for: people or policies want this cluster to use it all the same. */
  isUsedApart?: boolean;
  /** A SharingPolicy of people lets it use this cluster, and not that of the tether. */
  isLentApart?: boolean;
}

/** A peering in which this cluster offers. */
export interface Obstacle {
  clusterID: string;
  /** Of its ForeignCluster, for a command; else its ID. */
  name: string;
}

export interface ModeFacts {
  mode: ClusterMode;
  own: string;
  /** The one that the tether names; where none is named, the one of the tether that ends. Undefined: unknown. */
  other: OtherCluster | undefined;
  /** Other clusters that have agreed with this one to use it. */
  obstacles: readonly Obstacle[];
  /** When the other cluster stops what was forwarded to it, by its last word. */
  agreed?: FenceTerms | undefined;
  /** In how many milliseconds it has stopped that for certain, by the terms agreed on last; zero or less: it has. */
  stoppedInMs?: number;
  nowMs: number;
  /** Pods of users are still forwarded, or on their way home. */
  hasForwarded?: boolean;
  /** How long there has been no link to the other one, by a clock that nobody sets. Default: by the wall clock. */
  silentMs?: number;
}

/** What is to be written, and when the answer may be another one without anybody's doing. */
export interface ModeDecision {
  status: ClusterModeStatus;
  againMs?: number;
}

interface Verdict {
  mode: Mode;
  phase: ModePhase;
  reason: ClusterModeReason;
  message: string;
  /** Absent: nothing is asked of another cluster. */
  tether?: TetherStatus;
  nodes?: readonly string[];
  /** Since when there is no link, ms since the epoch. */
  lostSince?: number;
  /** Since when forwarded pods are brought back, RFC 3339. */
  runsLocallySince?: string | undefined;
  againMs?: number;
}

const IN_USE: ReadonlySet<PeeringReport['phase']> = new Set(['Accepted', 'Established']);
const MOST_NAMED = 5;

/**
 * The mode that this cluster is in, from all that is known at one moment. `status.mode` is the only field that guards,
 * webhook and offloading follow, and it is written together with everything else here: whoever is killed before or after
 * that write leaves one mode or the other. Pure.
 */
export function decideMode(facts: ModeFacts): ModeDecision {
  const { mode, nowMs } = facts;
  const { conditions = [] } = mode.status ?? {};
  const verdict = judge(facts);
  const { reason, message, nodes = [], lostSince, runsLocallySince, againMs } = verdict;
  const observed = present({ observedGeneration: mode.metadata.generation });
  const status = verdict.mode === 'Tethered' ? ('True' as const) : ('False' as const);
  const wanted = { type: CLUSTER_MODE_CONDITIONS.tethered, status, reason, message, ...observed };
  return {
    status: {
      ...observed,
      mode: verdict.mode,
      phase: verdict.phase,
      ...present({ tether: tetherOf(facts, verdict) }),
      ...(nodes.length > 0 && { nodes: nodes.toSorted() }),
      ...(lostSince !== undefined && { contactLost: timestamp(lostSince) }),
      ...present({ runsLocallySince }),
      conditions: [...withCondition(conditions, wanted, nowMs)],
    },
    ...present({ againMs }),
  };
}

/** With the time at which it began. */
function tetherOf({ mode: { status = {} }, nowMs }: ModeFacts, verdict: Verdict): TetherStatus | undefined {
  const begins = verdict.mode === 'Tethered' && status.mode !== 'Tethered';
  return verdict.tether && begins ? { ...verdict.tether, since: timestamp(nowMs) } : verdict.tether;
}

function judge(facts: ModeFacts): Verdict {
  const { mode, own, other, obstacles } = facts;
  const tether = mode.metadata.deletionTimestamp === undefined ? mode.spec?.tether : undefined;
  if (tether === undefined) return untethered(facts);
  if (other === undefined) {
    const message = `no ForeignCluster ${tether.cluster} has proved its identity: see kubectl describe foreigncluster ${tether.cluster}`;
    return refused(REASONS.clusterUnknown, message);
  }
  if (other.clusterID === own) {
    return refused(
      REASONS.ourselves,
      `${tether.cluster} is this cluster, which cannot be tethered to itself`,
    );
  }
  const hasBegun = mode.status?.tether?.clusterID === other.clusterID;
  if (other.isDevice && !hasBegun) {
    const message = `${tether.cluster} is tethered to this cluster, which decides what runs there; end that first: over there with tributary untether, or here with tributary unpeer ${tether.cluster}`;
    return refused(REASONS.peeringInTheWay, message);
  }
  // Who has asked before a tether is in the way of it. Who asks later is refused, and so cannot end it.
  if (obstacles.length > 0 && !hasBegun) return inTheWay(obstacles);
  return askedFor(facts, tether, other);
}

function askedFor(facts: ModeFacts, tether: TetherSpec, other: OtherCluster): Verdict {
  const { tether: before, phase } = facts.mode.status ?? {};
  const { clusterID, clusterName } = other;
  const ours = before?.clusterID === clusterID ? before : undefined;
  const fence = tether.whenLost === 'RunLocally' ? (facts.agreed ?? ours?.fence) : undefined;
  const kept = { clusterID, ...present({ clusterName, since: ours?.since, fence }) };
  const isHeld = ours !== undefined && (phase === 'Tethered' || phase === 'Lost');
  if (!isHeld) return entering(tether, other, kept);
  return (other.isLinked ? linked : silent)(facts, { tether, other, kept });
}

/** Nothing is asked of anybody: nothing half done stays. */
const refused = (reason: ClusterModeReason, message: string): Verdict => ({
  mode: 'Autonomous',
  phase: 'Refused',
  reason,
  message,
});

function inTheWay(obstacles: readonly Obstacle[]): Verdict {
  const named = obstacles.slice(0, MOST_NAMED).map(({ name }) => `tributary unpeer ${name} --incoming`);
  const more = obstacles.length > MOST_NAMED ? `, and ${obstacles.length - MOST_NAMED} more` : '';
  const message = `this cluster offers to ${obstacles.length} other cluster(s), and a tethered one offers to one alone; end that with: ${named.join('; ')}${more}`;
  return refused(REASONS.peeringInTheWay, message);
}

function untethered({ mode, other }: ModeFacts): Verdict {
  const message = 'this cluster decides what runs on its nodes';
  const [left] = other === undefined ? [] : leftOf(other);
  if (other === undefined || left === undefined) {
    return { mode: 'Autonomous', phase: 'Autonomous', reason: REASONS.notWanted, message };
  }
  const { clusterID, clusterName } = other;
  // An object that was deleted and made anew knows of no tether.
  const tether = mode.status?.tether ?? { clusterID, ...present({ clusterName }) };
  const otherwise =
    left === other.outgoing
      ? 'what was forwarded ends over there'
      : 'the other cluster gives up what it has here';
  return {
    mode: 'Autonomous',
    phase: 'Ending',
    reason: REASONS.ending,
    message: `${message}; what was made for the tether to ${clusterName ?? clusterID} is being removed: ${awaitedIn(left) ?? otherwise}`,
    tether,
  };
}

/** What a report waits for. That of a peering in use tells by what it was agreed on. */
const awaitedIn = ({ phase, message }: PeeringReport): string | undefined =>
  IN_USE.has(phase) ? undefined : message;

/** Peerings that were made for the tether, and are still there. Those that others want, too, go on. */
const leftOf = ({ outgoing, incoming, isUsedApart, isLentApart }: OtherCluster): PeeringReport[] => [
  ...(isPeered(outgoing) && (isUsedApart !== true || outgoing.phase === 'Ending') ? [outgoing] : []),
  ...(isPeered(incoming) && (isLentApart !== true || incoming.phase === 'Ending') ? [incoming] : []),
];

interface Held {
  tether: TetherSpec;
  other: OtherCluster;
  kept: TetherStatus;
}

const areAgreed = ({ outgoing, incoming }: OtherCluster): boolean =>
  outgoing.phase === 'Established' && incoming.phase === 'Established';

/** What was agreed on before is being removed over there; then it decides anew. */
const PASSING: ReadonlySet<string | undefined> = new Set([
  FOREIGN_CLUSTER_REASONS.revoked,
  FOREIGN_CLUSTER_REASONS.withdrawn,
]);

function entering({ cluster }: TetherSpec, other: OtherCluster, kept: TetherStatus): Verdict {
  if (other.isLinked && areAgreed(other)) return tethered(cluster, other, kept);
  const refusal = refusalOf(cluster, other);
  // It is asked again, so that a change of mind is enough, here or over there.
  if (refusal !== undefined) return { ...refused(...refusal), tether: kept };
  const message = `waiting for ${cluster}: ${waitOf(other)}`;
  return { mode: 'Autonomous', phase: 'Entering', reason: REASONS.waiting, message, tether: kept };
}

/** Why there is no use in waiting. */
function refusalOf(
  cluster: string,
  { disabled = [], outgoing }: OtherCluster,
): [ClusterModeReason, string] | undefined {
  if (disabled.length > 0) {
    const fields = disabled.map((direction) => `${direction}: Disabled`).join(' and ');
    const message = `ForeignCluster ${cluster} says ${fields}; to permit it: tributary tether ${cluster}`;
    return [REASONS.disabled, message];
  }
  if (outgoing.reason === FOREIGN_CLUSTER_REASONS.tokenRequired) {
    const message = `${cluster} asks for a join token; make one there with tributary token create, and bring it with: tributary tether ${cluster} --token -`;
    return [REASONS.refused, message];
  }
  if (outgoing.phase !== 'Denied' || PASSING.has(outgoing.reason)) return undefined;
  return [
    REASONS.refused,
    `${cluster} does not take this cluster: ${outgoing.message ?? 'it gives no reason'}`,
  ];
}

function waitOf({ isLinked, outgoing, incoming }: OtherCluster): string {
  if (!isLinked) return 'there is no link to it';
  if (outgoing.phase === 'Denied') return 'what was agreed on before is still being removed over there';
  if (outgoing.phase === 'Accepted') return 'it lends to this cluster, where its node is being set up';
  if (outgoing.phase !== 'Established') return outgoing.message ?? 'it has not decided yet';
  return incoming.phase === 'None'
    ? 'it lends to this cluster, and has not asked for the nodes here yet'
    : (awaitedIn(incoming) ?? 'it has been offered the nodes here, and has not taken them yet');
}

const tethered = (cluster: string, other: OtherCluster, kept: TetherStatus): Verdict => ({
  mode: 'Tethered',
  phase: 'Tethered',
  reason: REASONS.ok,
  message: `${cluster} decides what runs on the nodes here; to end that: tributary untether`,
  tether: kept,
  nodes: other.nodes,
});

/** It was tethered, and the other cluster can be heard. */
function linked({ mode }: ModeFacts, { tether, other, kept }: Held): Verdict {
  const { cluster, afterLoss = 'Retether' } = tether;
  const ended = [other.outgoing, other.incoming].find(({ phase }) => !IN_USE.has(phase));
  // What has ended by a long silence is asked for again.
  if (ended !== undefined && mode.status?.phase === 'Lost' && afterLoss === 'Retether') {
    return entering(tether, other, kept);
  }
  if (ended !== undefined) {
    const message = `${cluster} has ended it: ${ended.message ?? ended.phase}`;
    return { mode: 'Autonomous', phase: 'Refused', reason: REASONS.refused, message, tether: kept };
  }
  const nodes = nodesOf(mode, other);
  if (mode.status?.mode === 'Tethered' || (afterLoss === 'Retether' && areAgreed(other))) {
    return { ...tethered(cluster, other, kept), nodes };
  }
  const message =
    afterLoss === 'Retether'
      ? `${cluster} is back, and takes up its peerings again`
      : `${cluster} is back; this cluster goes on by itself, as spec.tether.afterLoss says. To tether it again: tributary untether, then tributary tether ${cluster}`;
  return { mode: 'Autonomous', phase: 'Lost', reason: REASONS.lost, message, tether: kept, nodes };
}

/** It was tethered, and has no link. */
function silent(facts: ModeFacts, { tether, other, kept }: Held): Verdict {
  const { mode, nowMs, silentMs } = facts;
  const { cluster, lostAfterSeconds = TETHER_DEFAULTS.lostAfterSeconds, afterLoss = 'Retether' } = tether;
  const read = Date.parse(mode.status?.contactLost ?? '');
  // A clock that was set back would make the loss come too late.
  const lostSince = Number.isNaN(read) || read > nowMs ? nowMs : read;
  const leftMs = lostAfterSeconds * 1000 - (silentMs ?? nowMs - lostSince);
  const nodes = isGivenUp(mode, other) ? [] : nodesOf(mode, other);
  const more = { tether: kept, lostSince, nodes };
  const since = `no link to ${cluster} since ${timestamp(lostSince)}`;
  if (mode.status?.mode === 'Tethered' && leftMs > 0) {
    const message = `${since}; after ${lostAfterSeconds} s without one, this cluster decides what runs on its nodes`;
    return { mode: 'Tethered', phase: 'Tethered', reason: REASONS.ok, message, againMs: leftMs, ...more };
  }
  const local = runLocally(facts, tether, kept);
  const message = `${since}: this cluster decides what runs on its nodes${afterLoss === 'Retether' ? ' until it is back' : ''}; ${local.message}`;
  return { mode: 'Autonomous', phase: 'Lost', reason: REASONS.lost, ...local, message, ...more };
}

/** What becomes of forwarded pods. They run here only when the other cluster has stopped them, and the margin has passed. */
function runLocally(
  { mode, nowMs, stoppedInMs = Infinity }: ModeFacts,
  { cluster, whenLost, marginSeconds = TETHER_DEFAULTS.marginSeconds }: TetherSpec,
  { fence }: TetherStatus,
): Pick<Verdict, 'message' | 'runsLocallySince' | 'againMs'> {
  if (whenLost !== 'RunLocally') return { message: `what was forwarded stays at ${cluster}` };
  if (fence === undefined)
    return { message: `what was forwarded stays at ${cluster}, which has not agreed to stop it` };
  const leftMs = stoppedInMs + marginSeconds * 1000;
  const runsLocallySince = mode.status?.runsLocallySince ?? (leftMs <= 0 ? timestamp(nowMs) : undefined);
  if (runsLocallySince !== undefined) {
    return { message: `what was forwarded runs here since ${runsLocallySince}`, runsLocallySince };
  }
  const from = timestamp(nowMs + leftMs);
  return {
    message: `what was forwarded is being stopped there, and runs here from ${from} on`,
    againMs: leftMs,
  };
}

/** After a silence that was too long for its peering, what was forwarded is not expected back. */
const isGivenUp = ({ status }: ClusterMode, { outgoing }: OtherCluster): boolean =>
  status?.mode !== 'Tethered' && !IN_USE.has(outgoing.phase);

/** Those of before while there are none at the moment: what was forwarded is bound to them. */
const nodesOf = ({ status }: ClusterMode, { nodes }: OtherCluster): readonly string[] =>
  nodes.length > 0 ? nodes : (status?.nodes ?? []);

/** A program that has just started has no link, nor has one whose link broke: they dial. After so long, there is nobody to wait for. */
const DIALLING_MS = 30_000;
const LOOK_MS = 5000;

/**
 * In how many milliseconds to look again, while the other cluster is still let in after the end: until what was forwarded has ended
 * over there, since part of it runs here, and the other cluster can end that only while it is let in. Undefined: that is over.
 */
export function takingBackMs(
  { phase }: ClusterModeStatus,
  { other, silentMs = 0, hasForwarded }: ModeFacts,
): number | undefined {
  if (phase !== 'Ending' || other === undefined) return undefined;
  const isTakingBack = hasForwarded === true || leftOf(other).includes(other.outgoing);
  const leftMs = DIALLING_MS - silentMs;
  return isTakingBack && leftMs > 0 ? Math.min(leftMs, LOOK_MS) : undefined;
}
