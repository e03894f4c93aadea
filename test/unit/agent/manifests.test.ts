import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { servedNode } from '../../../src/agent/approver.ts';
import { forgeCluster } from '../../../src/agent/manifests-cluster.ts';
import { forgeGateway } from '../../../src/agent/manifests-gateway.ts';
import { CLUSTER_RIGHTS, rightsAt } from '../../../src/agent/rights-cluster.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import { forgeLaunchedAgent, type LaunchedAgent } from '../../../src/provider/agent/manifests-launched.ts';

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

const named = (
  objects: readonly { kind: string; metadata: { namespace?: string; name?: string } }[],
): string[] => objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);

test('an agent that is started is these objects, all of them marked with its provider', () => {
  const objects = forgeLaunchedAgent(AGENT);
  expect(named(objects)).toEqual([
    `ServiceAccount tributary-agents/tributary-peer-${ID}`,
    `Role tributary-system/tributary-peer-${ID}`,
    `RoleBinding tributary-system/tributary-peer-${ID}`,
    `RoleBinding shop/tributary-agent-${ID}`,
    `RoleBinding web/tributary-agent-${ID}`,
    `Deployment tributary-agents/tributary-peer-${ID}`,
  ]);
  for (const { metadata } of objects) expect(metadata.labels).toMatchObject({ 'tributary.dev/provider': ID });
  expect(objects[1]).toMatchObject({
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
});

test('the cluster role gets no right to make roles, bindings or policies cluster-wide, and no wildcard', () => {
  const everywhere = rightsAt(CLUSTER_RIGHTS);
  const makes = everywhere.filter(({ verbs }) =>
    verbs.some((verb) => ['create', 'update', 'patch', 'delete'].includes(verb)),
  );
  const kinds = makes.map(({ resource }) => resource);
  for (const kind of [
    'clusterroles',
    'clusterrolebindings',
    'roles',
    'validatingadmissionpolicies',
    'secrets',
  ]) {
    expect(kinds).not.toContain(kind);
  }
  const reads = everywhere.filter(({ resource }) => ['secrets', 'configmaps'].includes(resource));
  expect(reads).toEqual([]);
  expect(JSON.stringify(CLUSTER_RIGHTS)).not.toContain('"*"');
  expect(everywhere.filter(({ verbs }) => verbs.includes('bind')).flatMap(({ names }) => names)).toEqual([
    'tributary-tenant',
    'tributary-agent-namespace',
  ]);
});

test('rights of one place name each object once', () => {
  for (const { namespace } of CLUSTER_RIGHTS) {
    const keys = rightsAt(CLUSTER_RIGHTS, namespace).map(
      ({ group, resource, names }) => `${group}/${resource} ${names?.join()}`,
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

test('the gateway is on the host network, in a namespace of its own, and otherwise hardened', () => {
  const objects = forgeGateway({ image: 'tributary:1' });
  expect(named(objects).filter((name) => name.includes('tributary-system/'))).toEqual([
    'Role tributary-system/tributary-gateway',
    'RoleBinding tributary-system/tributary-gateway',
  ]);
  expect(objects.at(-1)).toMatchObject({
    metadata: { namespace: 'tributary-network' },
    spec: {
      template: {
        spec: {
          hostNetwork: true,
          dnsPolicy: 'ClusterFirstWithHostNet',
          securityContext: { runAsNonRoot: true },
          containers: [
            { securityContext: { capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true } },
          ],
        },
      },
    },
  });
});
