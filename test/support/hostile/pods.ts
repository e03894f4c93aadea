/** Pods that reach for nodes, for this cluster's own accounts, or for more than was lent. */
import { LABEL_HOME_UID } from '../../../src/api/names.ts';
import { direct, fromHome, type Parts, PODS, secured, SECURITY, volume } from './pod-rows.ts';
import { HOSTILE_PRIVILEGES } from './privileges.ts';
import { HOSTILE_RULES } from './rules.ts';
import { MARKS, changes, makes, OURS, type HostileRow } from './row.ts';

const KINDS = "volumes of peers' pods are of these kinds";

/** Pod Security refuses it from Kubernetes 1.34 on; our policy also refuses it on older versions. */
const orNoHost = (...row: Parameters<typeof fromHome>): HostileRow => ({
  ...fromHome(...row),
  orReason: 'name no host',
});

const asking = (requests: object, limits: object = {}): Parts => ({
  container: { resources: { requests, limits } },
});
const projected = (source: object): object => volume({ projected: { sources: [source] } });
const claimTemplate = (spec: object, metadata: object = {}): object => ({
  ephemeral: {
    volumeClaimTemplate: {
      metadata,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    },
  },
});
const NODE: readonly HostileRow[] = [
  ...HOSTILE_PRIVILEGES,
  // With a user namespace of its own a pod may have it (KEP-4265).
  direct('proc-mount', 'an unmasked /proc', 'must be false to use', {}, secured({ procMount: 'Unmasked' })),
  fromHome('windows-host', 'a process of the host', SECURITY, {
    hostNetwork: true,
    os: { name: 'windows' },
    securityContext: { windowsOptions: { hostProcess: true, runAsUserName: 'SYSTEM' } },
  }),
  orNoHost(
    'host-probe',
    "what the node's kubelet reaches",
    SECURITY,
    {},
    { container: { livenessProbe: { httpGet: { host: '169.254.169.254', path: '/', port: 80 } } } },
  ),
  orNoHost(
    'host-hook',
    "what the node's kubelet reaches, when it starts a container",
    SECURITY,
    {},
    { container: { lifecycle: { postStart: { httpGet: { host: '192.0.2.1', path: '/', port: 80 } } } } },
  ),
];

const VOLUMES: readonly HostileRow[] = [
  fromHome('nfs', 'what nodes can mount', KINDS, volume({ nfs: { server: '192.0.2.1', path: '/' } })),
  fromHome(
    'iscsi',
    'disks of the storage network',
    KINDS,
    volume({ iscsi: { targetPortal: '192.0.2.1', iqn: 'iqn.2001-04.com.example:a', lun: 0 } }),
  ),
  fromHome(
    'git-repo',
    'commands as root on the node (CVE-2024-10220)',
    KINDS,
    volume({ gitRepo: { repository: 'https://example.com/x' } }),
  ),
  fromHome(
    'flex-volume',
    'a program on the node',
    KINDS,
    volume({ flexVolume: { driver: 'example.com/x' } }),
  ),
  fromHome(
    'inline-csi',
    'a driver of the provider',
    KINDS,
    volume({ csi: { driver: 'secrets-store.csi.k8s.io', readOnly: true } }),
  ),
  fromHome('cephfs', 'a cluster file system', KINDS, volume({ cephfs: { monitors: ['192.0.2.1'] } })),
  direct(
    'projected-token',
    'a token of this cluster',
    'projected volumes of',
    projected({ serviceAccountToken: { path: 'token' } }),
  ),
  direct(
    'ephemeral-class',
    'storage that was not lent',
    'ephemeral volumes of',
    volume(claimTemplate({ storageClassName: 'fast' })),
  ),
  direct(
    'ephemeral-no-class',
    "the provider's default class",
    'ephemeral volumes of',
    volume(claimTemplate({})),
  ),
  direct(
    'ephemeral-of-another',
    "somebody else's volume",
    'new and empty',
    volume(claimTemplate({ storageClassName: 'lent', volumeName: 'pv-of-somebody' })),
  ),
  direct(
    'ephemeral-beta-class',
    'storage that was not lent, by the older way to name it',
    'new and empty',
    volume(
      claimTemplate(
        { storageClassName: 'lent' },
        { annotations: { 'volume.beta.kubernetes.io/storage-class': 'fast' } },
      ),
    ),
  ),
  direct(
    'ephemeral-labels',
    'a claim that a backup of ours takes up',
    'new and empty',
    volume(claimTemplate({ storageClassName: 'lent' }, { labels: { 'velero.io/backup': 'yes' } })),
  ),
];

/** Admission adds the token's volume before policies see the pod. */
const orReason = 'tokens and certificates of this cluster are not for them';
const IDENTITY: readonly HostileRow[] = [
  {
    ...direct('foreign-account', 'an account of this cluster', 'run as no account of this cluster', {
      serviceAccountName: 'builder',
    }),
    orReason,
  },
  {
    ...direct('automount', 'a token of this cluster', 'must not be true', {
      automountServiceAccountToken: true,
    }),
    orReason,
  },
];

/** As the provider's webhook would have written it. */
const MAIN = { name: 'main', image: 'example/none:1', imagePullPolicy: 'Always' };
const PULLED = { containers: [MAIN] };
const FORCED = { runtimeClassName: 'hardened', nodeSelector: { 'example.com/lends': 'yes' } };

const PLACEMENT: readonly HostileRow[] = [
  direct('node-name', 'a node of its choice', 'spec.nodeName must be empty', { nodeName: 'real' }),
  direct('critical', 'to push out pods of ours', 'may not outrank ours', {
    priorityClassName: 'system-node-critical',
  }),
  direct('loud', 'to push out pods of anybody, by a class that is lent', 'with preemptionPolicy: Never', {
    priorityClassName: 'loud',
  }),
  direct('outranks', 'to come before our own pods', 'may not outrank ours', { priorityClassName: 'other' }),
  direct('tolerates-all', 'all nodes', 'tolerate no taints but', { tolerations: [{ operator: 'Exists' }] }),
  fromHome('tolerates-control-plane', 'the control plane', 'tolerate no taints but', {
    tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
  }),
  fromHome('tolerates-own', 'nodes that are kept for others', 'tolerate no taints but', {
    tolerations: [{ key: 'example.com/ours', operator: 'Exists' }],
  }),
  fromHome('tolerates-pressure', 'nodes that have no memory left', 'tolerate no taints but', {
    tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }],
  }),
  direct('tolerates-virtual', 'a third cluster', 'tolerate no taints but', {
    tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
  }),
  fromHome('tolerates-cordon', 'nodes that are being drained', 'tolerate no taints but', {
    tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }],
  }),
  ...HOSTILE_RULES,
  direct('scheduler', 'a scheduler that asks nobody', 'placed by the default scheduler', {
    schedulerName: 'theirs',
  }),
  fromHome('runtime-class', 'a weaker isolation', 'with the runtime class of the', {
    runtimeClassName: 'loose',
  }),
  {
    ...direct('runtime-class-unforced', 'the isolation of its choice', 'with the runtime class of the', {
      runtimeClassName: 'loose',
      nodeSelector: { 'example.com/lends': 'yes' },
      ...PULLED,
    }),
  },
  {
    ...direct('node-selector', 'nodes that were not lent', 'must be in spec.nodeSelector', {
      runtimeClassName: 'hardened',
      nodeSelector: { 'example.com/lends': 'no' },
      ...PULLED,
    }),
  },
  direct('image-never', 'an image that somebody else has pulled', 'imagePullPolicy Always', {
    ...FORCED,
    containers: [{ ...MAIN, imagePullPolicy: 'Never' }],
  }),
  direct('image-init', 'the same, by a container that nobody looks at', 'imagePullPolicy Always', {
    ...FORCED,
    ...PULLED,
    initContainers: [{ ...MAIN, name: 'init', imagePullPolicy: 'IfNotPresent' }],
  }),
  direct('image-volume', 'the same, by a volume', 'imagePullPolicy Always', {
    ...FORCED,
    ...PULLED,
    volumes: [{ name: 'v', image: { reference: 'example/none:1', pullPolicy: 'Never' } }],
  }),
  fromHome('resource-claims', 'devices', 'may not claim devices', {
    resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }],
  }),
  direct('gates', 'to look like a result of our guardian', 'scheduling gates', {
    schedulingGates: [{ name: 'example.com/wait' }],
  }),
].map((row): HostileRow =>
  ['runtime-class-unforced', 'node-selector', 'image-never', 'image-init', 'image-volume'].includes(row.name)
    ? { ...row, send: { ...row.send, namespace: ({ forced }) => forced } }
    : row,
);

const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const SIZES: readonly HostileRow[] = [
  fromHome(
    'extended',
    'GPUs that were not lent',
    'extended resources of the annotation',
    {},
    asking({ 'example.com/fpga': '1' }, { 'example.com/fpga': '1' }),
  ),
  fromHome('cpu', 'more CPU than was lent', 'exceeded quota: tributary', {}, asking({ cpu: '5' })),
  fromHome('memory', 'more memory than was lent', 'exceeded quota: tributary', {}, asking({ memory: '5Gi' })),
  fromHome('grace', 'a node that can never be drained', 'end within a day', {
    terminationGracePeriodSeconds: 10_000_000,
  }),
  fromHome('containers', 'the kubelet', '64 containers of each sort at most', {
    containers: many(1000, (index) => ({ name: `c${index}`, image: 'example/none:1' })),
  }),
  fromHome(
    'variables',
    'the kubelet',
    '1000 variables',
    {},
    { container: { env: many(5000, (index) => ({ name: `V${index}`, value: '' })) } },
  ),
  fromHome('volumes', 'the kubelet', '250 volumes', {
    volumes: many(1000, (index) => ({ name: `v${index}`, emptyDir: {} })),
  }),
  fromHome(
    'ports',
    'the network plugin',
    '250 ports',
    {},
    { container: { ports: many(1000, (index) => ({ containerPort: index + 1 })) } },
  ),
  fromHome('host-aliases', "the node's disk", '250 hostAliases', {
    hostAliases: many(1000, (index) => ({ ip: '192.0.2.1', hostnames: [`h${index}`] })),
  }),
  {
    ...fromHome('tolerations', 'the scheduler', '64 tolerations', {
      tolerations: many(200, (index) => ({ key: `example.com/t${index}`, operator: 'Exists' })),
    }),
    orReason: 'tolerate no taints but',
  },
  direct('image-name', 'our memory', 'names of 1024 characters', {
    containers: [{ name: 'main', image: 'x'.repeat(5000) }],
  }),
  fromHome('image', 'a log that breaks', 'must not have leading or trailing whitespace', {
    containers: [{ name: 'main', image: ' \n' }],
  }),
];

const strategic = (row: HostileRow): HostileRow => ({
  ...row,
  send: { ...row.send, patch: 'strategic-merge' },
});

/** Later, where Pod Security is switched off. */
const debugged = (name: string, securityContext: object): HostileRow => {
  const spec = { ephemeralContainers: [{ name: 'debug', image: 'example/none:1', securityContext }] };
  const change = ['PATCH', `${PODS}.ephemeralcontainers`, OURS] as const;
  const row = changes(change, name, 'a node that holds nothing back, later', 'hold for pods of peers', {
    spec,
  });
  return { ...row, send: { ...row.send, namespace: ({ bare }) => bare } };
};

const OTHERS: readonly HostileRow[] = [
  strategic(
    changes(['PATCH', PODS, OURS], 'image-later', 'our memory, after the fact', 'names of 1024 characters', {
      spec: { containers: [{ name: 'nginx', image: 'x'.repeat(100_000) }] },
    }),
  ),
  direct(
    'unmarked',
    'to be taken for a pod of ours by the gateway',
    `bear the label ${LABEL_HOME_UID}`,
    {},
    {
      metadata: { name: 'hostile-unmarked', labels: MARKS },
    },
  ),
  changes(
    ['PATCH', PODS, OURS],
    'unmark',
    'to be taken for a pod of ours later',
    `bear the label ${LABEL_HOME_UID}`,
    { metadata: { labels: { [LABEL_HOME_UID]: null } } },
  ),
  changes(['PATCH', PODS, OURS], 'tolerate-later', 'the control plane, later', 'tolerate no taints but', {
    spec: { tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }] },
  }),
  changes(['PATCH', `${PODS}.ephemeralcontainers`, OURS], 'debug', 'the node, later', SECURITY, {
    spec: {
      ephemeralContainers: [
        { name: 'debug', image: 'example/none:1', securityContext: { privileged: true } },
      ],
    },
  }),
  debugged('debug-seccomp', { seccompProfile: { type: 'Unconfined' } }),
  debugged('debug-app-armor', { appArmorProfile: { type: 'Unconfined' } }),
  debugged('debug-se-linux', { seLinuxOptions: { type: 'spc_t' } }),
  changes(['PATCH', `${PODS}.resize`, OURS], 'resize', 'more CPU than was lent, later', 'exceeded quota', {
    spec: {
      containers: [
        {
          name: 'nginx',
          image: 'nginx:1',
          resources: { requests: { cpu: '5', memory: '64Mi' }, limits: { memory: '128Mi' } },
        },
      ],
    },
  }),
  changes(['PATCH', `${PODS}.status`, OURS], 'status', 'our own Services', 'cannot patch resource', {
    status: { podIP: '10.0.0.1' },
  }),
  changes(
    ['DELETE', PODS, 'bound'],
    'force-delete',
    'containers that run on for a day and count nowhere',
    'may not delete pods by force',
    { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 },
  ),
  changes(
    ['PATCH', PODS, 'result'],
    'lift-gate',
    'to run what was admitted as a result only',
    'may not lift scheduling gates',
    { spec: { schedulingGates: [] } },
  ),
  makes(`${PODS}.eviction`, 'evict', 'pods past their owner', 'cannot create resource', {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: OURS },
  }),
  makes(`${PODS}.binding`, 'bind', 'a node of its choice, later', 'cannot create resource', {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: OURS },
    target: { kind: 'Node', name: 'real' },
  }),
].map((row): HostileRow =>
  row.send.method === undefined && row.name !== 'unmarked'
    ? { ...row, send: { ...row.send, name: OURS } }
    : row,
);

export const HOSTILE_PODS: readonly HostileRow[] = [
  ...NODE,
  ...VOLUMES,
  ...IDENTITY,
  ...PLACEMENT,
  ...SIZES,
  ...OTHERS,
];
