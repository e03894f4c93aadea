import type { FenceTerms } from '../../api/cluster-mode.ts';
import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { ForeignCluster, PeeringWish } from '../../api/foreign-cluster.ts';
import { ANNOTATION_FORCE } from '../../api/names.ts';
import { DISCOVERY_SOURCES } from '../../api/peer-selector.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { present } from '../../lib/fields.ts';
import { acceptancePolicyFor, type PeerFacts, sharingPolicyFor } from '../policy/match.ts';
import type { LinkView, PeeringReport } from '../ports.ts';
import { isAgreed, isDeleting, isDiscovered, primaryOf } from './foreign-cluster.ts';
import { foundBy } from './sightings.ts';

/** What people and policies here want of one cluster; for lending and for borrowing. */
export interface ClusterIntent {
  clusterID: string;
  /** The ForeignCluster that stands for it; the subject of events. */
  subject?: ForeignCluster;
  /** What policies look at. */
  facts: PeerFacts;
  /** Whether we use it: Enabled, or Auto and a policy that asks by itself. */
  wanted: boolean;
  /** The AcceptancePolicy that decides about its offers. */
  policy?: AcceptancePolicy;
  /** Home namespaces that the ForeignCluster names, and those that return to a device. */
  namespaces: readonly string[];
  /** The other cluster's one-time token. */
  joinToken?: string;
  /** Whether it may use us; Disabled also while its ForeignCluster is being deleted. */
  incoming: PeeringWish;
  /** The SharingPolicy that decides about it; not looked at where `incoming` is Disabled. */
  sharingPolicy?: SharingPolicy;
  /** Tether: we hand ourselves over to it. Device: it has handed itself over to us. Either way we use it. */
  tie?: Tie;
  /** Of a tether. */
  fence?: FenceTerms;
  /** Of a device. */
  returning?: Returning;
  /** The other cluster that this one is tethered to, as people call it. */
  tetheredTo?: string;
  /** Take everything down without waiting for the other cluster. */
  force: boolean;
}

export type Tie = 'Tether' | 'Device';

/** By which way what a device forwards here may come back to it. */
export interface Returning {
  /** Namespaces here in which it runs. They go to that device, and to no other cluster. */
  namespaces: readonly string[];
  /** Names of the VirtualNodes here that stand for the device, and of their Nodes. */
  virtualNodes: readonly string[];
  nodes: readonly string[];
}

/** What this cluster's mode means for one other cluster. */
export interface Ties {
  tie?: Tie;
  /** Of a tether, until it has ended: when the other cluster is to stop what we forward to it. */
  fence?: FenceTerms;
  returning?: Returning;
  tetheredTo?: string;
}

export interface Policies {
  acceptance: Iterable<AcceptancePolicy>;
  sharing: Iterable<SharingPolicy>;
}

export interface IntentInputs {
  clusterID: string;
  /** All ForeignClusters about it. */
  clusters: readonly ForeignCluster[];
  view: LinkView | undefined;
  policies: Policies;
  joinToken: string | undefined;
  ties?: Ties;
  now: number;
}

/**
 * What is wanted of a cluster. Without a ForeignCluster nothing is wanted, and what there is comes down; only a peer
 * that is linked to us at this moment may ask, since its object is about to be made.
 */
export function intentOf(inputs: IntentInputs): ClusterIntent {
  const { clusterID, clusters, view, policies, joinToken, ties = {} } = inputs;
  const { tetheredTo } = ties;
  const subject = primaryOf(clusters);
  const facts = factsOf(inputs, subject);
  const elsewhere = tetheredTo === undefined ? {} : { tetheredTo };
  const nothing = { clusterID, facts, wanted: false, namespaces: [], force: false, ...elsewhere };
  if (subject === undefined)
    return withSharing({ ...nothing, incoming: view ? 'Auto' : 'Disabled' }, policies);
  const force = isForced(subject);
  if (isDeleting(subject)) return { ...nothing, subject, incoming: 'Disabled', force };
  const wish = wishOf(subject, { facts, policies, ties });
  const token = joinToken === undefined ? {} : { joinToken };
  return withSharing({ ...nothing, subject, force, ...wish, ...token }, policies);
}

type Wish = Pick<
  ClusterIntent,
  'wanted' | 'namespaces' | 'incoming' | 'tie' | 'fence' | 'returning' | 'policy'
>;

/** What a ForeignCluster, policies and the mode say together. A person's refusal is stronger than a tie. */
function wishOf(
  { spec = {} }: ForeignCluster,
  { facts, policies, ties }: { facts: PeerFacts; policies: Policies; ties: Ties },
): Wish {
  const { outgoing = 'Auto', incoming = 'Auto', namespaces = [] } = spec;
  const policy = outgoing === 'Disabled' ? undefined : acceptancePolicyFor(policies.acceptance, facts);
  const asks = outgoing === 'Enabled' || (outgoing === 'Auto' && policy?.spec.approval === 'Automatic');
  const wish = { wanted: asks, namespaces, incoming, ...present({ policy, fence: ties.fence }) };
  return outgoing === 'Disabled' || incoming === 'Disabled' ? wish : tied(wish, ties);
}

function tied(wish: Wish, { tie, returning }: Ties): Wish {
  if (tie === undefined) return wish;
  const namespaces = [...wish.namespaces, ...(returning?.namespaces ?? [])];
  return { ...wish, wanted: true, tie, namespaces, ...present({ returning }) };
}

const isForced = ({ metadata }: ForeignCluster): boolean =>
  metadata.annotations?.[ANNOTATION_FORCE] === 'true';

function withSharing(intent: ClusterIntent, { sharing }: Policies): ClusterIntent {
  const policy = intent.incoming === 'Disabled' ? undefined : sharingPolicyFor(sharing, intent.facts);
  return { ...intent, ...(policy && { sharingPolicy: policy }) };
}

/**
 * What policies look at. While a peering lasts, the facts on which it was agreed count as well as what is seen now:
 * neither a lost link nor a missed announcement may end it. While there is a link, only the keys proved on it count.
 */
function factsOf({ clusterID, clusters, view, now }: IntentInputs, subject?: ForeignCluster): PeerFacts {
  // Of all objects about it: another one may just have become the primary.
  const standings = clusters.flatMap(({ status }) => status?.standing ?? []);
  const found = new Set([...foundBy(clusters, view, now), ...standings.flatMap((one) => one.foundBy ?? [])]);
  const keys = standings.flatMap(({ networkKeys = [] }) => networkKeys);
  return {
    clusterID,
    labels: subject?.metadata.labels ?? {},
    foundBy: DISCOVERY_SOURCES.filter((source) => found.has(source)),
    networkKeys: view?.networkKeys ?? [...new Set(keys)],
  };
}

/**
 * Whether we deal with a cluster: somebody here means exactly this one, or something is agreed on. That it has connected
 * to us, and so has an object, says nothing about a cluster, nor does a policy that selects anyone: identities are free.
 */
export function isKnown(
  { subject, incoming, policy, sharingPolicy, tie }: ClusterIntent,
  reports: readonly PeeringReport[],
): boolean {
  if (reports.some(isAgreed)) return true;
  if (subject === undefined) return false;
  const isMeant = !isDiscovered(subject) || subject.spec?.outgoing === 'Enabled' || incoming === 'Enabled';
  return (
    isMeant ||
    tie !== undefined ||
    [policy, sharingPolicy].some((one) => one !== undefined && one.spec.peers.anyone !== true)
  );
}
