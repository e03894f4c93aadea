import { describe, expect, test } from '@jest/globals';
import { LABEL_HOME_UID, LABEL_MANAGED_BY, STORAGE_PROVISIONER } from '../../../../src/api/names.ts';
import type { Claim, StorageClass, Volume } from '../../../../src/provider/storage/claims.ts';
import {
  type ClaimAction,
  type ClaimSituation,
  decideClaim,
  mayDeleteRemote,
} from '../../../../src/provider/storage/decide.ts';
import { forgeVolume } from '../../../../src/provider/storage/forge.ts';

const NODE = 'abroad';
const place = {
  tenantNamespace: 'tenant',
  owner: 'abroad',
  nodeLabel: { key: 'tributary.dev/virtual-node', value: 'abroad' },
};
const meta = { resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };

const homeClass: StorageClass = {
  metadata: { name: 'foreign', uid: 'class', ...meta },
  provisioner: STORAGE_PROVISIONER,
  volumeBindingMode: 'WaitForFirstConsumer',
  parameters: { foreignClass: 'local-path' },
};

const claim = (
  change: { uid?: string; spec?: object; annotations?: Record<string, string> } = {},
): Claim => ({
  metadata: {
    name: 'data',
    namespace: 'shop',
    uid: change.uid ?? 'u1',
    ...meta,
    annotations: {
      'volume.kubernetes.io/selected-node': NODE,
      'volume.kubernetes.io/storage-provisioner': STORAGE_PROVISIONER,
      ...change.annotations,
    },
  },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    storageClassName: 'foreign',
    ...change.spec,
  },
});

const remoteClaim = (
  change: { of?: string; phase?: string; capacity?: string; going?: boolean } = {},
): Claim => ({
  metadata: {
    name: 'data',
    namespace: 'tenant',
    uid: 'r1',
    ...meta,
    labels: { [LABEL_MANAGED_BY]: 'abroad', [LABEL_HOME_UID]: change.of ?? 'u1' },
    ...(change.going === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  },
  spec: {
    resources: { requests: { storage: '1Gi' } },
    storageClassName: 'local-path',
    ...(change.phase === 'Bound' && { volumeName: 'pvc-1' }),
  },
  status: {
    phase: change.phase ?? 'Pending',
    ...(change.capacity !== undefined && { capacity: { storage: change.capacity } }),
  },
});

const volumeOf = (home: Claim, change: { phase?: string; policy?: string; remote?: Claim } = {}): Volume => {
  const remote = change.remote ?? remoteClaim();
  const reclaimPolicy = change.policy ?? 'Delete';
  const draft = forgeVolume(home, { homeClass: { ...homeClass, reclaimPolicy }, remote, place });
  return {
    ...draft,
    metadata: { ...draft.metadata, name: draft.metadata.name ?? '', uid: 'v1', ...meta },
    status: { phase: change.phase ?? 'Bound' },
  };
};

const usual: ClaimSituation = {
  namespace: 'shop',
  home: claim(),
  homeClass,
  remote: undefined,
  outlook: 'unknown',
  volumes: [],
  virtualNode: 'abroad',
  nodeName: NODE,
  mapping: {},
  place,
  accepting: true,
  contact: true,
};
const bound = claim({ spec: { volumeName: 'tributary-u1' } });
const boundRemote = remoteClaim({ phase: 'Bound' });
const later = claim({ uid: 'u2' });

const shown = (action: ClaimAction): string => {
  if (action.do !== 'refuse' && action.do !== 'tell') return action.do;
  return `${action.do} ${action.reason}${'unselect' in action && action.unselect ? ', given back' : ''}`;
};

test.each<[string, Partial<ClaimSituation>, string]>([
  ['chosen', {}, 'createRemote'],
  ['out of contact', { contact: false }, 'nothing'],
  ['another node chosen', { nodeName: 'other' }, 'nothing'],
  [
    'no node chosen',
    { home: claim({ annotations: { 'volume.kubernetes.io/selected-node': '' } }) },
    'nothing',
  ],
  ['another class', { homeClass: undefined }, 'nothing'],
  [
    'not yet given to a provisioner',
    { home: claim({ annotations: { 'volume.kubernetes.io/storage-provisioner': 'other' } }) },
    'nothing',
  ],
  [
    'a class that binds at once',
    { homeClass: { ...homeClass, volumeBindingMode: 'Immediate' } },
    'tell WaitForFirstConsumerNeeded',
  ],
  [
    'no class named',
    { homeClass: { ...homeClass, parameters: {} } },
    'refuse StorageClassNotMapped, given back',
  ],
  [
    'a class of the prototype',
    { homeClass: { ...homeClass, parameters: {}, metadata: { ...homeClass.metadata, name: 'constructor' } } },
    'refuse StorageClassNotMapped, given back',
  ],
  [
    'mapped by people',
    { homeClass: { ...homeClass, parameters: {} }, mapping: { storageClasses: { foreign: 'ssd' } } },
    'createRemote',
  ],
  ['not lent', { mapping: { offeredStorageClasses: ['ssd'] } }, 'refuse StorageClassNotOffered, given back'],
  ['nothing lent', { mapping: { offeredStorageClasses: [] } }, 'refuse StorageClassNotOffered, given back'],
  ['lent', { mapping: { offeredStorageClasses: ['local-path'] } }, 'createRemote'],
  ['being taken out', { accepting: false }, 'refuse NamespaceNotOffloaded, given back'],
  ['a selector', { home: claim({ spec: { selector: {} } }) }, 'refuse VolumeNotSupported'],
  [
    'a data source',
    { home: claim({ spec: { dataSource: { kind: 'VolumeSnapshot', name: 's' } } }) },
    'refuse VolumeNotSupported',
  ],
  ['made over there', { remote: remoteClaim() }, 'wait'],
  ['waits over there', { remote: remoteClaim(), outlook: 'waits' }, 'createVolume'],
  [
    'failed over there',
    { remote: remoteClaim(), outlook: 'failed' },
    'refuse ProvisioningFailed, given back',
  ],
  ['bound over there', { remote: boundRemote }, 'createVolume'],
  ['ending over there', { remote: remoteClaim({ going: true }), outlook: 'waits' }, 'nothing'],
  [
    'a volume not yet bound',
    { remote: boundRemote, volumes: [volumeOf(claim(), { phase: 'Available' })] },
    'nothing',
  ],
  ['bound', { home: bound, remote: remoteClaim(), volumes: [volumeOf(bound)] }, 'nothing'],
  ['bound, facts are new', { home: bound, remote: boundRemote, volumes: [volumeOf(bound)] }, 'updateVolume'],
  [
    'bound, facts are known',
    { home: bound, remote: boundRemote, volumes: [volumeOf(bound, { remote: boundRemote })] },
    'nothing',
  ],
  ['bound, gone over there', { home: bound, volumes: [volumeOf(bound)] }, 'confirmLost'],
  [
    'bound, lost over there',
    { home: bound, remote: remoteClaim({ phase: 'Lost' }), volumes: [volumeOf(bound)] },
    'tell VolumeLost',
  ],
  [
    'asked to grow',
    {
      home: claim({ spec: { volumeName: 'tributary-u1', resources: { requests: { storage: '2Gi' } } } }),
      remote: remoteClaim(),
      volumes: [volumeOf(bound)],
    },
    'tell VolumeExpansionNotCarried',
  ],
  [
    'bound to a volume elsewhere',
    { home: claim({ spec: { volumeName: 'pvc-9' } }), remote: remoteClaim() },
    'deleteRemote',
  ],
  ['home claim gone, nothing made of it', { home: undefined, remote: remoteClaim() }, 'deleteRemote'],
  ['home claim gone, data without a volume', { home: undefined, remote: boundRemote }, 'nothing'],
  [
    'released',
    { home: undefined, remote: boundRemote, volumes: [volumeOf(bound, { phase: 'Released' })] },
    'deleteRemote',
  ],
  [
    'released, kept',
    {
      home: undefined,
      remote: boundRemote,
      volumes: [volumeOf(bound, { phase: 'Released', policy: 'Retain' })],
    },
    'nothing',
  ],
  [
    'released, in use over there',
    {
      home: undefined,
      remote: remoteClaim({ going: true }),
      volumes: [volumeOf(bound, { phase: 'Released' })],
    },
    'nothing',
  ],
  [
    'released, gone over there',
    { home: undefined, volumes: [volumeOf(bound, { phase: 'Released' })] },
    'deleteVolume',
  ],
  [
    'home claim gone, not yet released',
    { home: undefined, remote: boundRemote, volumes: [volumeOf(bound)] },
    'nothing',
  ],
  [
    'a later claim of the name',
    { home: later, remote: boundRemote, volumes: [volumeOf(bound, { phase: 'Released' })] },
    'deleteRemote',
  ],
  [
    'a later claim, the earlier kept',
    { home: later, remote: boundRemote, volumes: [volumeOf(bound, { phase: 'Released', policy: 'Retain' })] },
    'refuse NameTaken, given back',
  ],
  ['a later claim, the earlier ending', { home: later, remote: remoteClaim({ going: true }) }, 'nothing'],
])('%s', (_name, change, expected) => {
  expect(shown(decideClaim({ ...usual, ...change }))).toBe(expected);
});

test('the claim over there asks for the same, of the mapped class, and for nothing else', () => {
  const action = decideClaim({ ...usual, mapping: { storageClasses: { foreign: 'ssd' } } });
  expect(action.do === 'createRemote' && action.claim).toEqual({
    metadata: {
      name: 'data',
      namespace: 'tenant',
      labels: { [LABEL_MANAGED_BY]: 'abroad', [LABEL_HOME_UID]: 'u1' },
      annotations: { 'tributary.dev/home-namespace': 'shop' },
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'ssd',
    },
  });
});

test('the volume here is bound to its claim and to its place, and has the real size', () => {
  const remote = remoteClaim({ phase: 'Bound', capacity: '3Gi' });
  const { metadata, spec } = volumeOf(claim(), { remote });
  expect(metadata.name).toBe('tributary-u1');
  expect(metadata.annotations).toMatchObject({
    'pv.kubernetes.io/provisioned-by': STORAGE_PROVISIONER,
    'tributary.dev/foreign-volume': 'pvc-1',
    'tributary.dev/foreign-class': 'local-path',
  });
  expect(spec?.capacity).toEqual({ storage: '3Gi' });
  expect(spec?.claimRef).toMatchObject({ namespace: 'shop', name: 'data', uid: 'u1' });
  expect(spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions).toEqual([
    { key: 'tributary.dev/virtual-node', operator: 'In', values: ['abroad'] },
  ]);
});

test.each(['512Mi', 'NaN', '9'.repeat(40), '-5Gi', ''])('a size of %s over there is no news', (capacity) => {
  const volume = volumeOf(claim(), { remote: remoteClaim({ phase: 'Bound', capacity }) });
  expect(volume.spec?.capacity).toEqual({ storage: '1Gi' });
});

describe('after a live look, a claim over there is deleted', () => {
  const volume = volumeOf(bound);
  const released = volumeOf(bound, { phase: 'Released' });
  test.each<[string, Claim, Parameters<typeof mayDeleteRemote>[1], boolean]>([
    [
      'not while home still wants it',
      remoteClaim(),
      { home: claim(), volume: undefined, isOurs: false },
      false,
    ],
    ['not while its volume is bound', boundRemote, { home: bound, volume, isOurs: true }, false],
    [
      'not while its volume cannot be found',
      boundRemote,
      { home: bound, volume: undefined, isOurs: false },
      false,
    ],
    [
      'not where the label of its volume was taken off',
      boundRemote,
      { home: bound, volume: { ...volume, metadata: { ...volume.metadata, labels: {} } }, isOurs: false },
      false,
    ],
    [
      'not where its volume refers to no claim for a moment',
      boundRemote,
      { home: bound, volume: { ...volume, spec: { ...volume.spec, claimRef: {} } }, isOurs: true },
      false,
    ],
    ['where another provider was quicker', remoteClaim(), { home: bound, volume, isOurs: false }, true],
    [
      'where a volume of home was taken',
      remoteClaim(),
      { home: claim({ spec: { volumeName: 'pvc-9' } }), volume: undefined, isOurs: false },
      true,
    ],
    ['where its volume says so', boundRemote, { home: undefined, volume: released, isOurs: true }, true],
    [
      'not where its volume is kept',
      boundRemote,
      { home: undefined, volume: volumeOf(bound, { phase: 'Released', policy: 'Retain' }), isOurs: true },
      false,
    ],
    [
      'not with data, where nobody says so',
      boundRemote,
      { home: undefined, volume: undefined, isOurs: false },
      false,
    ],
    [
      'where nothing was made of it',
      remoteClaim(),
      { home: undefined, volume: undefined, isOurs: false },
      true,
    ],
  ])('%s', (_name, remote, found, expected) => {
    expect(mayDeleteRemote(remote, found)).toBe(expected);
  });
});
