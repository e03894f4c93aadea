/** What a person types to get pods of `home` to run in `foreign`: the same for the demo and for end-to-end tests. */
import { agentImageName } from '../images-agent.ts';
import type { Lab } from '../lab.ts';

export interface PeeringStep {
  readonly title: string;
  readonly commands: readonly string[];
}

export interface PeeringOptions {
  /** Home namespaces; each gets a tenant namespace `home-NAME`. */
  readonly namespaces: readonly string[];
  /** Amounts for `tributary tenant --quota`. */
  readonly quota: string;
  /** What the virtual node offers. */
  readonly resources: Readonly<Record<'cpu' | 'memory' | 'pods', string>>;
}

export const tenantOf = (namespace: string): string => `home-${namespace}`;

/** The VirtualNode `foreign`, as YAML. */
export function virtualNodeYaml(lab: Lab, { namespaces, resources }: PeeringOptions): string {
  const { hostname, port } = new URL(lab.cluster('home').server);
  return `apiVersion: tributary.dev/v1alpha1
kind: VirtualNode
metadata:
  name: foreign
spec:
  kubeconfigSecretRef:
    namespace: tributary-system
    name: foreign-kubeconfig
  resources:
    cpu: '${resources.cpu}'
    memory: ${resources.memory}
    pods: '${resources.pods}'
  homeApiServer:
    host: ${hostname}
    port: ${port}
  namespaces:
${namespaces
  .map((namespace) => `    - homeNamespace: ${namespace}\n      tenantNamespace: ${tenantOf(namespace)}`)
  .join('\n')}
`;
}

/** Commands for a workbench whose folder holds `virtual-node.yaml`. */
export function peeringSteps({ namespaces, quota }: PeeringOptions): PeeringStep[] {
  const tenants = namespaces.map(tenantOf);
  const image = agentImageName;
  return [
    {
      title: 'the provider makes a tenant',
      // Server-side: the cluster makes the account `default` of a new namespace at the same moment.
      commands: [
        `tributary tenant --peer home --namespace ${tenants.join()} --quota ${quota} | kubectl --context foreign apply --server-side -f -`,
      ],
    },
    {
      title: 'Tributary in the home cluster',
      commands: [
        'tributary manifests crds | kubectl apply -f -',
        `tributary manifests cluster --image ${image} | kubectl apply -f -`,
        'kubectl wait --for=condition=Established crd/virtualnodes.tributary.dev --timeout=60s',
      ],
    },
    {
      title: 'the credential and the virtual node',
      commands: [
        `tributary tenant-kubeconfig --peer home --namespace ${tenants[0]} --context foreign |` +
          ' kubectl -n tributary-system create secret generic foreign-kubeconfig --from-file=kubeconfig=/dev/stdin',
        'kubectl apply -f virtual-node.yaml',
        `tributary manifests peer --virtual-node foreign --namespaces ${namespaces.join()} --image ${image} | kubectl apply -f -`,
      ],
    },
    {
      title: 'the foreign cluster is a node',
      commands: [
        'kubectl wait --for=create node/foreign --timeout=60s',
        'kubectl wait --for=condition=Ready node/foreign --timeout=60s',
      ],
    },
  ];
}
