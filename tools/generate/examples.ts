/** What the commands print for one made-up pair of clusters, and objects that a user writes by hand. */
import { SYSTEM_NAMESPACE } from '../../src/api/manifest.ts';
import { LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { API_VERSION, type VirtualNode } from '../../src/api/virtual-node.ts';
import { printYaml } from '../../src/cli/yaml.ts';
import { forgeCluster } from '../../src/deploy/cluster.ts';
import { forgeGateway } from '../../src/deploy/gateway.ts';
import { forgeNode } from '../../src/deploy/node.ts';
import { forgeAgent } from '../../src/deploy/peer.ts';
import { forgeManualTenant } from '../../src/hosting/tenants/manual-tenant.ts';
import { NAMESPACE_EXAMPLES } from './examples-namespaces.ts';
import { PEERING_EXAMPLES } from './examples-peering.ts';

const IMAGE = 'tributary:0.1.0';
const VIRTUAL_NODE = 'milan';
const HOME_NAMESPACE = 'shop';
const TENANT_NAMESPACE = 'rome-shop';
const KUBECONFIG_SECRET = { namespace: SYSTEM_NAMESPACE, name: `${VIRTUAL_NODE}-kubeconfig` };

const virtualNode: Pick<VirtualNode, 'apiVersion' | 'kind' | 'spec'> & { metadata: { name: string } } = {
  apiVersion: API_VERSION,
  kind: 'VirtualNode',
  metadata: { name: VIRTUAL_NODE },
  spec: {
    kubeconfigSecretRef: KUBECONFIG_SECRET,
    resources: { cpu: '4', memory: '8Gi', pods: '100' },
    labels: { 'topology.kubernetes.io/region': 'milan' },
    namespaces: [{ homeNamespace: HOME_NAMESPACE, tenantNamespace: TENANT_NAMESPACE }],
  },
};

const labels = { app: 'hello' };

/** Affinity sends the pods there; the toleration lets them in. */
const deployment: object = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'hello', namespace: HOME_NAMESPACE, labels },
  spec: {
    replicas: 2,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: LABEL_VIRTUAL_NODE, operator: 'In', values: [VIRTUAL_NODE] }] },
              ],
            },
          },
        },
        tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
        containers: [
          {
            name: 'hello',
            image: 'registry.k8s.io/e2e-test-images/agnhost:2.53',
            args: ['netexec', '--http-port=8080'],
            ports: [{ containerPort: 8080 }],
            resources: { requests: { cpu: '50m', memory: '32Mi' }, limits: { memory: '64Mi' } },
          },
        ],
      },
    },
  },
};

/** Path -> text. */
export function exampleFiles(): Record<string, string> {
  const peer = forgeAgent({
    virtualNode: VIRTUAL_NODE,
    namespaces: [HOME_NAMESPACE],
    image: IMAGE,
    kubeconfigSecret: KUBECONFIG_SECRET,
  });
  const tenant = forgeManualTenant({ peer: 'rome', namespaces: [TENANT_NAMESPACE] });
  return {
    'deploy/cluster.yaml': made(`manifests cluster --image ${IMAGE}`, forgeCluster({ image: IMAGE })),
    'deploy/gateway.yaml': made(`manifests gateway --image ${IMAGE}`, forgeGateway({ image: IMAGE })),
    'deploy/node.yaml': made(`manifests node --image ${IMAGE}`, forgeNode({ image: IMAGE })),
    'deploy/examples/peer.yaml': made(
      `manifests peer --virtual-node ${VIRTUAL_NODE} --namespaces ${HOME_NAMESPACE} --image ${IMAGE}`,
      peer,
    ),
    'deploy/examples/tenant.yaml': made(`tenant --peer rome --namespace ${TENANT_NAMESPACE}`, tenant),
    'deploy/examples/virtual-node.yaml': commented(
      `In the home cluster (rome): the foreign cluster (milan) as a node, and a Deployment that runs on it.\n` +
        `# Affinity sends its pods there, the toleration lets them in.`,
      [virtualNode, deployment],
    ),
    ...Object.fromEntries(
      Object.entries({ ...PEERING_EXAMPLES, ...NAMESPACE_EXAMPLES }).map(([path, [comment, objects]]) => [
        path,
        commented(comment, objects),
      ]),
    ),
  };
}

const made = (command: string, objects: readonly object[]): string =>
  commented(`Printed by \`tributary ${command}\`; kept up to date by tools/generate.ts.`, objects);

const commented = (comment: string, objects: readonly object[]): string =>
  `# ${comment}\n${printYaml(objects)}`;
