/** The `cluster` role as objects to apply: one Deployment, its account and its rights. */
import { APP_NAME, LABEL_APP_INSTANCE, LABEL_APP_NAME, type Manifest } from '../../api/manifest.ts';
import { forgeGrant, rulesOf, type Right } from '../../api/rbac.ts';
import { OPS_PORT, forgeDeployment } from './manifests-deployment.ts';
import { SYSTEM_NAMESPACE, checkedImage } from './manifests.ts';

const NAME = 'tributary-cluster';

export interface ClusterOptions {
  image: string;
  priorityClassName?: string;
}

/** Cluster-wide rights of the `cluster` role. */
export const CLUSTER_RIGHTS: readonly Right[] = [
  {
    group: 'certificates.k8s.io',
    resource: 'certificatesigningrequests',
    verbs: ['list', 'watch'],
    why: 'finds requests of agents for serving certificates',
  },
  {
    group: 'certificates.k8s.io',
    resource: 'certificatesigningrequests/approval',
    verbs: ['update'],
    why: 'approves one after it was checked against the agent that asks',
  },
  {
    group: 'certificates.k8s.io',
    resource: 'signers',
    names: ['kubernetes.io/kubelet-serving'],
    verbs: ['approve'],
    why: 'for this signer only: no client certificate can be approved',
  },
  {
    group: 'tributary.dev',
    resource: 'virtualnodes',
    verbs: ['list', 'watch'],
    why: 'which node belongs to which agent',
  },
];

/** Rights of the `cluster` role in tributary-system. */
export const CLUSTER_SYSTEM_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'whether the address in a request is that of the agent that asks',
  },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['create'],
    why: 'makes the Lease by which one of several replicas leads',
  },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    names: [NAME],
    verbs: ['get', 'update'],
    why: 'takes and renews it',
  },
];

/** All objects of the `cluster` role, the namespace included, in the order in which they must be applied. */
export function forgeCluster(options: ClusterOptions): Manifest[] {
  const labels = { [LABEL_APP_NAME]: APP_NAME, [LABEL_APP_INSTANCE]: NAME };
  const account = { namespace: SYSTEM_NAMESPACE, name: NAME };
  const grant = { name: NAME, labels, account };
  return [
    forgeSystemNamespace(),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels } },
    ...forgeGrant({ ...grant, rules: rulesOf(CLUSTER_RIGHTS) }),
    ...forgeGrant({ ...grant, namespace: SYSTEM_NAMESPACE, rules: rulesOf(CLUSTER_SYSTEM_RIGHTS) }),
    forgeDeployment({
      ...options,
      image: checkedImage(options.image),
      account,
      labels,
      args: ['cluster'],
      ports: { ops: OPS_PORT },
      memoryLimit: '256Mi',
    }),
  ];
}

/** Pod Security `restricted`: none of our own pods needs more. */
function forgeSystemNamespace(): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: SYSTEM_NAMESPACE,
      labels: { [LABEL_APP_NAME]: APP_NAME, 'pod-security.kubernetes.io/enforce': 'restricted' },
    },
  };
}
