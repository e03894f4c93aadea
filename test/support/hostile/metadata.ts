/** Marks that would make others treat an object as their own, and names and texts on which programs fail. */
import { ANNOTATION_RECREATED, ANNOTATION_RESULT, LABEL_HOME_UID } from '../../../src/api/names.ts';
import { HOME_POD_UID, MARKS, aPod, changes, makes, objectOf, OURS, type HostileRow } from './row.ts';

const PODS = 'v1/pods';
const CONFIG_MAPS = 'v1/configmaps';
const LABELS = 'of the labels of tributary.dev peers write these only';
const ANNOTATIONS = 'of the annotations of tributary.dev peers write these only';
const STEER = 'may not steer this cluster';

const POD_MARKS = { ...MARKS, [LABEL_HOME_UID]: HOME_POD_UID };
const pod = (name: string, tries: string, reason: string, metadata: object): HostileRow =>
  makes(
    PODS,
    name,
    tries,
    reason,
    aPod('', {}, { metadata: { name: `hostile-${name}`, labels: POD_MARKS, ...metadata } }),
  );
const labelled = (name: string, tries: string, reason: string, labels: Record<string, string>): HostileRow =>
  pod(name, tries, reason, { labels: { ...POD_MARKS, ...labels } });
const annotatedPod = (
  name: string,
  tries: string,
  reason: string,
  annotations: Record<string, string>,
): HostileRow => pod(name, tries, reason, { annotations });

/** An own property of that name; in a literal it would set the prototype. */
const PROTO = { ['__proto__']: 'x' };

const owner = { apiVersion: 'v1', kind: 'Namespace', name: 'default', uid: HOME_POD_UID };

export const HOSTILE_METADATA: readonly HostileRow[] = [
  pod('owner', 'our garbage collector', 'have no owners here', { ownerReferences: [owner] }),
  pod('finalizers', 'a namespace that never ends', 'bear no finalizers', { finalizers: ['example.com/x'] }),
  labelled('forged-peer', "another peer's pod", LABELS, { 'tributary.dev/peer': 'paris' }),
  labelled('forged-tenancy', 'what lending knows its own by', LABELS, {
    'tributary.dev/tenancy': 'contract',
  }),
  labelled('forged-node', 'what scheduling knows virtual nodes by', LABELS, {
    'tributary.dev/virtual-node': 'x',
  }),
  labelled('forged-domain', 'marks of a kind that comes later', LABELS, { 'later.tributary.dev/x': 'y' }),
  annotatedPod('forged-recreated', 'what our guardian says', ANNOTATIONS, { [ANNOTATION_RECREATED]: '{}' }),
  annotatedPod('forged-result', 'what our guardian says', ANNOTATIONS, { [ANNOTATION_RESULT]: 'true' }),
  changes(['PATCH', PODS, OURS], 'forged-recreated-later', 'what our guardian says, later', ANNOTATIONS, {
    metadata: { annotations: { [ANNOTATION_RECREATED]: '{"count":-1}' } },
  }),
  changes(
    ['PATCH', PODS, 'recreated'],
    'changed-recreated',
    'what our guardian has said',
    'what this cluster says on objects of peers stays',
    { metadata: { annotations: { [ANNOTATION_RECREATED]: null } } },
  ),
  annotatedPod('static', 'a pod that no drain touches', STEER, { 'kubernetes.io/config.source': 'file' }),
  annotatedPod('networks', "the provider's other networks", STEER, {
    'k8s.v1.cni.cncf.io/networks': 'kube-system/storage',
  }),
  annotatedPod('cloud', "the provider's cloud account", STEER, { 'iam.amazonaws.com/role': 'admin' }),
  annotatedPod('devices', 'devices past requests', STEER, { 'cdi.k8s.io/x': 'nvidia.com/gpu=all' }),
  annotatedPod('autoscaler', 'a node that is never taken away', STEER, {
    'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
  }),
  makes(
    CONFIG_MAPS,
    'unmarked-copy',
    'an object that nobody clears away',
    'objects of peers bear the label',
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hostile-unmarked' } },
  ),
  annotatedPod('large-annotation', "the provider's etcd", 'Too long', { note: 'x'.repeat(2_000_000) }),
  pod('many-labels', 'indices of our controllers', '128 labels and 128 annotations at most', {
    labels: {
      ...POD_MARKS,
      ...Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`example.com/l${index}`, ''])),
    },
  }),
  labelled('long-label', 'a log that breaks', 'must be no more than 63', { a: 'x'.repeat(64) }),
  pod('unicode', 'a log that breaks', 'lowercase RFC 1123', { name: 'p\u00f6d\u202e' }),
  pod('long-name', 'a log that breaks', 'must be no more than 253', { name: 'x'.repeat(254) }),
  labelled('proto-label', 'programs that merge objects', 'Invalid value', PROTO),
  annotatedPod('proto-annotation', 'programs that merge objects', 'Invalid value', PROTO),
  {
    ...makes(
      CONFIG_MAPS,
      'proto-data',
      'programs that merge objects',
      'a key like any other: a file of that name',
      objectOf('v1', 'ConfigMap', 'hostile-proto-data', { data: PROTO }),
    ),
    harmless: true,
  },
  {
    ...labelled('constructor-label', 'programs that look up names', 'a label like any other', {
      constructor: 'x',
      toString: 'x',
    }),
    harmless: true,
  },
];
