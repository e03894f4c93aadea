/** What `tributary uninstall --prepare` does in a cluster, for the account that does it for Helm. */
import { customResourceDefinitions } from '../../api/crd/index.ts';
import { CLUSTER_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import type { Right } from '../../api/rbac.ts';
import { SHORT_FORM_FENCE } from '../../offloading/short-form-fence.ts';
import { UNINSTALL_FENCE } from '../installation/uninstall-fence.ts';
import { CLEAN_UP_NAME } from '../node.ts';
import { NETWORK_NAMESPACE } from '../program.ts';
import { GATEWAY_NAME, NODE_NAME, type PlaceRights } from './cluster.ts';

const OBJECTS_RIGHTS: readonly Right[] = [
  ...customResourceDefinitions().map(({ metadata }): Right => ({
    resource: metadata.name ?? '',
    verbs: ['list', 'patch', 'delete'],
    why: 'ends what there is, and takes our finalizers off where nobody finishes it',
  })),
  {
    resource: 'searchdomains.tributary.dev',
    verbs: ['create'],
    why: 'asks, without making one, whether new objects are refused by now',
  },
  {
    resource: 'persistentvolumes',
    verbs: ['list'],
    why: 'does not begin while volumes in foreign clusters hold data',
  },
];

const DOOR_RIGHTS: readonly Right[] = [
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'].map((plural): Right => ({
    resource: `${plural}.admissionregistration.k8s.io`,
    names: [UNINSTALL_FENCE],
    verbs: ['create', 'patch'],
    why: 'from now on nothing new of Tributary is made',
  })),
  {
    resource: 'validatingadmissionpolicybindings.admissionregistration.k8s.io',
    names: [SHORT_FORM_FENCE],
    verbs: ['delete'],
    why: 'what a label has made may be deleted',
  },
];

const TENANTS_RIGHTS: readonly Right[] = [
  {
    resource: 'namespaces',
    verbs: ['list', 'delete'],
    why: 'those that were made for peers, and no others: an admission policy says so',
  },
  {
    resource: 'namespaces',
    names: [SYSTEM_NAMESPACE, NETWORK_NAMESPACE],
    verbs: ['get'],
    why: 'whether they are there',
  },
];

const HOSTS_RIGHTS: readonly Right[] = [
  {
    resource: 'deployments.apps',
    names: [GATEWAY_NAME],
    verbs: ['get', 'delete'],
    why: 'would set up again what is removed from hosts',
  },
  {
    resource: 'daemonsets.apps',
    names: [NODE_NAME],
    verbs: ['get', 'delete'],
    why: 'likewise',
  },
  {
    resource: 'daemonsets.apps',
    names: [CLEAN_UP_NAME],
    verbs: ['get', 'create', 'patch', 'delete'],
    why: 'cleans every host',
  },
  { resource: 'pods', verbs: ['list'], why: 'whether they have ended, and which host is not clean' },
];

export const UNINSTALL_RIGHTS: readonly PlaceRights[] = [
  {
    parts: [
      { part: 'objects', rights: OBJECTS_RIGHTS },
      { part: 'door', rights: DOOR_RIGHTS },
      { part: 'tenants', rights: TENANTS_RIGHTS },
    ],
  },
  {
    namespace: SYSTEM_NAMESPACE,
    parts: [
      {
        part: 'roles',
        rights: [
          {
            resource: 'deployments.apps',
            names: [CLUSTER_NAME],
            verbs: ['get', 'delete'],
            why: 'whether role `cluster` runs, and its image; delete: where all roles are one process, it would set up again what is removed from hosts',
          },
          { resource: 'pods', verbs: ['list'], why: 'whether that process has ended' },
        ],
      },
    ],
  },
  { namespace: NETWORK_NAMESPACE, parts: [{ part: 'hosts', rights: HOSTS_RIGHTS }] },
];
