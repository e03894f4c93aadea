import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { servedNode } from '../../../src/certificates/serving-approver.ts';
import { forgeCluster } from '../../../src/deploy/cluster.ts';
import { forgeGateway } from '../../../src/deploy/gateway.ts';
import { forgeCleanUp, forgeNode } from '../../../src/deploy/node.ts';
import { groupAndResource } from '../../../src/api/rbac.ts';
import { CLUSTER_RIGHTS, rightsAt } from '../../../src/deploy/rights/cluster.ts';
import type { Container, PodSpec } from '../../../src/api/wire.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import type { Manifest } from '../../../src/api/manifest.ts';
import {
  agentAccount,
  forgeAgentPod,
  forgeAgentRights,
  forgePeersPod,
  type LaunchedAgent,
  PEERS_ACCOUNT,
} from '../../../src/deploy/launched-agent.ts';

const ID = 'a'.repeat(26);
const AGENT: LaunchedAgent = {
  clusterID: ID,
  virtualNodes: [
    { name: 'milan', nodeName: 'milan' },
    { name: 'milan-2', nodeName: 'node.milan-2' },
  ],
  namespaces: ['shop', 'web'],
  kubeconfigSecret: `tributary-kubeconfig-${ID}`,
  image: 'tributary:1',
};

const forgeLaunchedAgent = (agent: LaunchedAgent): Manifest[] => [
  ...forgeAgentRights(agent, [agentAccount(agent.clusterID)]),
  ...forgeAgentPod(agent),
];

const named = (
  objects: readonly { kind: string; metadata: { namespace?: string; name?: string } }[],
): string[] => objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);

test('an agent that is started is these objects, all of them marked with its provider', () => {
  const objects = forgeLaunchedAgent(AGENT);
  expect(named(objects)).toEqual([
    `Role tributary-system/tributary-peer-${ID}`,
    `RoleBinding tributary-system/tributary-peer-${ID}`,
    `RoleBinding shop/tributary-agent-${ID}`,
    `RoleBinding shop/tributary-agent-${ID}-kinds`,
    `RoleBinding web/tributary-agent-${ID}`,
    `RoleBinding web/tributary-agent-${ID}-kinds`,
    `ServiceAccount tributary-agents/tributary-peer-${ID}`,
    `Deployment tributary-agents/tributary-peer-${ID}`,
  ]);
  for (const { metadata } of objects) expect(metadata.labels).toMatchObject({ 'tributary.dev/provider': ID });
  expect(objects[0]).toMatchObject({
    rules: [
      { resources: ['secrets'], resourceNames: [`tributary-kubeconfig-${ID}`] },
      {
        apiGroups: ['tributary.dev'],
        resources: ['nodes'],
        resourceNames: ['milan', 'node.milan-2'],
        verbs: ['serve'],
      },
      { resources: ['virtualnodes'], resourceNames: ['milan', 'milan-2'], verbs: ['serve'] },
    ],
  });
});

test.each([
  [{ clusterID: 'Not/an id' }, 'cluster "Not/an id"'],
  [{ virtualNodes: [] }, 'no VirtualNode'],
  [{ virtualNodes: [{ name: 'a,b', nodeName: 'a' }] }, 'virtual node "a,b"'],
  [{ virtualNodes: [{ name: 'a', nodeName: "'); true || ('" }] }, 'node'],
  [{ namespaces: ['../x'] }, 'namespace "../x"'],
  [{ image: '-x' }, 'image'],
])('what is no name is refused: %j', (wrong, message) => {
  expect(() => forgeLaunchedAgent({ ...AGENT, ...wrong })).toThrow(message);
});

test('the agent of all has the Role of each provider, and its pod says of nobody that it serves him', () => {
  const subjects = forgeAgentRights(AGENT, [PEERS_ACCOUNT]).flatMap((object) =>
    'subjects' in object ? [object.subjects] : [],
  );
  expect(subjects).toHaveLength(5);
  for (const one of subjects) {
    expect(one).toEqual([{ kind: 'ServiceAccount', namespace: 'tributary-agents', name: 'tributary-peers' }]);
  }
  const pod = forgePeersPod(AGENT);
  expect(named(pod)).toEqual([
    'ServiceAccount tributary-agents/tributary-peers',
    'Deployment tributary-agents/tributary-peers',
  ]);
  expect(JSON.stringify(pod)).not.toMatch(/milan|shop|aaaa/u);
});

test('certificates are for the account that serves the node', () => {
  const node = (labels?: Record<string, string>): VirtualNode =>
    ({ metadata: { name: 'milan', ...(labels && { labels }) }, spec: { nodeName: 'n' } }) as VirtualNode;
  expect(servedNode(node(), 'ours')).toEqual({
    nodeName: 'n',
    username: 'system:serviceaccount:ours:tributary-peer-milan',
  });
  expect(servedNode(node({ 'tributary.dev/provider': ID }), 'ours')).toEqual({
    nodeName: 'n',
    username: `system:serviceaccount:tributary-agents:tributary-peer-${ID}`,
  });
  const ofAll = { 'tributary.dev/agent': 'peers' };
  expect(servedNode(node({ 'tributary.dev/provider': ID, ...ofAll }), 'ours')).toEqual({
    nodeName: 'n',
    username: 'system:serviceaccount:tributary-agents:tributary-peers',
  });
  // What people have set up is not of a provider, whatever else it says.
  expect(servedNode(node(ofAll), 'ours').username).toBe('system:serviceaccount:ours:tributary-peer-milan');
});

test('the cluster role gets no right to make cluster roles, bindings of them or policies cluster-wide, and no wildcard', () => {
  const everywhere = rightsAt(CLUSTER_RIGHTS);
  const makes = everywhere.filter(({ verbs }) =>
    verbs.some((verb) => ['create', 'update', 'patch', 'delete'].includes(verb)),
  );
  const kinds = makes.map((right) => groupAndResource(right).resource);
  for (const kind of ['clusterroles', 'clusterrolebindings', 'validatingadmissionpolicies', 'secrets']) {
    expect(kinds).not.toContain(kind);
  }
  const reads = everywhere.filter((right) =>
    ['secrets', 'configmaps'].includes(groupAndResource(right).resource),
  );
  expect(reads).toEqual([]);
  expect(JSON.stringify(CLUSTER_RIGHTS)).not.toContain('"*"');
  expect(everywhere.filter(({ verbs }) => verbs.includes('bind')).flatMap(({ names }) => names)).toEqual([
    'tributary-tenant',
    'tributary-tenant-logs',
    'tributary-peer-kinds',
    'tributary-agent-namespace',
    'tributary-agent-kinds',
  ]);
});

test('rights of one place name each object once', () => {
  for (const { namespace } of CLUSTER_RIGHTS) {
    const keys = rightsAt(CLUSTER_RIGHTS, namespace).map(
      ({ resource, names }) => `${resource} ${names?.join()}`,
    );
    expect(new Set(keys).size).toBe(keys.length);
  }
});

test('the cluster role starts agents of its own image, and hands its options on', () => {
  const objects = forgeCluster({
    image: 'tributary:7',
    priorityClassName: 'high',
    service: { type: 'NodePort', nodePort: 30_743 },
    args: ['--advertise', 'a:1'],
  });
  expect(objects.at(-1)).toMatchObject({
    kind: 'Deployment',
    spec: {
      template: {
        spec: {
          containers: [
            {
              image: 'tributary:7',
              args: [
                'run',
                'cluster',
                '--agent-image',
                'tributary:7',
                '--agent-priority-class',
                'high',
                '--advertise',
                'a:1',
              ],
            },
          ],
        },
      },
    },
  });
  expect(objects.find(({ kind }) => kind === 'Service')).toMatchObject({
    metadata: { namespace: 'tributary-system', name: 'tributary-peering' },
    spec: { type: 'NodePort', ports: [{ port: 7443, targetPort: 'peering', nodePort: 30_743 }] },
  });
  expect(() => forgeCluster({ image: 'x', service: { type: 'ClusterIP', nodePort: 1 } })).toThrow(
    'node port',
  );
});

test.each([
  ['ClusterIP', undefined, undefined],
  ['ClusterIP', 'Local', undefined],
  ['NodePort', undefined, 'Cluster'],
  ['NodePort', 'Local', 'Local'],
  ['LoadBalancer', undefined, 'Local'],
  ['LoadBalancer', 'Auto', 'Local'],
  ['LoadBalancer', 'Cluster', 'Cluster'],
] as const)('traffic policy of a %s, with %s: %s', (type, chosen, policy) => {
  const service = { type, ...(chosen && { trafficPolicy: chosen }) };
  const made = forgeCluster({ image: 'x', service }).find(({ kind }) => kind === 'Service');
  expect((made as { spec?: object }).spec).toEqual(
    policy === undefined
      ? expect.not.objectContaining({ externalTrafficPolicy: expect.anything() })
      : expect.objectContaining({ externalTrafficPolicy: policy }),
  );
});

test('fences come before the rights that they bound', () => {
  const order = named(forgeCluster({ image: 'tributary:1' }));
  const at = (text: string): number => order.findIndex((name) => name.startsWith(text));
  expect(at('ValidatingAdmissionPolicyBinding /tributary-agents')).toBeLessThan(
    at('ClusterRole /tributary-agents'),
  );
  for (const name of ['lending', 'launching', 'borrowing']) {
    const fence = at(`ValidatingAdmissionPolicyBinding /tributary-${name}`);
    expect(fence).toBeGreaterThan(0);
    expect(fence).toBeLessThan(at('ClusterRole /tributary-cluster'));
  }
});

interface PodOf {
  spec: { template: { spec: PodSpec } };
}

const podOf = (objects: readonly object[]): PodSpec => (objects.at(-1) as PodOf).spec.template.spec;
const ONLY_NETWORKS = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
};

test('a gateway for discovery only is on the host network, in a namespace of its own, and otherwise hardened', () => {
  const objects = forgeGateway({ image: 'tributary:1', network: false });
  expect(named(objects).filter((name) => name.includes('tributary-system/'))).toEqual([
    'Role tributary-system/tributary-gateway',
    'RoleBinding tributary-system/tributary-gateway',
  ]);
  const text = JSON.stringify(objects);
  for (const more of ['tunnels', 'wireguard', 'secrets', 'NET_ADMIN']) expect(text).not.toContain(more);
  const pod = podOf(objects);
  expect(pod).toMatchObject({
    hostNetwork: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    securityContext: { runAsNonRoot: true },
    containers: [{ securityContext: { capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true } }],
  });
  expect(pod.containers[0]?.args).toEqual(expect.arrayContaining(['--network', 'off']));
  expect(pod.volumes).toBeUndefined();
});

test('a gateway may make nothing but what is its own, and no token of another account', () => {
  const objects = forgeGateway({ image: 'tributary:1' });
  const kinds = objects.map(({ kind }) => kind);
  const policy = objects[kinds.indexOf('ValidatingAdmissionPolicy')];
  expect(policy).toMatchObject({
    metadata: { name: 'tributary-gateway' },
    spec: {
      failurePolicy: 'Fail',
      matchConditions: [
        {
          expression: expect.stringContaining("'system:serviceaccount:tributary-network:tributary-gateway'"),
        },
      ],
    },
  });
  const text = JSON.stringify(policy);
  for (const own of ['tributary-wireguard', 'tributary-gateway', "== 'Opaque'"]) expect(text).toContain(own);
  expect(text).not.toContain('tributary-preshared');
  // In force before the account is used.
  expect(kinds.indexOf('ValidatingAdmissionPolicyBinding')).toBeLessThan(kinds.indexOf('Deployment'));
});

test('a gateway may change networks and nothing else, and its tunnel is a container without an account', () => {
  const objects = forgeGateway({
    image: 'tributary:1',
    replicas: 2,
    wireguardInterface: 'wgx',
    wireguardPort: 4,
  });
  expect(objects.at(-1)).toMatchObject({
    spec: { replicas: 2, strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
  });
  const pod = podOf(objects);
  expect(pod).toMatchObject({
    hostNetwork: true,
    automountServiceAccountToken: false,
    securityContext: { runAsUser: 0, seccompProfile: { type: 'RuntimeDefault' } },
  });
  expect(pod.securityContext).not.toHaveProperty('runAsNonRoot');
  const [gateway, wireguard] = pod.containers;
  expect(pod.containers.map(({ name }) => name)).toEqual(['gateway', 'wireguard']);
  for (const container of pod.containers) expect(container.securityContext).toEqual(ONLY_NETWORKS);
  expect(gateway?.ports).toContainEqual({ name: 'wireguard', containerPort: 4, protocol: 'UDP' });
  expect(gateway?.env).toContainEqual({
    name: 'NODE_NAME',
    valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } },
  });
  const mounts = (container?: Container): (string | undefined)[] =>
    (container?.volumeMounts ?? []).map(({ mountPath }) => mountPath);
  expect(mounts(gateway)).toEqual(['/var/run/wireguard', '/var/run/secrets/kubernetes.io/serviceaccount']);
  expect(mounts(wireguard)).toEqual(['/var/run/wireguard', '/dev/net/tun']);
  expect(wireguard?.command?.slice(-2)).toEqual(['wgx', 'auto']);
  expect(gateway?.args).toEqual(expect.arrayContaining(['--wireguard-interface', 'wgx']));
});

test.each([
  ['node', forgeNode({ image: 'tributary:1' })],
  ['clean-up', forgeCleanUp({ image: 'tributary:1' })],
])('%s runs on every node that is one, and may change networks only', (name, objects) => {
  const pod = podOf(objects);
  expect(objects.at(-1)).toMatchObject({ kind: 'DaemonSet', metadata: { namespace: 'tributary-network' } });
  expect(pod.tolerations).toEqual([{ operator: 'Exists' }]);
  expect(JSON.stringify(pod.affinity)).toContain('"operator":"NotIn","values":["virtual-node"]');
  const container = [...(pod.initContainers ?? []), ...pod.containers][0];
  expect(container).toMatchObject({ name, securityContext: ONLY_NETWORKS });
  expect(container?.args?.slice(0, 2).join(' ')).toMatch(new RegExp(`^(run )?${name}\\b`));
});

test('what cleans up asks no API server', () => {
  const objects = forgeCleanUp({ image: 'tributary:1' });
  expect(objects.map(({ kind }) => kind)).toEqual(['Namespace', 'DaemonSet']);
  expect(podOf(objects).automountServiceAccountToken).toBe(false);
});

test('the version of wireguard-go in the image is the one that is tested', () => {
  const read = (file: string): string => readFileSync(join(import.meta.dirname, '../../..', file), 'utf8');
  const pinned = /^\tgolang\.zx2c4\.com\/wireguard (\S+)/m.exec(read('lab/binaries/programs/go.mod'))?.[1];
  expect(pinned).toBeDefined();
  expect(read('Dockerfile')).toContain(`ARG WIREGUARD_GO=${pinned}\n`);
});
