/** Claims of storage, copies of data, and the Lease of a home. */
import { HOME_LEASE } from '../../../src/api/names.ts';
import { changes, makes, MARKS, objectOf, THEIRS, type HostileRow } from './row.ts';

const CLAIMS = 'v1/persistentvolumeclaims';
const SECRETS = 'v1/secrets';
const CONFIG_MAPS = 'v1/configmaps';
const LEASES = 'coordination.k8s.io/v1/leases';
const FRESH = 'ask for new, empty volumes';

const claim = (name: string, spec: object, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, labels: MARKS, ...metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    storageClassName: 'lent',
    ...spec,
  },
});
const claims = (
  name: string,
  tries: string,
  reason: string,
  ...[spec, metadata]: [object, object?]
): HostileRow => makes(CLAIMS, name, tries, reason, claim(`hostile-${name}`, spec, metadata));

const secret = (name: string, more: object): object => objectOf('v1', 'Secret', name, more);
const configMap = (name: string, more: object): object => objectOf('v1', 'ConfigMap', name, more);
const keys = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, '']));

export const HOSTILE_CLAIMS: readonly HostileRow[] = [
  claims('claim-no-class', "the provider's default class", 'name a StorageClass', {
    storageClassName: undefined,
  }),
  claims('claim-other-class', 'storage that was not lent', 'name a StorageClass', {
    storageClassName: 'fast',
  }),
  claims('claim-empty-class', "somebody's volume without a class", 'name a StorageClass', {
    storageClassName: '',
  }),
  claims('claim-volume', "somebody else's volume", FRESH, { volumeName: 'pv-of-somebody' }),
  claims('claim-selector', "somebody else's volume", FRESH, { selector: { matchLabels: { a: 'b' } } }),
  claims('claim-source', "a copy of somebody else's data", FRESH, {
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'theirs' },
  }),
  claims('claim-source-ref', "a copy of somebody else's data", FRESH, {
    dataSourceRef: { apiGroup: 'example.com', kind: 'Populator', name: 'theirs' },
  }),
  claims('claim-attributes', 'faster disks than were lent', FRESH, { volumeAttributesClassName: 'gold' }),
  claims('claim-size', 'more storage than was lent', 'exceeded quota', {
    resources: { requests: { storage: '1Ti' } },
  }),
  claims('claim-unmarked', 'a claim that is nobody', 'bear the label', {}, { labels: {} }),
  claims(
    'claim-node',
    'the node of its choice',
    'may not steer this cluster',
    {},
    { annotations: { 'volume.kubernetes.io/selected-node': 'real' } },
  ),
  makes(
    SECRETS,
    'account-token',
    'a token of an account that never expires',
    'no credentials of this cluster',
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: {
        name: 'hostile-token',
        labels: MARKS,
        annotations: { 'kubernetes.io/service-account.name': 'default' },
      },
    },
  ),
  makes(
    SECRETS,
    'bootstrap-token',
    'to join nodes',
    'no credentials of this cluster',
    secret('hostile-bootstrap', { type: 'bootstrap.kubernetes.io/token' }),
  ),
  makes(
    SECRETS,
    'gathered-secret',
    "a copy of the provider's certificate",
    'bear labels and annotations of tributary.dev only',
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'hostile-gathered',
        labels: MARKS,
        annotations: { 'replicator.v1.mittwald.de/replicate-from': 'kube-system/tls' },
      },
    },
  ),
  makes(
    CONFIG_MAPS,
    'gathered-dashboard',
    "text in the provider's dashboards",
    'bear labels and annotations of tributary.dev only',
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'hostile-gathered', labels: { ...MARKS, grafana_dashboard: '1' } },
    },
  ),
  makes(
    CONFIG_MAPS,
    'half-of-the-store',
    "the provider's etcd, in few objects",
    'KiB at most',
    configMap('hostile-half', {
      data: { a: 'x'.repeat(300_000) },
      binaryData: { b: Buffer.alloc(300_000).toString('base64') },
    }),
  ),
  makes(
    SECRETS,
    'half-of-the-store-secret',
    "the provider's etcd, in few objects",
    'KiB at most',
    secret('hostile-half', { data: { a: Buffer.alloc(600_000).toString('base64') } }),
  ),
  makes(
    CONFIG_MAPS,
    'large',
    "the provider's etcd",
    'Too long',
    configMap('hostile-large', { data: { a: 'x'.repeat(1_100_000) } }),
  ),
  makes(
    CONFIG_MAPS,
    'keys',
    'inodes of a node',
    '4096 keys at most',
    configMap('hostile-keys', { data: keys(5000) }),
  ),
  changes(
    ['PUT', CONFIG_MAPS, 'kube-root-ca.crt'],
    'root-ca',
    'whom our pods believe',
    "this cluster's own",
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'kube-root-ca.crt', labels: MARKS },
      data: { 'ca.crt': 'hostile' },
    },
  ),
  changes(
    ['DELETE', CONFIG_MAPS, 'kube-root-ca.crt'],
    'no-root-ca',
    'whom our pods believe',
    "this cluster's own",
  ),
  changes(['DELETE', SECRETS, THEIRS], 'their-secret', 'what is not its own', "this cluster's own"),
  makes(
    LEASES,
    'lease',
    'a place to keep things, or the lock of somebody',
    'cannot create resource',
    objectOf('coordination.k8s.io/v1', 'Lease', 'hostile'),
  ),
  changes(
    ['PUT', LEASES, 'other'],
    'other-lease',
    'the lock of somebody',
    'cannot update resource',
    objectOf('coordination.k8s.io/v1', 'Lease', 'other'),
  ),
  changes(['PUT', LEASES, HOME_LEASE], 'long-lease', 'pods that nobody ends', 'from 10 to 300 seconds', {
    ...lease({}),
    spec: { holderIdentity: 'rome', leaseDurationSeconds: 1_000_000 },
  }),
  changes(['PUT', LEASES, HOME_LEASE], 'large-lease', "the provider's etcd", '253 characters at most', {
    ...lease({}),
    spec: { holderIdentity: 'x'.repeat(10_000), leaseDurationSeconds: 60 },
  }),
  changes(
    ['PUT', LEASES, HOME_LEASE],
    'marked-lease',
    'what our guardian knows it by',
    'of the Lease of a home are ours',
    { ...lease({ labels: MARKS }), spec: { holderIdentity: 'rome', leaseDurationSeconds: 60 } },
  ),
];

function lease(metadata: object): object {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: HOME_LEASE, ...metadata },
  };
}
