import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ANNOTATION_RECREATED, ANNOTATION_RESULT, HOME_LEASE } from '../../../src/api/names.ts';
import { leases } from '../../../src/api/resources.ts';
import type { AnyObject } from '../../support/fake-api/storage.ts';
import { World } from './support/world.ts';

/** The home comes back to what the provider's guardian, played by the tests, has made of its pods. */

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

const AWAY = '2020-01-01T00:00:00.000000Z';

/** A home that has been away for years. */
const lapsed = (): void => {
  const spec = { leaseDurationSeconds: 40, renewTime: AWAY, acquireTime: AWAY };
  world.foreign.seed(leases, { metadata: { name: HOME_LEASE, namespace: 'tenant' }, spec });
};

function take(name: string): AnyObject {
  const body = world.body(name);
  if (body === undefined) throw new Error(`no body of ${name}`);
  world.foreign.storage.remove('pods', `tenant/${name}`);
  return body;
}

/** As the guardian does: the same name and labels, another UID. */
function put({ metadata, spec }: AnyObject, annotations: Record<string, string>, status?: object): void {
  const { nodeName: _node, ...rest } = spec ?? {};
  const { name, namespace, labels = {} } = metadata;
  world.auditor.remade.add(labels['tributary.dev/home-uid'] ?? '');
  world.foreign.storage.create('pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels, annotations: { ...metadata.annotations, ...annotations } },
    spec: rest,
    ...(status && { status }),
  } as unknown as AnyObject);
}

const RECREATED = { [ANNOTATION_RECREATED]: '{"count":2,"restarts":{"main":5}}' };
const restarts = (name: string): unknown =>
  (world.status(name)?.['containerStatuses'] as { restartCount?: number }[] | undefined)?.[0]?.restartCount;
const foreignWrites = (writes: string[]): string[] => writes.filter((line) => line.includes('/tenant/pods'));

async function ranThenAway(name: string): Promise<void> {
  const agent = await world.start();
  world.addPod(name);
  await world.settled();
  await agent.stop();
}

test('a pod made anew while home was away is the same pod at home, and nothing is written over there', async () => {
  await ranThenAway('web');
  const uid = world.home.storage.get('pods', 'shop/web')?.metadata.uid;
  const startTime = world.status('web')?.['startTime'];
  put(take('web'), RECREATED);
  lapsed();
  const written = world.recordWrites();
  await world.start();
  await world.until('adopted', () => restarts('web') === 5);
  await world.settled();
  expect(world.home.storage.get('pods', 'shop/web')?.metadata.uid).toBe(uid);
  expect(world.status('web')).toMatchObject({ phase: 'Running', podIP: '10.0.0.2', startTime });
  expect(foreignWrites(written())).toEqual([]);
  const told = (): string[] => world.events.filter((event) => event.startsWith('Recreated'));
  await world.until('told', () => told().length > 0);
  expect(told()).toEqual(['Recreated: made anew by the provider while this cluster was away (2 times)']);
  expect(world.events.join()).not.toContain('RemotePodLost');
});

test('one that is made anew only after the return is waited for', async () => {
  await ranThenAway('web');
  const body = take('web');
  lapsed();
  const written = world.recordWrites();
  await world.start();
  await world.until('home shows itself', () => written().some((line) => line.includes(HOME_LEASE)));
  put(body, RECREATED);
  await world.until('adopted', () => restarts('web') === 5);
  await world.settled();
  expect(world.events.join()).not.toContain('RemotePodLost');
  expect(foreignWrites(written())).toEqual([]);
});

test('one that is not made anew is lost, a while after the return', async () => {
  await ranThenAway('web');
  const { uid } = world.home.storage.get('pods', 'shop/web')?.metadata ?? { uid: '' };
  world.auditor.lost.add(uid);
  take('web');
  lapsed();
  await world.start();
  const from = world.clock.now();
  await world.until('lost', () => world.status('web')?.['phase'] === 'Failed');
  expect(world.clock.now() - from).toBeGreaterThan(10_000);
  await world.settled();
});

test('a result becomes that of the home pod once it is there, and sticks', async () => {
  await ranThenAway('work');
  const body = take('work');
  lapsed();
  const gate = { schedulingGates: [{ name: 'tributary.dev/result' }], nodeName: '' };
  // The pretended kubelet places what has no node.
  const bearer = { ...body, spec: { ...body.spec, ...gate } };
  put(bearer, { [ANNOTATION_RESULT]: 'true' }, { phase: 'Pending' });
  const written = world.recordWrites();
  await world.start();
  world.addPod('other');
  await world.until('another pod runs', () => world.status('other')?.['phase'] === 'Running');
  expect(world.status('work')?.['phase']).toBe('Running');
  world.foreign.storage.update('pods', {
    ...(world.body('work') as AnyObject),
    status: {
      phase: 'Succeeded',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
    },
  });
  await world.until('finished', () => world.status('work')?.['phase'] === 'Succeeded');
  await world.settled();
  expect(foreignWrites(written()).filter((line) => line.includes('/work'))).toEqual([]);
});
