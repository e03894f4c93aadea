/** A cluster, rome, as the roles of Tributary would have left its objects; written by the test, status included. */
import { advertisements } from '../../../src/api/advertisement.ts';
import {
  foreignClusters,
  type ForeignClusterStatus,
  type PeeringPhase,
} from '../../../src/api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../../../src/api/names.ts';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../../src/api/peering-request.ts';
import { events, namespaces, nodes, pods, type ResourceType } from '../../../src/api/resources.ts';
import { tunnels } from '../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Condition, DraftMeta, KubeObject } from '../../../src/api/wire.ts';
import type { KubeClient } from '../../../src/kube/client.ts';

/** Of an ID that nobody can read. */
const TAIL = '2qpvdqbr4hd6tm63n3zg4vgrcx7k';

export const idOf = (city: string): string => (city + TAIL).slice(0, 26);
export const ROME: string = idOf('rome');

/** Text of a peer, as one would write it who wants it to be taken for markup. */
export const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>';

const NOW = new Date().toISOString().replace(/\.\d+Z$/u, 'Z');
const SIGNATURE = `${'A'.repeat(86)}==`;
const MANAGED = { cpu: '8', memory: '16Gi', pods: '110' };

type Body<T extends KubeObject> = Omit<T, 'metadata' | 'status'> & { metadata: DraftMeta };

/** Makes the object, and writes its status as a controller does. */
async function make<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  { status, ...body }: Body<T> & { status?: object },
): Promise<void> {
  const made = await client.create(type, body as unknown as T);
  if (status === undefined) return;
  const { name, namespace } = made.metadata;
  const ref = { name, ...(namespace !== undefined && { namespace }) };
  await client.patch(type, ref, { type: 'merge', body: { status } }, { subresource: 'status' });
}

const condition = (
  type: string,
  status: 'True' | 'False',
  reason = 'AsExpected',
  message = '',
): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: NOW,
});

const peering = (
  outgoing: PeeringPhase,
  incoming: PeeringPhase,
  more: ForeignClusterStatus = {},
): ForeignClusterStatus => ({
  foundBy: 'LAN',
  link: {
    connected: outgoing !== 'None' || incoming !== 'None',
    endpoint: '172.30.0.41:7443',
    software: '0.1.0',
  },
  outgoing: { phase: outgoing, since: NOW, ...(outgoing === 'Established' && { reason: 'AsExpected' }) },
  incoming: { phase: incoming, since: NOW, ...(incoming === 'Established' && { reason: 'AsExpected' }) },
  ...more,
});

async function city(client: KubeClient, name: string, status: ForeignClusterStatus): Promise<void> {
  const clusterID = idOf(name);
  await make(client, foreignClusters, {
    metadata: { name: clusterID },
    spec: { clusterID },
    status: { clusterID, clusterName: name, ...status },
  });
}

export async function setPeering(
  client: KubeClient,
  name: string,
  outgoing: PeeringPhase,
  incoming: PeeringPhase,
): Promise<void> {
  const status = peering(outgoing, incoming);
  await client.patch(
    foreignClusters,
    { name: idOf(name) },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  );
}

async function tunnel(client: KubeClient, name: string, rttMs: number, lossPercent: number): Promise<void> {
  const isUp = lossPercent < 50;
  const clusterID = idOf(name);
  const words = isUp
    ? ([] as const)
    : (['NoAnswer', 'no probe has come back for 12 s; is UDP 51820 let through?'] as const);
  await make(client, tunnels, {
    metadata: { name: clusterID },
    spec: { clusterID, clusterName: name, access: 'OffloadedPods', transit: 'OffloadedPods' },
    status: {
      connection: {
        gateway: 'rome-1',
        endpoint: '172.30.0.41:51820',
        rttMs,
        lossPercent,
        receivedBytes: 48_301_223,
        sentBytes: 9_120_334,
        mtu: 1420,
      },
      conditions: [condition('Ready', isUp ? 'True' : 'False', ...words)],
    },
  });
}

/** A virtual node for that cluster, and so many pods of `shop` on it. */
async function borrowed(client: KubeClient, name: string, count: number): Promise<void> {
  await make(client, virtualNodes, {
    metadata: { name, labels: { [LABEL_PROVIDER]: idOf(name) } },
    spec: {
      kubeconfigSecretRef: { namespace: 'tributary-system', name: `kubeconfig-${name}` },
      resources: MANAGED,
    },
    status: { conditions: [condition('Ready', 'True')] },
  });
  await make(client, nodes, { metadata: { name } });
  for (let index = 0; index < count; index++) await pod(client, `web-${name}-${index}`, name);
}

const pod = async (client: KubeClient, name: string, nodeName: string): Promise<void> =>
  make(client, pods, {
    metadata: { namespace: 'shop', name },
    spec: { nodeName, containers: [{ name: 'web', image: 'none' }], automountServiceAccountToken: false },
  });

export async function request(client: KubeClient, name: string, message: string): Promise<void> {
  await make(client, peeringRequests, {
    metadata: { name: idOf(name) },
    spec: { clusterID: idOf(name), clusterName: name, namespaces: ['weather'] },
    status: { phase: 'Pending', reason: 'WaitingForApproval', message, policy: 'guests' },
  });
}

async function offered(client: KubeClient, name: string): Promise<void> {
  const offer = {
    provider: idOf(name),
    consumer: ROME,
    generation: 1,
    issued: NOW,
    expires: '2099-01-01T00:00:00Z',
    resources: MANAGED,
    shapes: [{ count: 1, resources: MANAGED, architecture: 'amd64', operatingSystem: 'linux' }],
    classes: {},
    labels: {},
    images: [],
    prices: { cpu: { amount: '0.04', currency: 'EUR' } },
    namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'shop-rome' }],
    podSecurity: 'baseline' as const,
    keepForSeconds: 3600,
  };
  await make(client, advertisements, {
    metadata: { name: idOf(name) },
    spec: { clusterID: idOf(name), clusterName: name, offer, signature: SIGNATURE },
    status: { decision: 'Pending', reason: 'WaitingForApproval', message: 'a person has to approve' },
  });
}

export async function event(
  client: KubeClient,
  [type, reason, message]: readonly [string, string, string],
): Promise<void> {
  await make(client, events, {
    metadata: { namespace: 'shop', name: `${reason.toLowerCase()}.1` },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-milan-0', apiVersion: 'v1' },
    type,
    reason,
    message,
    reportingComponent: 'tributary',
    source: { component: 'tributary' },
    firstTimestamp: NOW,
    lastTimestamp: NOW,
    count: 1,
  });
}

export async function setTheScene(client: KubeClient): Promise<void> {
  await Promise.all([
    city(client, 'milan', peering('Established', 'Established')),
    city(client, 'paris', peering('Established', 'None')),
    city(client, 'lyon', peering('None', 'Established')),
    city(client, 'oslo', peering('None', 'Pending')),
    city(client, 'vienna', peering('Offered', 'None')),
    city(client, 'berlin', peering('None', 'None')),
    tunnel(client, 'milan', 0.6, 0),
    tunnel(client, 'paris', 18.4, 100),
    borrowed(client, 'milan', 4),
    borrowed(client, 'paris', 2),
    request(client, 'oslo', HOSTILE),
    offered(client, 'vienna'),
    make(client, peeringRequests, {
      metadata: { name: idOf('lyon') },
      spec: { clusterID: idOf('lyon'), clusterName: 'lyon', namespaces: ['batch'] },
      status: { phase: 'Established', promised: MANAGED, used: { cpu: '6500m', memory: '4Gi', pods: '31' } },
    }),
    make(client, namespaceOffloadings, {
      metadata: { namespace: 'shop', name: 'offloading' },
      spec: { podStrategy: 'LocalAndRemote' },
      status: {
        clusters: ['milan', 'paris'].map((name) => ({
          cluster: idOf(name),
          clusterName: name,
          virtualNodes: [name],
          remoteNamespace: 'shop-rome',
          phase: 'Ready',
          reason: 'AsExpected',
        })),
        conditions: [condition('Ready', 'True')],
      },
    }),
    make(client, namespaces, { metadata: { name: 'weather' } }),
    event(client, [
      'Warning',
      'ExceededQuota',
      'create Pod web-milan-3 in shop-rome: exceeded quota: tenant, requested: pods=1, used: pods=110, limited: pods=110',
    ]),
    event(client, [
      'Normal',
      'Released',
      'Pod web-lyon-1 has found no place in lyon for 60 s and runs elsewhere',
    ]),
  ]);
}
