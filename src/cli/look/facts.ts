/** Reads, all at once, what there is to know of Tributary in a cluster; what may not be read is told, and the rest is there. */
import { type Advertisement, advertisements } from '../../api/advertisement.ts';
import { CLUSTER_MODE, type ClusterMode, clusterModes } from '../../api/cluster-mode.ts';
import { type ForeignCluster, foreignClusters } from '../../api/foreign-cluster.ts';
import { INSTALLATION_REF } from '../../api/installation-record.ts';
import { APP_NAME, CLUSTER_LEASE, LABEL_APP_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '../../api/namespace-offloading.ts';
import type { OwnAnnouncement } from '../../api/own-announcement.ts';
import { type PeeringRequest, peeringRequests } from '../../api/peering-request.ts';
import { WAITING_FOR_NODE } from '../../api/pod.ts';
import { configMaps, daemonSets, deployments, leases, pods, type ResourceType } from '../../api/resources.ts';
import { type Tunnel, tunnels } from '../../api/tunnel.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject, Lease, Pod } from '../../api/wire.ts';
import type { InstallationFacts } from '../../doctor/facts.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import { recordedIn } from '../install/recorded.ts';
import { lacksKind, notThere, type Session } from '../peering/environment.ts';
import { readOwn } from '../peering/id.ts';
import { type NodeUse, readUse, useOf } from './use.ts';

type Deployment = typeof deployments extends ResourceType<infer T> ? T : never;
type DaemonSet = typeof daemonSets extends ResourceType<infer T> ? T : never;

/** What could not be read, and why. */
export interface Unreadable {
  what: string;
  why: string;
}

export interface Facts {
  own: OwnAnnouncement | undefined;
  mode: ClusterMode | undefined;
  lease: Lease | undefined;
  /** Undefined where no installer has made a record, and where it cannot be read. */
  installation: InstallationFacts | undefined;
  deployments: readonly Deployment[];
  daemonSets: readonly DaemonSet[];
  clusters: readonly ForeignCluster[];
  tunnels: readonly Tunnel[];
  use: readonly NodeUse[];
  offloadings: readonly NamespaceOffloading[];
  /** Pods of offloaded namespaces, by namespace. */
  podsOf: ReadonlyMap<string, readonly Pod[]>;
  /** Those that wait for a node. */
  waitingPods: readonly Pod[];
  requests: readonly PeeringRequest[];
  offers: readonly Advertisement[];
  unreadable: readonly Unreadable[];
}

const AT_ONCE = 32;
const byName = (a: KubeObject, b: KubeObject): number => (a.metadata.name < b.metadata.name ? -1 : 1);

/** Throws where Tributary's kinds are not there at all, and where the API server does not answer. */
export async function readFacts(session: Session): Promise<Facts> {
  const unreadable: Unreadable[] = [];
  /** `otherwise` where there is no right to read it. */
  const part = async <T>(what: string, reading: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await reading;
    } catch (error) {
      const isMissing = hasCode(error, 'NotFound') || lacksKind(error);
      // Without this kind there is nothing at all to show.
      if (isMissing && what === foreignClusters.plural) throw notThere(error);
      if (!isMissing && !hasCode(error, 'Forbidden')) throw error;
      unreadable.push({ what, why: errorMessage(error) });
      return otherwise;
    }
  };
  const { client, signal } = session;
  const all = async <T extends KubeObject>(type: ResourceType<T>, labelSelector?: string): Promise<T[]> => {
    const reading = client.list(type, { signal, ...(labelSelector !== undefined && { labelSelector }) });
    const { items } = await part(type.plural, reading, { items: [], resourceVersion: '' });
    return items.toSorted(byName);
  };
  const own = readOwn(session).catch(ignoring('NotFound', 'Unavailable'));
  const mode = client.get(clusterModes, { name: CLUSTER_MODE }, { signal }).catch(ignoring('NotFound'));
  const leaseRef = { namespace: SYSTEM_NAMESPACE, name: CLUSTER_LEASE };
  const lease = client.get(leases, leaseRef, { signal }).catch(ignoring('NotFound'));
  const record = client.get(configMaps, INSTALLATION_REF, { signal }).catch(ignoring('NotFound'));
  const ours = `${LABEL_APP_NAME}=${APP_NAME}`;
  const namespaces = all(namespaceOffloadings);
  const read = await Promise.all([
    part("this cluster's own name", own, undefined),
    part('clustermodes', mode, undefined),
    part('leases', lease, undefined),
    part('the record of the installation', record, undefined).then(recordedIn),
    all(deployments, ours),
    all(daemonSets, ours),
    all(foreignClusters),
    all(tunnels),
    readUseOrLess(session, part),
    namespaces,
    namespaces.then(async (offloadings) => podsIn(offloadings, session, part)),
    part(
      'pods that wait for a node',
      client.list(pods, { fieldSelector: WAITING_FOR_NODE, signal }).then(({ items }) => items),
      [],
    ),
    all(peeringRequests),
    all(advertisements),
  ]);
  return { ...named(read), unreadable: unreadable.toSorted((a, b) => (a.what < b.what ? -1 : 1)) };
}

type Part = <T>(what: string, reading: Promise<T>, otherwise: T) => Promise<T>;

type Read = readonly [
  Facts['own'],
  Facts['mode'],
  Facts['lease'],
  Facts['installation'],
  Facts['deployments'],
  Facts['daemonSets'],
  Facts['clusters'],
  Facts['tunnels'],
  Facts['use'],
  Facts['offloadings'],
  Facts['podsOf'],
  Facts['waitingPods'],
  Facts['requests'],
  Facts['offers'],
];

const named = ([
  own,
  mode,
  lease,
  installation,
  allDeployments,
  allDaemonSets,
  clusters,
  allTunnels,
  use,
  offloadings,
  podsOf,
  waitingPods,
  requests,
  offers,
]: Read): Omit<Facts, 'unreadable'> => ({
  own,
  mode,
  lease,
  installation,
  deployments: allDeployments,
  daemonSets: allDaemonSets,
  clusters,
  tunnels: allTunnels,
  use,
  offloadings,
  podsOf,
  waitingPods,
  requests,
  offers,
});

/** Without the right to read pods or Nodes: what VirtualNodes alone say. */
async function readUseOrLess(session: Session, part: Part): Promise<readonly NodeUse[]> {
  const use = await part<NodeUse[] | undefined>('use of virtual nodes', readUse(session), undefined);
  if (use !== undefined) return use;
  const { client, signal } = session;
  const { items } = await part('virtualnodes', client.list(virtualNodes, { signal }), {
    items: [],
    resourceVersion: '',
  });
  return items.toSorted(byName).map((one) => useOf(one, undefined, []));
}

async function podsIn(
  offloadings: readonly NamespaceOffloading[],
  { client, signal }: Session,
  part: Part,
): Promise<Map<string, readonly Pod[]>> {
  const lists = await eachAtOnce(offloadings, AT_ONCE, async ({ metadata: { namespace = '' } }) => {
    const reading = client.list(pods, { namespace, signal });
    const { items } = await part(`pods of ${namespace}`, reading, { items: [], resourceVersion: '' });
    return [namespace, items] as const;
  });
  return new Map(lists);
}
