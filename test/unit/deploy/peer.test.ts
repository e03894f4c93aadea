import { expect, test } from '@jest/globals';
import { forgeCluster } from '../../../src/deploy/cluster.ts';
import { forgeAgent, type AgentOptions } from '../../../src/deploy/peer.ts';

const OPTIONS: AgentOptions = {
  virtualNode: 'milan',
  namespaces: ['shop', 'web'],
  image: 'tributary:1',
  kubeconfigSecret: { namespace: 'tributary-system', name: 'milan-kubeconfig' },
};
const objects = forgeAgent(OPTIONS);

interface Rules {
  rules?: { resources?: string[]; resourceNames?: string[]; verbs: string[] }[];
}

test('one agent is these objects', () => {
  expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`)).toEqual(
    [
      'ServiceAccount tributary-system/tributary-peer-milan',
      'ValidatingAdmissionPolicy /tributary-peer-milan',
      'ValidatingAdmissionPolicyBinding /tributary-peer-milan',
      'ClusterRole /tributary-peer-milan',
      'ClusterRoleBinding /tributary-peer-milan',
      'Role kube-node-lease/tributary-peer-milan',
      'RoleBinding kube-node-lease/tributary-peer-milan',
      'RoleBinding kube-system/tributary-peer-milan',
      'Role tributary-system/tributary-peer-milan-kubeconfig',
      'RoleBinding tributary-system/tributary-peer-milan-kubeconfig',
      'Role default/tributary-peer-milan-events',
      'RoleBinding default/tributary-peer-milan-events',
      'Role tributary-system/tributary-peer-milan-settings',
      'RoleBinding tributary-system/tributary-peer-milan-settings',
      'Role shop/tributary-peer-milan',
      'RoleBinding shop/tributary-peer-milan',
      'Role web/tributary-peer-milan',
      'RoleBinding web/tributary-peer-milan',
      'ClusterRole /tributary-peer-milan-kinds',
      'RoleBinding shop/tributary-peer-milan-kinds',
      'RoleBinding web/tributary-peer-milan-kinds',
      'Deployment tributary-system/tributary-peer-milan',
    ],
  );
});

test('no Secret and no ConfigMap is in its ClusterRole', () => {
  const clusterRole = objects.find(({ kind }) => kind === 'ClusterRole') as Rules | undefined;
  const resources = (clusterRole?.rules ?? []).flatMap((rule) => rule.resources ?? []);
  expect(resources).toContain('pods/status');
  expect(resources.filter((name) => /secret|configmap|serviceaccount|\*/.test(name))).toEqual([]);
});

test('the agent and the cluster role run hardened, alone, and on no virtual node', () => {
  for (const deployment of [...objects, ...forgeCluster({ image: 'tributary:1' })].filter(
    ({ kind }) => kind === 'Deployment',
  )) {
    expect(deployment).toMatchObject({
      spec: {
        replicas: 1,
        strategy: { type: 'Recreate' },
        template: {
          spec: {
            securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
            affinity: {
              nodeAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: {
                  nodeSelectorTerms: [
                    {
                      matchExpressions: [
                        { key: 'tributary.dev/node-type', operator: 'NotIn', values: ['virtual-node'] },
                      ],
                    },
                  ],
                },
              },
            },
            containers: [
              {
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ['ALL'] },
                },
              },
            ],
          },
        },
      },
    });
  }
});

test('a start that takes minutes on a busy node is not killed', () => {
  const deployments = [...objects, ...forgeCluster({ image: 'tributary:1' })].filter(
    ({ kind }) => kind === 'Deployment',
  );
  expect(deployments).toHaveLength(2);
  for (const deployment of deployments) {
    const httpGet = { path: '/livez?start', port: 'ops' };
    const startupProbe = { httpGet, periodSeconds: 1, failureThreshold: 300 };
    expect(deployment).toMatchObject({ spec: { template: { spec: { containers: [{ startupProbe }] } } } });
  }
});

test('the agent is told which virtual node it is', () => {
  const [agent] = forgeAgent({ ...OPTIONS, priorityClassName: 'important' }).slice(-1);
  expect(agent).toMatchObject({
    spec: {
      template: {
        spec: {
          priorityClassName: 'important',
          serviceAccountName: 'tributary-peer-milan',
          containers: [{ image: 'tributary:1', args: ['run', 'peer', '--virtual-node', 'milan'] }],
        },
      },
    },
  });
});

test('the node may have another name; rights are to that one', () => {
  const text = JSON.stringify(forgeAgent({ ...OPTIONS, node: 'far.away' }));
  expect(text).toContain('"resourceNames":["far.away"]');
  expect(text).toContain("== 'far.away'");
});

test.each([
  [{ virtualNode: 'n'.repeat(49) }, 'at most 48'],
  [{ virtualNode: 'a.b' }, 'virtual node "a.b" is not a DNS name'],
  [{ node: "x' || true || '" }, 'is not a DNS name'],
  [{ node: 'n'.repeat(64) }, 'at most 63'],
  [{ namespaces: ['shop', 'shop'] }, 'namespace "shop" is given twice'],
  [{ namespaces: ['kube-system'] }, 'cannot be offloaded'],
  [{ namespaces: ['tributary-system'] }, 'cannot be offloaded'],
  [{ image: '' }, 'is not the name of a container image'],
  [{ image: 'a b' }, 'is not the name of a container image'],
  [{ kubeconfigSecret: { namespace: '', name: 'x' } }, 'namespace of the kubeconfig Secret is empty'],
])('refuses %j in one line', (change, message) => {
  expect(() => forgeAgent({ ...OPTIONS, ...change })).toThrow(message);
});

test('the program is not process 1, which is deaf to SIGTERM while it starts', () => {
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  expect(deployment).toMatchObject({ spec: { template: { spec: { shareProcessNamespace: true } } } });
});
