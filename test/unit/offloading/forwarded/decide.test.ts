import { expect, test } from '@jest/globals';
import { ANNOTATION_STRATEGY, TAINT_VIRTUAL_NODE } from '../../../../src/api/names.ts';
import type { ObjectMeta, Pod, PodSpec, PodStatus } from '../../../../src/api/wire.ts';
import { admittedForAnother, comingHome } from '../../../../src/offloading/forwarded/decide.ts';

interface Given {
  metadata?: Partial<ObjectMeta>;
  spec?: Partial<PodSpec>;
  status?: PodStatus;
}
const pod = ({ metadata, spec, status }: Given = {}): Pod => ({
  metadata: {
    name: 'p',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    ...metadata,
  },
  spec: { containers: [], ...spec },
  ...(status && { status }),
});
const ownedBy = (kind: string, controller = true): Given => ({
  metadata: { ownerReferences: [{ apiVersion: 'v1', kind, name: 'o', uid: 'o', controller }] },
});
const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }];

test.each<[string, Given, boolean, ReturnType<typeof comingHome>]>([
  ['one with an owner', ownedBy('ReplicaSet'), false, 'Delete'],
  ['one without', {}, false, 'Remake'],
  ['one whose owner replaces nothing', ownedBy('ConfigMap', false), false, 'Remake'],
  ['one that somebody deletes', { metadata: { deletionTimestamp: 'now' } }, false, 'Delete'],
  ['one that was placed back', ownedBy('ReplicaSet'), true, 'Stay'],
  ['one that has finished', { status: { phase: 'Succeeded' } }, false, 'Stay'],
  ['one of a DaemonSet', ownedBy('DaemonSet'), false, 'Stay'],
  ['one whose volumes are over there', { ...ownedBy('StatefulSet'), spec: { volumes } }, false, 'Kept'],
])('of those that were forwarded, %s', (_what, given, hasBodyHere, action) => {
  expect(comingHome(pod(given), hasBodyHere)).toBe(action);
});

const away = { metadata: { annotations: { [ANNOTATION_STRATEGY]: 'Remote' } } };
const tolerant = { spec: { tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }] } };
test.each<[string, Given, 'tethered' | 'lost' | 'coming home', ReturnType<typeof admittedForAnother>]>([
  ['one that was to stay', {}, 'tethered', 'Remake'],
  ['one with an owner', ownedBy('Job'), 'tethered', 'Delete'],
  ['one whose owner replaces nothing', ownedBy('ConfigMap', false), 'tethered', 'Remake'],
  ['one that was sent away', away, 'tethered', 'Stay'],
  ['one that tolerates virtual nodes by itself', tolerant, 'tethered', 'Stay'],
  ['one that has a node', { spec: { nodeName: 'own' } }, 'tethered', 'Stay'],
  ['one that ends', { metadata: { deletionTimestamp: 'now' } }, 'tethered', 'Stay'],
  ['one that was sent away', away, 'lost', 'Stay'],
  ['one that was to stay', {}, 'lost', 'Stay'],
  ['one that was sent away', away, 'coming home', 'Remake'],
  ['one that was to stay', {}, 'coming home', 'Stay'],
])('of those without a node, %s while %s', (_what, given, when, action) => {
  const podStrategy = when === 'tethered' ? 'Remote' : 'Local';
  expect(admittedForAnother(pod(given), { podStrategy, comesHome: when === 'coming home' })).toBe(action);
});
