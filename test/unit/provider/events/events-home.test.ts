import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { events, pods } from '../../../../src/api/resources.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { World } from '../support/world.ts';

/** Events of the foreign cluster, brought home by agents between two simulated clusters. */

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

const at = (offsetMs = 0): string => new Date(world.clock.now() + offsetMs).toISOString();

function happens(name: string, podName: string, parts: object = {}): AnyObject {
  return world.foreign.seed(events, {
    metadata: { namespace: 'tenant', name },
    involvedObject: {
      kind: 'Pod',
      name: podName,
      namespace: 'tenant',
      uid: world.body(podName)?.metadata.uid ?? 'none',
    },
    type: 'Warning',
    reason: 'BackOff',
    message: `Back-off restarting container of tenant/${podName}`,
    source: { component: 'kubelet' },
    firstTimestamp: at(),
    lastTimestamp: at(),
    count: 1,
    ...parts,
  });
}
interface HomeEvent extends AnyObject {
  involvedObject?: { uid?: string };
  count?: number;
  message?: string;
}
const told = (): HomeEvent[] => world.home.storage.list('events');
const count = (name: string, to: number): void => {
  const event = world.foreign.storage.get('events', `tenant/${name}`) as AnyObject;
  world.foreign.storage.update('events', { ...event, count: to, lastTimestamp: at() });
};
const writes = (method: string): number => world.home.count(new RegExp(`^${method} .*/events`, 'u'));

async function withPod(name = 'web'): Promise<void> {
  world.addPod(name);
  await world.until('runs', () => world.status(name)?.['phase'] === 'Running');
}

test('told at home of the home pod; counting on changes the same event', async () => {
  await world.start();
  await withPod();
  happens('web.1', 'web');
  await world.until('told', () => told().length === 1);
  expect(told()[0]).toMatchObject({
    metadata: { namespace: 'shop' },
    involvedObject: {
      kind: 'Pod',
      name: 'web',
      namespace: 'shop',
      uid: world.home.storage.get('pods', 'shop/web')?.metadata.uid,
    },
    reason: 'BackOff',
    message: 'Back-off restarting container of shop/web',
    source: { component: 'kubelet', host: 'rome' },
    count: 1,
  });
  count('web.1', 2);
  await world.until('counted', () => told()[0]?.count === 2);
  count('web.1', 9);
  await world.until('counted on', () => told()[0]?.count === 9);
  expect([told().length, writes('POST')]).toEqual([1, 1]);
});

test('an agent that starts anew tells nothing twice, and goes on where the last one was', async () => {
  const first = await world.start();
  await withPod();
  for (let index = 0; index < 10; index++) happens(`web.${index}`, 'web');
  await world.until('told', () => told().length === 10);
  const versions = (): string[] => told().map(({ metadata }) => metadata.resourceVersion);
  const before = versions();
  await world.replace(first);
  await world.until('looked at again', () => writes('POST') >= 20);
  expect(versions()).toEqual(before);
  count('web.3', 5);
  await world.until('counted', () => told().some((event) => event.count === 5));
  expect(told()).toHaveLength(10);
});

test('what an agent before has had time to tell costs the next one no request', async () => {
  const first = await world.start();
  await withPod();
  happens('web.old', 'web', { lastTimestamp: at(-120_000) });
  happens('web.new', 'web');
  await world.until('told', () => told().length === 2);
  world.predecessorAt = world.clock.now();
  await world.replace(first);
  await world.until('the newer one is looked at again', () => writes('POST') >= 3);
  count('web.old', 5);
  await world.until('counted', () => told().some((event) => event.count === 5));
  expect([writes('POST'), told().length]).toEqual([4, 2]);
});

test('what counted on while no agent ran is told by the next', async () => {
  const first = await world.start();
  await withPod();
  happens('web.1', 'web');
  await world.until('told', () => told().length === 1);
  await first.stop();
  count('web.1', 8);
  await world.start();
  await world.until('counted on', () => told()[0]?.count === 8);
  expect(told()).toHaveLength(1);
});

test('an event that home has forgotten is told anew when it counts on', async () => {
  await world.start();
  await withPod();
  happens('web.1', 'web');
  await world.until('told', () => told().length === 1);
  world.home.storage.remove('events', `shop/${told()[0]?.metadata.name}`);
  count('web.1', 2);
  await world.until('told again', () => told()[0]?.count === 2);
});

test('events of pods that are not ours, and of forged UIDs, are not told', async () => {
  await world.start();
  await withPod();
  const theirs = world.foreign.seed(pods, {
    metadata: { namespace: 'tenant', name: 'theirs' },
    spec: { containers: [{ name: 'main', image: 'x' }] },
  });
  // On home's pod of that name, which runs elsewhere.
  world.home.seed(pods, { metadata: { namespace: 'shop', name: 'theirs' }, spec: { nodeName: 'other' } });
  const about = (name: string, uid: string): object => ({
    involvedObject: { kind: 'Pod', name, namespace: 'tenant', uid },
  });
  happens('theirs.1', 'theirs', about('theirs', theirs.metadata.uid));
  happens('forged.1', 'web', about('web', theirs.metadata.uid));
  happens('forged.2', 'web', about('web', world.home.storage.get('pods', 'shop/web')?.metadata.uid ?? ''));
  happens('forged.3', 'web', about('theirs', world.body('web')?.metadata.uid ?? ''));
  happens('old.1', 'web', { firstTimestamp: at(-7_200_000), lastTimestamp: at(-3_700_000) });
  happens('node.1', 'web', { involvedObject: { kind: 'Node', name: 'web', uid: 'web' } });
  await world.clock.advance(30_001);
  happens('web.1', 'web');
  await world.until('told', () => told().length > 0);
  expect(told().map(({ message }) => message)).toEqual(['Back-off restarting container of shop/web']);
});

test('a flood fills neither home nor the queue: other pods are heard, and run', async () => {
  await world.start();
  await withPod();
  const uid = world.body('web')?.metadata.uid;
  for (let index = 0; index < 3000; index++) {
    const message = `${index} ${'x'.repeat(10_000)}`;
    happens(`web.${index}`, 'web', { message });
    const involvedObject = { kind: 'Pod', name: 'nobody', namespace: 'tenant', uid: `forged-${index}` };
    happens(`nobody.${index}`, 'nobody', { involvedObject });
  }
  await withPod('other');
  happens('other.1', 'other');
  const other = world.home.storage.get('pods', 'shop/other')?.metadata.uid;
  const isHeard = (): boolean => told().some(({ involvedObject }) => involvedObject?.uid === other);
  await world.until('heard', isHeard);
  expect(uid).toBeDefined();
  // Its burst and a few turns later: never the thousands.
  expect(told().length).toBeLessThan(60);
  expect(Math.max(...told().map(({ message = '' }) => message.length))).toBe(1024);
}, 180_000);

test('a provider that does not let events be read costs the events and nothing else', async () => {
  const isAsked = ({ path }: { path: string }): boolean => path.includes('/events');
  world.foreign.fault({ match: isAsked, times: Infinity, status: 403 });
  await world.start();
  await withPod();
  await world.settled();
  expect(told()).toEqual([]);
  expect(world.foreign.count(/\/events/u)).toBeGreaterThan(0);
});

test('home that refuses is asked again later, and nothing else suffers', async () => {
  await world.start();
  await withPod();
  const match = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'POST' && path.includes('/events');
  const heal = world.home.fault({ match, times: Infinity, status: 500 });
  happens('web.1', 'web');
  await world.until('tried', () => writes('POST') > 0);
  await withPod('other');
  heal();
  await world.until('told', () => told().length === 1);
});

test('in a rush of pods, states come first: what is wrong is told at once, the rest a little later', async () => {
  await world.start();
  const names = Array.from({ length: 60 }, (_, index) => `web-${index}`);
  for (const name of names) world.addPod(name);
  await world.until('run', () => names.every((name) => world.status(name)?.['phase'] === 'Running'));
  happens('normal', 'web-1', { type: 'Normal', reason: 'Pulled' });
  happens('warning', 'web-2');
  await world.until('told', () => told().length > 0);
  expect(told().map(({ type }) => type)).toEqual(['Warning']);
  await world.clock.advance(11_000);
  await world.until('told, too', () => told().length > 1);
});
