/**
 * `tributary peer --to-context`: whoever may administer both clusters says on both sides what the peering needs. No token is
 * made: each side names the ClusterID of the other one, which it has read there.
 */
import {
  disabledIn,
  type ForeignCluster,
  foreignClusters,
  peerIDOf,
  type PeeringWish,
} from '../../api/foreign-cluster.ts';
import { LABEL_MADE_FOR } from '../../api/names.ts';
import type { OwnAnnouncement } from '../../api/own-announcement.ts';
import { DISCOVERY_SOURCES, type DiscoverySource } from '../../api/peer-selector.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import { sharingPolicies, type SharingPolicy } from '../../api/sharing-policy.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import { type PeerFacts, sharingPolicyFor } from '../../peering/policy/match.ts';
import type { Session } from './environment.ts';
import { listClusters } from './foreign-clusters.ts';
import { readOwn } from './id.ts';

/** A cluster that may be administered, and what it says of itself. */
export interface Side {
  session: Session;
  own: OwnAnnouncement;
}

/** How a provider is to lend, where none of its policies speaks of the consumer. */
export interface Lending {
  /** Percent of what is free; undefined: the default of SharingPolicies. */
  sharePercent: number | undefined;
}

export async function sideOf(session: Session, context: string | undefined): Promise<Side> {
  try {
    return { session, own: await readOwn(session) };
  } catch (error) {
    if (!hasCode(error, 'NotFound')) throw error;
    const which =
      context === undefined ? 'the cluster of the current context' : `the cluster of context ${context}`;
    throw new TributaryError(
      'NotFound',
      session.pastable(`Tributary does not run in ${which}. Install it there first: tributary install`),
    );
  }
}

/** Where `from` dials `to`; undefined: `to` dials. Throws where neither can. */
export function endpointFor(from: Side, to: Side): string | undefined {
  if (from.own.clusterID === to.own.clusterID) {
    throw new TributaryError('Invalid', `both contexts lead to the same cluster, ${to.own.clusterID}`);
  }
  const [endpoint] = to.own.endpoints;
  if (endpoint === undefined && from.own.endpoints.length === 0) {
    throw new TributaryError(
      'Unavailable',
      'neither cluster says where peers can dial it: run one of them with --advertise HOST:PORT (tributary upgrade)',
    );
  }
  return endpoint;
}

/**
 * Lets `consumer` use `provider`, as its administrator: the ForeignCluster says so, and a SharingPolicy says how much. Returns the name
 * of the policy where one was made for it, now or before.
 */
export async function letIn(provider: Side, consumer: Side, lending: Lending): Promise<string | undefined> {
  const { session } = provider;
  const cluster = await welcome(provider, consumer);
  const { items } = await session.client.list(sharingPolicies, { signal: session.signal });
  const { clusterID } = consumer.own;
  const facts: PeerFacts = {
    clusterID,
    labels: cluster.metadata.labels ?? {},
    foundBy: [sourceOf(cluster)],
    // Whether it holds a key, only the link can tell.
    networkKeys: [],
  };
  const deciding = sharingPolicyFor(items, facts);
  if (deciding !== undefined) {
    const { name, labels } = deciding.metadata;
    return labels?.[LABEL_MADE_FOR] === clusterID ? name : undefined;
  }
  const policy = policyFor(consumer.own, lending, new Set(items.map(({ metadata }) => metadata.name)));
  await session.client.create(sharingPolicies, policy, { signal: session.signal });
  const much = lending.sharePercent === undefined ? 'half' : `${lending.sharePercent} %`;
  session.io.out(
    `SharingPolicy ${policy.metadata.name} made in ${provider.own.clusterName}: it lends ${much} of what is free to ${consumer.own.clusterName}\n`,
  );
  return policy.metadata.name;
}

const sourceOf = ({ status }: ForeignCluster): DiscoverySource =>
  DISCOVERY_SOURCES.find((source) => source === status?.foundBy) ?? 'Manual';

/** The ForeignCluster that stands for the consumer says `incoming: Enabled`; it is made where there is none. */
async function welcome(provider: Side, { own }: Side): Promise<ForeignCluster> {
  const { session } = provider;
  const { client, signal } = session;
  const [endpoint] = own.endpoints;
  const found = (await listClusters(session)).find((cluster) => peerIDOf(cluster) === own.clusterID);
  const incoming: PeeringWish = 'Enabled';
  if (found === undefined) {
    const spec = { clusterID: own.clusterID, incoming, ...(endpoint !== undefined && { endpoint }) };
    return client.create(foreignClusters, { metadata: { name: own.clusterID }, spec }, { signal });
  }
  const { name } = found.metadata;
  // What `unpeer` has left for both directions would keep the link away.
  const lifted = disabledIn(found).includes('outgoing') ? { outgoing: null } : {};
  // Where only the consumer can be dialled, this side dials.
  const dials = found.spec?.endpoint === undefined && provider.own.endpoints.length === 0 ? { endpoint } : {};
  const spec = { clusterID: own.clusterID, incoming, ...lifted, ...dials };
  return client.patch(foreignClusters, { name }, { type: 'merge', body: { spec } }, { signal });
}

function policyFor(own: OwnAnnouncement, lending: Lending, taken: ReadonlySet<string>): Draft {
  const { clusterID, clusterName } = own;
  const isName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(clusterName) && !taken.has(clusterName);
  return {
    apiVersion: API_VERSION,
    kind: 'SharingPolicy',
    metadata: { name: isName ? clusterName : clusterID, labels: { [LABEL_MADE_FOR]: clusterID } },
    spec: {
      peers: { clusterIDs: [clusterID] },
      approval: 'Automatic',
      ...(lending.sharePercent !== undefined && { sharePercent: lending.sharePercent }),
    },
  };
}

type Draft = Pick<SharingPolicy, 'spec'> & {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
};
