import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pods } from '../../../src/api/resources.ts';
import type { KubeObject, Pod } from '../../../src/api/wire.ts';
import { World } from './support/world.ts';

/** The foreign cluster has less room than was agreed on. */

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

const FULL =
  'exceeded quota: tributary, requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=4500m';

/** Until it is called off, or as often as is said. */
function refuse(times = Infinity): { off: () => void } {
  let isOn = true;
  const match = ({ method, path }: { method: string; path: string }): boolean =>
    isOn && method === 'POST' && path.endsWith('/pods');
  world.foreign.fault({ match, times, status: 403, message: FULL });
  return { off: () => (isOn = false) };
}

const cpu = (amount: string): Pod['spec'] => ({
  containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu: amount } } }],
});

function edit(name: string, metadata: Partial<KubeObject['metadata']>): void {
  const { storage } = world.home;
  const pod = storage.get('pods', `shop/${name}`);
  if (pod === undefined) throw new Error(`no pod ${name}`);
  storage.update('pods', { ...pod, metadata: { ...pod.metadata, ...metadata } });
}

function add(name: string, owner?: { apiVersion: string; kind: string }): void {
  world.addPod(name, cpu('2'));
  if (owner === undefined) return;
  edit(name, { ownerReferences: [{ ...owner, name: 'owner', uid: 'owner', controller: true }] });
}
const REPLICA_SET = { apiVersion: 'apps/v1', kind: 'ReplicaSet' };

const shown = (): string | undefined => {
  const status = world.home.storage.get('nodes', 'rome')?.status as
    { allocatable?: Record<string, string>; capacity?: Record<string, string> } | undefined;
  expect(status?.capacity?.['cpu']).toBe('100');
  return status?.allocatable?.['cpu'];
};
const seconds = (from: number): number => (world.clock.now() - from) / 1000;

test('the Node shows what is placed and what is left, and the pod ends as a kubelet ends one that it cannot admit', async () => {
  await world.start();
  add('runs');
  await world.settled();
  refuse();
  const from = world.clock.now();
  add('more', REPLICA_SET);
  await world.until('taken off the Node', () => shown() === '2500m');
  expect(world.events).toContainEqual(expect.stringMatching(/^LessRoom: .* no room for pod shop\/more/u));
  await world.until('ended', () => world.status('more')?.['phase'] === 'Failed');
  expect(seconds(from)).toBeGreaterThanOrEqual(5);
  expect(seconds(from)).toBeLessThan(20);
  expect(world.status('more')).toMatchObject({
    reason: 'OutOfcpu',
    message: expect.stringContaining(FULL),
    conditions: expect.arrayContaining([
      expect.objectContaining({
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'RefusedByForeignCluster',
      }),
    ]),
  });
  expect(world.events).toContainEqual(expect.stringMatching(/^OutOfcpu: the foreign cluster has no room/u));
  expect(world.status('runs')).toMatchObject({ phase: 'Running' });
  // Nobody asks for more, so all is shown again in the end.
  await world.until('all is shown again', () => shown() === '100');
});

test('a place that the quota has not yet counted as free costs no pod', async () => {
  await world.start();
  refuse(2);
  add('web', REPLICA_SET);
  await world.until('refused', () => world.status('web')?.['reason'] === 'ExceededQuota');
  await world.settled();
  expect(world.status('web')).toMatchObject({ phase: 'Running' });
  await world.until('all is shown again', () => shown() === '100');
});

/** A pod ends, and the quota does not count that for a while. */
async function replaced(times: number): Promise<number> {
  await world.start();
  add('low');
  await world.settled();
  world.deletePod('low');
  await world.until('low has ended', () => world.status('low') === undefined);
  refuse(times);
  add('high');
  // As one that has waited at home for others to be preempted: the attempts of old pods are far apart.
  edit('high', { creationTimestamp: new Date(world.clock.now() - 60_000).toISOString() });
  return world.clock.now();
}

test('room that a pod has just left is not taken off the Node, and who comes instead asks again soon', async () => {
  const from = await replaced(2);
  await world.until('high runs', () => world.status('high')?.['phase'] === 'Running');
  expect(seconds(from)).toBeLessThan(5);
  expect(shown()).toBe('100');
  expect(world.events).toContainEqual(expect.stringMatching(/^ExceededQuota: /u));
  expect(world.events).not.toContainEqual(expect.stringMatching(/^LessRoom: /u));
});

test('room that a pod has left is taken off the Node if it is not there after five seconds', async () => {
  const from = await replaced(Infinity);
  await world.until('taken off the Node', () => shown() === '500m');
  expect(seconds(from)).toBeGreaterThanOrEqual(4);
  expect(seconds(from)).toBeLessThan(10);
});

test('room that a pod has just left explains no refusal of one that needs more', async () => {
  await world.start();
  world.addPod('low', cpu('1'));
  await world.settled();
  world.deletePod('low');
  await world.until('low has ended', () => world.status('low') === undefined);
  refuse();
  const from = world.clock.now();
  add('high');
  await world.until('taken off the Node', () => shown() === '500m');
  expect(seconds(from)).toBeLessThan(1);
});

test.each([
  ['a bare pod', undefined],
  ['a pod of a controller that may not replace it', { apiVersion: 'argoproj.io/v1alpha1', kind: 'Workflow' }],
])('%s is not ended: it waits, and runs when there is room', async (_, owner) => {
  await world.start();
  const { off } = refuse();
  add('web', owner);
  const from = world.clock.now();
  await world.until('two minutes', () => seconds(from) > 120);
  expect(world.status('web')).toMatchObject({ phase: 'Pending', reason: 'ExceededQuota' });
  off();
  await world.settled();
  expect(world.status('web')).toMatchObject({ phase: 'Running' });
});

test('a provider that refuses everything does not end all pods at once', async () => {
  await world.start();
  refuse();
  for (let n = 0; n < 40; n++) add(`web-${n}`, REPLICA_SET);
  const ended = (): number =>
    world.home.storage.list('pods').filter(({ status }) => status?.['phase'] === 'Failed').length;
  await world.until('some have ended', () => ended() > 0);
  const from = world.clock.now();
  await world.until('all have ended', () => ended() === 40);
  expect(seconds(from)).toBeGreaterThan(20);
});

test('a pod that waits because of something else is neither ended nor counted', async () => {
  await world.start();
  const match = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'POST' && path.endsWith('/pods');
  world.foreign.fault({ match, times: Infinity, status: 403, message: 'violates PodSecurity' });
  add('web', REPLICA_SET);
  const from = world.clock.now();
  await world.until('a minute', () => seconds(from) > 60);
  expect(world.status('web')).toMatchObject({ phase: 'Pending', reason: 'Forbidden' });
  expect(shown()).toBe('100');
  expect(world.home.storage.list(pods.plural)).toHaveLength(1);
});
