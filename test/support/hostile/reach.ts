/** Services, endpoints and Ingresses that would draw traffic of others, and writes where a peer has no business. */
import { LABEL_SERVICE_NAME, LABEL_SLICE_MANAGED_BY, SLICE_MANAGER } from '../../../src/api/names.ts';
import { ingress, annotated, withHost, withPath } from './tenant-objects.ts';
import { aPod, changes, makes, MARKS, objectOf, pathOf, type HostileRow, type HostileStage } from './row.ts';

const SERVICES = 'v1/services';
const SLICES = 'discovery.k8s.io/v1/endpointslices';
const INGRESSES = 'networking.k8s.io/v1/ingresses';
const PREFIXES = 'may name addresses of the peer only';

const service = (name: string, tries: string, reason: string, spec: object): HostileRow =>
  makes(
    SERVICES,
    name,
    tries,
    reason,
    objectOf('v1', 'Service', `hostile-${name}`, { spec: { ports: [{ port: 80 }], ...spec } }),
  );
const sliceOf = (name: string, endpoint: object, labels: object = {}): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: `hostile-${name}`,
    labels: {
      ...MARKS,
      [LABEL_SERVICE_NAME]: 'web',
      [LABEL_SLICE_MANAGED_BY]: SLICE_MANAGER,
      ...labels,
    },
  },
  addressType: 'IPv4',
  ports: [{ port: 80 }],
  endpoints: [{ addresses: ['100.99.0.1'], ...endpoint }],
});
const slice = (
  name: string,
  tries: string,
  reason: string,
  ...[endpoint, labels]: [object, object?]
): HostileRow => makes(SLICES, name, tries, reason, sliceOf(name, endpoint, labels));
const at = (address: string): object => ({ addresses: [address] });
const ingresses = (name: string, tries: string, reason: string, change: object): HostileRow =>
  makes(INGRESSES, name, tries, reason, ingress(change));

const elsewhere = (row: HostileRow, namespace: (stage: HostileStage) => string | null): HostileRow => ({
  ...row,
  send: { ...row.send, namespace },
});

const NAMESPACES: readonly HostileRow[] = [
  elsewhere(
    makes('v1/pods', 'tenant-of-another', "another peer's tenant", 'cannot create resource', aPod('hostile')),
    ({ other }) => other,
  ),
  elsewhere(
    makes('v1/pods', 'kube-system', 'the control plane', 'cannot create resource', aPod('hostile')),
    () => 'kube-system',
  ),
  elsewhere(
    makes(
      'v1/secrets',
      'peers',
      'accounts of all peers',
      'cannot create resource',
      objectOf('v1', 'Secret', 'hostile'),
    ),
    () => 'tributary-peers',
  ),
  elsewhere(
    makes(
      'v1/namespaces',
      'namespace',
      'a namespace without bounds',
      'cannot create resource',
      objectOf('v1', 'Namespace', 'hostile'),
    ),
    () => null,
  ),
  elsewhere(
    changes(
      ['PATCH', 'v1/namespaces', 'default'],
      'foreign-namespace',
      'a namespace without bounds',
      'cannot patch resource',
      { metadata: { labels: { a: 'b' } } },
    ),
    () => null,
  ),
  changes(
    ['PATCH', 'v1/resourcequotas', 'tributary'],
    'quota',
    'more than was lent',
    'cannot patch resource',
    { spec: { hard: null } },
  ),
  changes(
    ['DELETE', 'v1/resourcequotas', 'tributary'],
    'no-quota',
    'more than was lent',
    'cannot delete resource',
  ),
  changes(
    ['DELETE', 'networking.k8s.io/v1/networkpolicies', 'tributary'],
    'no-isolation',
    'pods of other peers',
    'cannot delete resource',
  ),
  makes(
    'rbac.authorization.k8s.io/v1/rolebindings',
    'role-binding',
    'all rights in the tenant',
    'cannot create resource',
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'hostile' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [],
    },
  ),
  makes(
    'v1/serviceaccounts',
    'account',
    'an account of this cluster',
    'cannot create resource',
    objectOf('v1', 'ServiceAccount', 'hostile'),
  ),
  makes(
    'v1/events',
    'event',
    'what our people read',
    'cannot create resource',
    objectOf('v1', 'Event', 'hostile'),
  ),
  makes(
    'apps/v1/deployments',
    'deployment',
    'pods that are made by others',
    'cannot create resource',
    objectOf('apps/v1', 'Deployment', 'hostile'),
  ),
  makes(
    'v1/endpoints',
    'endpoints',
    'endpoints past the policy',
    'cannot create resource',
    objectOf('v1', 'Endpoints', 'hostile'),
  ),
];

export const HOSTILE_REACH: readonly HostileRow[] = [
  service('external-ips', "others' traffic (CVE-2020-8554)", 'may not claim external IPs', {
    externalIPs: ['192.0.2.1'],
  }),
  service('node-port', 'a port of all nodes', 'ClusterIP or ExternalName', { type: 'NodePort' }),
  service('load-balancer', "the provider's addresses", 'ClusterIP or ExternalName', { type: 'LoadBalancer' }),
  service('external-name', 'what our ingress controller reaches', 'may not be of type ExternalName', {
    type: 'ExternalName',
    externalName: 'kubernetes.default.svc',
  }),
  ((row: HostileRow): HostileRow => ({ ...row, send: { ...row.send, namespace: ({ bare }) => bare } }))(
    service('external-name-anywhere', 'what our gateways reach', 'may not be of type ExternalName', {
      type: 'ExternalName',
      externalName: 'kubernetes.default.svc',
    }),
  ),
  service('service-ports', 'every kube-proxy', '250 ports', {
    ports: Array.from({ length: 1000 }, (_, at) => ({ name: `p${at}`, port: at + 1 })),
  }),
  makes(SLICES, 'slice-ports', 'the memory of every kube-proxy', '250 ports at most', {
    ...sliceOf('slice-ports', { addresses: ['100.99.0.1'] }),
    ports: Array.from({ length: 20_000 }, (_, at) => ({ name: `p${at}`, port: at + 1 })),
  }),
  slice('loopback', "the proxy's own host (CVE-2021-25737)", 'loopback', at('127.0.0.1')),
  slice('link-local', "the cloud's metadata", 'link-local', at('169.254.169.254')),
  slice('our-pods', 'our own pods (CVE-2021-25740)', PREFIXES, at('10.244.0.7')),
  slice('our-services', 'our own Services', PREFIXES, at('10.96.0.1')),
  slice('mapped', 'our own pods, by another spelling', PREFIXES, at('100.98.255.255')),
  slice('target', 'to be taken for a pod of ours', 'are no pods', {
    targetRef: { kind: 'Pod', name: 'x', namespace: 'kube-system' },
  }),
  slice('slice-node', 'to be taken for a pod of ours', 'on no nodes', { nodeName: 'real' }),
  slice(
    'slice-manager',
    "our controller's slices",
    'those of other controllers',
    {},
    {
      [LABEL_SLICE_MANAGED_BY]: 'endpointslice-controller.k8s.io',
    },
  ),
  ingresses(
    'foreign-host',
    "the provider's own host",
    'name a host in each rule',
    withHost('www.provider.example'),
  ),
  ingresses(
    'suffix-host',
    "the provider's own host",
    'name a host in each rule',
    withHost('evilpeers.example.com'),
  ),
  ingresses('wildcard', "everybody's hosts", 'name a host in each rule', withHost('*.peers.example.com')),
  ingresses('no-host', "everybody's hosts", 'name a host in each rule', withHost(undefined)),
  ingresses(
    'snippet',
    'the configuration of our ingress controller',
    'are of a short list',
    annotated('nginx.ingress.kubernetes.io/configuration-snippet', 'return 200;'),
  ),
  ingresses(
    'path',
    'the configuration of our ingress controller',
    'paths are plain',
    withPath({ path: '/a";}' }),
  ),
  ingresses('ingress-class', 'an ingress controller that was not lent', 'name a class', {
    spec: { ingressClassName: 'internal' },
  }),
  ...NAMESPACES,
];

/** Used by the test of the table, to check that a path is built like that of a request. */
export const EXAMPLE_PATH: string = pathOf(INGRESSES, 'tenant', 'web');
