/** Does what a person asks for, with a client that carries their own token: the API server decides whether they may. */
import { advertisements } from '../api/advertisement.ts';
import { claimsAbroad } from '../api/claims-abroad.ts';
import { CLUSTER_MODE, clusterModes } from '../api/cluster-mode.ts';
import { disabledIn, type ForeignCluster, foreignClusters, peerIDOf } from '../api/foreign-cluster.ts';
import { LABEL_MANAGED_BY, LABEL_OFFLOAD } from '../api/names.ts';
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  OFFLOADING_NAME,
} from '../api/namespace-offloading.ts';
import { permission } from '../api/peer-wish.ts';
import { peeringRequests } from '../api/peering-request.ts';
import { namespaces, persistentVolumes, type ResourceType } from '../api/resources.ts';
import { originOf, unoffloadPlan } from '../api/unoffload-plan.ts';
import type { KubeObject, Namespace } from '../api/wire.ts';
import { deleteByUid } from '../kube/write.ts';
import { hasCode, ignoring, TributaryError } from '../lib/errors.ts';
import type { Hands } from './hands.ts';
import type { DashboardAction } from './model.ts';
import { peer } from './peer.ts';

const merge = (body: object): { type: 'merge'; body: object } => ({ type: 'merge', body });

/** Returns a line that says what was done. */
export async function perform(action: DashboardAction, hands: Hands): Promise<string> {
  switch (action.do) {
    case 'approve':
    case 'deny':
      return decide(action, hands);
    case 'peer':
      return peer(action, hands);
    case 'unpeer':
      return unpeer(action.name, hands);
    case 'offload':
      return offload(action, hands);
    case 'unoffload':
      return unoffload(action.namespace, hands);
    case 'tether':
      return tether(action.name, hands);
    default:
      return untether(hands);
  }
}

async function untether({ client, signal }: Hands): Promise<string> {
  await client.patch(clusterModes, { name: CLUSTER_MODE }, merge({ spec: { tether: null } }), { signal });
  return 'The tether ends; pods that were forwarded come home or end over there.';
}

async function decide(
  { do: verb, what, name }: Extract<DashboardAction, { do: 'approve' | 'deny' }>,
  hands: Hands,
): Promise<string> {
  const { client, signal } = hands;
  const approval = verb === 'approve' ? 'Approved' : 'Denied';
  const type: ResourceType<KubeObject> = what === 'offer' ? advertisements : peeringRequests;
  await client.patch(type, { name }, merge({ spec: { approval } }), { signal });
  const more = verb === 'approve' && what === 'request' ? await liftedText(name, hands) : '';
  return `${type.kind} ${name}: ${approval}.${more}`;
}

/** It is approved already, so who may do no more than that is told what may be left. */
async function liftedText(clusterID: string, hands: Hands): Promise<string> {
  try {
    const lifted = await liftDisabled(clusterID, hands);
    return lifted.map((name) => ` ForeignCluster ${name} no longer says incoming: Disabled.`).join('');
  } catch (error) {
    if (!hasCode(error, 'Forbidden')) throw error;
    return ' If its ForeignCluster says incoming: Disabled, somebody who may change that has to take it out.';
  }
}

/** Whoever lets a cluster in takes back what an end of an earlier peering has left for it. Returns the names of its ForeignClusters. */
async function liftDisabled(clusterID: string, { client, signal }: Hands): Promise<string[]> {
  const { items } = await client.list(foreignClusters, { signal });
  const lifted: string[] = [];
  for (const cluster of items.filter((one) => peerIDOf(one) === clusterID)) {
    const { name } = cluster.metadata;
    const body = permission(cluster, ['incoming']);
    if (body === undefined) continue;
    await client.patch(foreignClusters, { name }, merge(body), { signal });
    lifted.push(name);
  }
  return lifted;
}

async function unpeer(name: string, { client, signal }: Hands): Promise<string> {
  const cluster = await client.get(foreignClusters, { name }, { signal });
  const claims = await claimsOverThere(cluster, { client, signal });
  if (claims.length > 0) {
    throw new TributaryError(
      'Conflict',
      `Nothing was changed: what is in ${claims.length} volume(s) over there would be lost, of ${claims.slice(0, 3).join(', ')}. ` +
        `Delete the claims, or run: tributary unpeer ${name} --delete-volumes`,
    );
  }
  const body = { spec: { outgoing: 'Disabled', incoming: 'Disabled' } };
  await client.patch(foreignClusters, { name }, merge(body), { signal });
  return `The peering with ${name} ends; its pods leave as their budgets allow.`;
}

async function claimsOverThere(cluster: ForeignCluster, hands: Hands): Promise<string[]> {
  const clusterID = peerIDOf(cluster);
  if (clusterID === undefined) return [];
  const labelSelector = `${LABEL_MANAGED_BY}=${clusterID}`;
  const { items } = await hands.client.list(persistentVolumes, { labelSelector, signal: hands.signal });
  return claimsAbroad(items);
}

async function offload(
  { namespace, strategy: podStrategy }: Extract<DashboardAction, { do: 'offload' }>,
  { client, signal }: Hands,
): Promise<string> {
  const metadata = { namespace, name: OFFLOADING_NAME };
  try {
    await client.create(namespaceOffloadings, { metadata, spec: { podStrategy } }, { signal });
  } catch (error) {
    if (!hasCode(error, 'AlreadyExists')) throw error;
    await client.patch(namespaceOffloadings, metadata, merge({ spec: { podStrategy } }), { signal });
  }
  return `Namespace ${namespace} stretches over the clusters that this one uses (${podStrategy}).`;
}

/** One that a label has made goes with the label: deleted by hand, it would be refused. */
async function unoffload(namespace: string, hands: Hands): Promise<string> {
  const { client, signal } = hands;
  const found = await client.get(namespaceOffloadings, { namespace, name: OFFLOADING_NAME }, { signal });
  const { label, deletes } = unoffloadPlan(await namespaceOf(found, hands), found);
  if (label !== undefined) {
    const body = { metadata: { labels: { [LABEL_OFFLOAD]: label } } };
    await client.patch(namespaces, { name: namespace }, merge(body), { signal });
  }
  if (deletes) await deleteByUid(client, namespaceOffloadings, found, { signal });
  return `Namespace ${namespace} comes home.`;
}

/** Of one that the person may not read, no more is known than what has made its object. */
async function namespaceOf(
  offloading: NamespaceOffloading,
  { client, signal }: Hands,
): Promise<Pick<Namespace, 'metadata'>> {
  const { namespace: name = '' } = offloading.metadata;
  const found = await client.get(namespaces, { name }, { signal }).catch(ignoring('Forbidden'));
  const labels = originOf(offloading) === 'label' ? { [LABEL_OFFLOAD]: 'true' } : {};
  return found ?? { metadata: { ...offloading.metadata, name, labels } };
}

async function tether(cluster: string, { client, signal }: Hands): Promise<string> {
  const foreign = await client.get(foreignClusters, { name: cluster }, { signal });
  if (disabledIn(foreign).length > 0) {
    throw new TributaryError(
      'Conflict',
      `Nothing was changed: ForeignCluster ${cluster} says not to peer. Peer with it first.`,
    );
  }
  const mode = await client.get(clusterModes, { name: CLUSTER_MODE }, { signal }).catch(ignoring('NotFound'));
  const before = mode?.spec?.tether?.cluster;
  if (before !== undefined && before !== cluster) {
    throw new TributaryError(
      'Conflict',
      `Nothing was changed: this cluster is tethered to ${before}, or about to be. End that first.`,
    );
  }
  const spec = { tether: { cluster } };
  if (mode === undefined)
    await client.create(clusterModes, { metadata: { name: CLUSTER_MODE }, spec }, { signal });
  else await client.patch(clusterModes, { name: CLUSTER_MODE }, merge({ spec }), { signal });
  return `${cluster} is asked to take over the nodes of this cluster.`;
}
