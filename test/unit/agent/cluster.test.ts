/** The role `cluster` as a whole: what only shows when all of its parts run in one process. */
import 'reflect-metadata';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { namespaces, nodes, pods, runtimeClasses } from '../../../src/api/resources.ts';
import { sharingPolicies, type SharingPolicy } from '../../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { aNode, aPod } from '../peering/support/stock.ts';
import { ClusterRole } from './support/cluster-role.ts';
import { eventually } from '../../support/eventually.ts';

/** One more is a cost for every API server: is its kind watched already, and only selected otherwise? */
const MOST_WATCHES = 48;
const BASE = '/apis/tributary.dev/v1alpha1';

let role: ClusterRole;

beforeEach(async () => {
  role = await ClusterRole.create(systemClock);
});

afterEach(async () => role.stop());

test('it opens each watch once: of one kind and selection, whatever part asks for it', async () => {
  role.api.seed(namespaces, { metadata: { name: 'shop' } });
  role.api.seed(nodes, { metadata: { name: 'n' } });
  role.api.seed(virtualNodes, { metadata: { name: 'milan' }, spec: { nodeName: 'milan' } });
  role.api.seed(namespaceOffloadings, { metadata: { name: 'offloading', namespace: 'shop' }, spec: {} });
  await role.start();
  await eventually('all watches', () => role.watched().length >= MOST_WATCHES);
  const watched = role.watched();
  expect(watched.filter((watch, at) => watched.indexOf(watch) !== at)).toEqual([]);
  expect(watched).toHaveLength(MOST_WATCHES);
  expect(watched).toContain('/api/v1/pods spec.nodeName=milan');
  expect(watched).toContain(
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices metadata.name=kubernetes',
  );
  const kinds = ['namespaces', 'nodes'].map((kind) => `/api/v1/${kind}`);
  const own = ['virtualnodes', 'sharingpolicies', 'advertisements', 'foreignclusters', 'tunnels'];
  for (const path of [...kinds, ...own.map((kind) => `${BASE}/${kind}`)]) {
    expect(watched.filter((watch) => watch === path || watch.startsWith(`${path} `))).toEqual([path]);
  }
});

test('the status of a SharingPolicy has one writer, which writes only what is news', async () => {
  const seed = (name: string, spec: object): void =>
    void role.api.seed(sharingPolicies, { metadata: { name }, spec: { peers: { anyone: true }, ...spec } });
  const policy = (name: string): SharingPolicy =>
    role.api.storage.get('sharingpolicies.tributary.dev', name) as unknown as SharingPolicy;
  const condition = (name: string, type: string): string | undefined =>
    policy(name).status?.conditions?.find((one) => one.type === type)?.status;
  const writes = (name: string): number =>
    role.api.count(new RegExp(`^P.* /.*/sharingpolicies/${name}/status`));
  role.api.seed(nodes, aNode('n'));
  seed('gold', {
    runtimeClassName: 'gvisor',
    reflectableKinds: [{ group: 'shop.example', resource: 'widgets' }],
  });
  seed('spoilt', { limits: { cpu: 'lots' }, runtimeClassName: 'gvisor' });
  await role.start();
  await eventually('both are judged', () => ['gold', 'spoilt'].every((name) => condition(name, 'Valid')));
  expect(policy('gold').status).toMatchObject({ peers: [], free: { cpu: '4' } });
  expect(condition('gold', 'KindsReflectable')).toBe('True');
  expect(policy('spoilt').status?.conditions).toMatchObject([
    {
      type: 'Valid',
      status: 'False',
      message: 'limits of SharingPolicy spoilt cannot be read: not a quantity: "lots"',
    },
    { type: 'RuntimeClassFound', status: 'False' },
  ]);
  role.api.seed(runtimeClasses, { metadata: { name: 'gvisor' } });
  const isFound = (name: string): boolean => condition(name, 'RuntimeClassFound') === 'True';
  await eventually('the class is found', () => isFound('gold') && isFound('spoilt'));
  role.api.seed(pods, aPod('shop/cart', 'n', { cpu: '1' }));
  await eventually('less is free', () => policy('gold').status?.free?.['cpu'] === '3');
  role.api.storage.update('sharingpolicies.tributary.dev', {
    ...role.api.storage.get('sharingpolicies.tributary.dev', 'gold'),
    spec: { peers: { anyone: true } },
  } as never);
  await eventually('no kind is named any more', () => condition('gold', 'KindsReflectable') === undefined);
  // One for each of what was waited for: a second writer, or a version that was lost, would be one more.
  expect([writes('gold'), writes('spoilt')]).toEqual([4, 2]);
});
