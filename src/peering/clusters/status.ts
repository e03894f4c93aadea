import type { EventReason } from '../../api/reasons/events.ts';
import { timestamp } from '../../api/conditions.ts';
import {
  FOREIGN_CLUSTER_CONDITIONS,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignClusterReason,
  type ForeignClusterStatus,
  type LinkState,
  type PeeringStanding,
  type PeeringState,
  type Sighting,
} from '../../api/foreign-cluster.ts';
import { MAX_ENDPOINT_LENGTH } from '../../api/limits.ts';
import { DISCOVERY_SOURCES } from '../../api/peer-selector.ts';
import type { Condition } from '../../api/wire.ts';
import type { LinkView } from '../ports.ts';
import {
  type ForeignClusterFacts,
  forgeConditions,
  incomingState,
  outgoingState,
  type Stated,
} from './conditions.ts';
import { isPeered } from './foreign-cluster.ts';
import { clusterNameOf, foundBy, incomingSighting } from './sightings.ts';

/** The fields of the status that are ours; the other sightings are discovery's. */
type OwnStatus = {
  [Field in keyof Omit<ForeignClusterStatus, 'sightings'>]: ForeignClusterStatus[Field] | undefined;
} & { sightings?: { Incoming?: Sighting } | undefined };

/** The fields of the status that are ours, as they are. */
export function ownPart(status: ForeignClusterStatus = {}): OwnStatus {
  const { sightings, ...own } = status;
  const incoming = sightings?.Incoming;
  return { ...own, ...(incoming && { sightings: { Incoming: incoming } }) };
}

/** The fields of the status that are ours, as they should be. What changes all the time (round-trip times) is not in it. */
export function forgeStatus(seen: ForeignClusterFacts): OwnStatus {
  const { cluster, view, now, siblings, duplicateOf } = seen;
  const before = cluster.status;
  const found = foundBy(duplicateOf === undefined ? siblings : [cluster], view, now);
  const outgoing = stateOf(outgoingState(seen), before?.outgoing, now);
  const incoming = stateOf(incomingState(seen), before?.incoming, now);
  const sighting = incomingSighting(before?.sightings?.Incoming, {
    view: duplicateOf === undefined ? view : undefined,
    now,
    ttlMs: seen.incomingTtlMs,
  });
  return {
    observedGeneration: cluster.metadata.generation,
    clusterID: view?.clusterID ?? before?.clusterID,
    answeredBy: view === undefined ? seen.problem?.answeredBy : undefined,
    clusterName: clusterNameOf(siblings, { view, now }),
    sightings: sighting && { Incoming: sighting },
    foundBy: found.join(','),
    link: linkOf(view, before?.link, now),
    standing: standingOf(seen),
    outgoing,
    incoming,
    conditions: [...forgeConditions(seen, { outgoing, incoming })],
  };
}

function stateOf(
  { phase, reason, message }: Stated,
  before: PeeringState | undefined,
  now: number,
): PeeringState {
  const since = before?.phase === phase ? before.since : undefined;
  return { phase, reason, message, since: since ?? timestamp(now) };
}

function linkOf(view: LinkView | undefined, before: LinkState | undefined, now: number): LinkState {
  if (view === undefined) {
    if (before === undefined) return { connected: false };
    // The rest stays: it tells what has worked.
    return before.connected ? { ...before, connected: false, since: timestamp(now) } : before;
  }
  const { dialledBy, endpoint, protocol, software, since } = view;
  return {
    connected: true,
    ...(dialledBy !== undefined && { dialledBy }),
    ...(endpoint !== undefined && { endpoint: endpoint.slice(0, MAX_ENDPOINT_LENGTH) }),
    ...(protocol !== undefined && { protocol }),
    ...(software !== undefined && { software: software.slice(0, 64) }),
    ...(since !== undefined && { since }),
  };
}

/** Kept while there is a peering. Ways of discovery add up; the keys are those of the last link. */
function standingOf(seen: ForeignClusterFacts): PeeringStanding | undefined {
  const { cluster, intent, outgoing, incoming, duplicateOf } = seen;
  if (intent === undefined || !isPeered(outgoing, incoming)) return undefined;
  if (duplicateOf !== undefined) return isHandingOver(seen) ? cluster.status?.standing : undefined;
  const { foundBy: found, networkKeys } = intent.facts;
  const known = new Set([...(cluster.status?.standing?.foundBy ?? []), ...found]);
  return {
    ...(known.size > 0 && { foundBy: DISCOVERY_SOURCES.filter((source) => known.has(source)) }),
    ...(networkKeys.length > 0 && { networkKeys: networkKeys.slice(0, 64) }),
  };
}

/** Whether another object has become the primary, but has not yet taken over what this one knows of the peering. */
export function isHandingOver({
  cluster,
  siblings,
  duplicateOf,
  outgoing,
  incoming,
}: ForeignClusterFacts): boolean {
  if (duplicateOf === undefined || cluster.status?.standing === undefined) return false;
  const heir = siblings.find(({ metadata }) => metadata.name === duplicateOf);
  return isPeered(outgoing, incoming) && heir?.status?.standing === undefined;
}

interface News {
  type: 'Normal' | 'Warning';
  reason: EventReason;
  message: string;
}

/** What is worth an event: a changed phase, an identity that is not the wanted one, a cluster that cannot be reached. */
export function newsOf(before: ForeignClusterStatus | undefined, after: OwnStatus): News[] {
  const { outgoing, incoming } = after;
  return [
    ...phaseNews('Outgoing', before?.outgoing, outgoing),
    ...phaseNews('Incoming', before?.incoming, incoming),
    ...conditionNews(before?.conditions, after.conditions),
    ...networkNews(before?.conditions, after.conditions),
  ];
}

function phaseNews(
  direction: 'Outgoing' | 'Incoming',
  before: PeeringState | undefined,
  after?: PeeringState,
): News[] {
  const old = before?.phase ?? 'None';
  if (after === undefined || after.phase === old) return [];
  const message = `${old} -> ${after.phase}: ${after.reason}, ${after.message}`;
  return [
    { type: after.phase === 'Denied' ? 'Warning' : 'Normal', reason: `${direction}${after.phase}`, message },
  ];
}

/** Conditions with causes that a person has to look at: they are events, too. */
const WARNINGS: readonly [type: string, reasons: readonly ForeignClusterReason[]][] = [
  [FOREIGN_CLUSTER_CONDITIONS.identity, [REASONS.wrongIdentity, REASONS.identityUnconfirmed]],
  [FOREIGN_CLUSTER_CONDITIONS.connected, [REASONS.unreachable, REASONS.incompatible]],
];

/** A tunnel that fails or works again is news; that it was not there yet is none. */
function networkNews(before: readonly Condition[] = [], after: readonly Condition[] = []): News[] {
  const [old, condition] = [before, after].map((list) =>
    list.find(({ type }) => type === FOREIGN_CLUSTER_CONDITIONS.network),
  );
  if (condition === undefined || condition.status === old?.status) return [];
  const { status, reason, message } = condition;
  if (status === 'False')
    return [{ type: 'Warning', reason: 'TunnelDown', message: `${reason}: ${message}` }];
  return status === 'True' && old?.status === 'False'
    ? [{ type: 'Normal', reason: 'TunnelUp', message: 'packets go through the tunnel again' }]
    : [];
}

function conditionNews(before: readonly Condition[] = [], after: readonly Condition[] = []): News[] {
  return WARNINGS.flatMap(([wanted, reasons]) => {
    const [old, condition] = [before, after].map((list) => list.find(({ type }) => type === wanted));
    if (condition === undefined || condition.reason === old?.reason) return [];
    const reason = reasons.find((one) => one === condition.reason);
    return reason === undefined ? [] : [{ type: 'Warning' as const, reason, message: condition.message }];
  });
}
