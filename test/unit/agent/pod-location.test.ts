import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { LABEL_HOME_UID } from '../../../src/api/names.ts';
import { namespaces, pods } from '../../../src/api/resources.ts';
import { VIRTUAL_NODE_REASONS } from '../../../src/api/virtual-node.ts';
import { podLocator } from '../../../src/agent/pod-location.ts';
import type { Provider } from '../../../src/provider/provider.ts';
import type { Located, PodQuestion } from '../../../src/server/kubelet/backend.ts';
import { World } from '../provider/support/world.ts';

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

const never = new AbortController().signal;
const WEB: PodQuestion = { namespace: 'shop', pod: 'web', container: 'main' };

const locate = async (
  provider: Provider,
  question: Partial<PodQuestion> = {},
  signal: AbortSignal = never,
): Promise<Located> =>
  world.clock.during('looked', podLocator(provider, world.clock)({ ...WEB, ...question }, signal));

const isListOfPods = ({
  method,
  path,
  query,
}: {
  method: string;
  path: string;
  query: URLSearchParams;
}): boolean =>
  method === 'GET' &&
  path.endsWith('/tenant/pods') &&
  query.get('watch') !== 'true' &&
  !query.has('fieldSelector');

test('the body of a pod, by its path over there', async () => {
  const uid = world.addPod('web');
  const { provider } = await world.start();
  await world.settled();
  const body = { kind: 'body', uid, path: '/api/v1/namespaces/tenant/pods/web' };
  expect(await locate(provider)).toEqual(body);
  expect(await locate(provider, { container: 'side' })).toEqual({ kind: 'no container', uid });
  expect(await locate(provider, { pod: 'other' })).toEqual({ kind: 'no pod' });
  expect(await locate(provider, { namespace: 'elsewhere' })).toEqual({ kind: 'no pod' });
});

test('a pod that waits for what it refers to has no body, and what home shows says why', async () => {
  const uid = world.addPod('web', {
    containers: [{ name: 'main', image: 'web:1', envFrom: [{ configMapRef: { name: 'late' } }] }],
  });
  const { provider } = await world.start();
  await world.until('it says that it waits', () => world.status('web')?.['containerStatuses'] !== undefined);
  const before = world.clock.monotonic();
  const located = await locate(provider);
  expect(located).toMatchObject({ kind: 'no body', uid });
  const state = { waiting: { reason: 'CreateContainerConfigError' } };
  expect(located).toMatchObject({ pod: { status: { containerStatuses: [{ name: 'main', state }] } } });
  expect(world.clock.monotonic()).toBe(before);
});

test('the body of another home pod is none', async () => {
  const uid = world.addPod('web');
  const agent = await world.start();
  await world.settled();
  const body = world.body('web');
  if (body === undefined) throw new Error('no body');
  world.kubelet.holding = true;
  const labels = { ...body.metadata.labels, [LABEL_HOME_UID]: 'another' };
  world.foreign.storage.update('pods', { ...body, metadata: { ...body.metadata, labels } });
  await world.until(
    'seen',
    () =>
      agent.provider.tenants.of('shop')?.remotePod('web')?.metadata.labels?.[LABEL_HOME_UID] === 'another',
  );
  expect(await locate(agent.provider)).toMatchObject({ kind: 'no body', uid });
});

test('a pod of a namespace that is not offloaded has no body, and nobody is asked for it', async () => {
  world.home.seed(namespaces, { metadata: { name: 'inland' } });
  world.home.seed(pods, {
    metadata: { name: 'web', namespace: 'inland' },
    spec: { nodeName: 'rome', containers: [{ name: 'main', image: 'web:1' }] },
  });
  await world.foreign.stop();
  const { provider } = await world.start();
  expect(await locate(provider, { namespace: 'inland' })).toMatchObject({ kind: 'no body' });
});

test('a foreign cluster that is away since the start: nothing is known, and its pods exist', async () => {
  const uid = world.addPod('web');
  await world.foreign.stop();
  const { provider } = await world.start();
  await world.until(
    'it is known to be away',
    () => provider.contact.state.reason === VIRTUAL_NODE_REASONS.unreachable,
  );
  const before = world.clock.monotonic();
  expect(await locate(provider)).toMatchObject({
    kind: 'unknown',
    uid,
    why: expect.stringContaining('nothing answers on the way to the foreign API server') as unknown,
  });
  expect(world.clock.monotonic()).toBe(before);
});

test('a foreign cluster that goes away: bodies are known still, what has none is not known to have none', async () => {
  world.addPod('web');
  const { provider } = await world.start();
  await world.settled();
  await world.foreign.stop();
  world.foreign.cut();
  await world.until('contact is lost', () => !provider.contact.state.ok);
  world.addPod('late');
  await world.until('the new pod is seen', () => provider.homePods.get('shop/late') !== undefined);
  expect(await locate(provider)).toMatchObject({ kind: 'body' });
  expect(await locate(provider, { pod: 'late' })).toMatchObject({ kind: 'unknown' });
});

test('what is just being read after a start is waited for', async () => {
  const uid = world.addPod('web');
  const first = await world.start();
  await world.settled();
  await first.stop();
  world.foreign.fault({ match: isListOfPods, delayMs: 3_000 });
  const { provider } = await world.start();
  expect(provider.tenants.of('shop')?.pods.synced).not.toBe(true);
  expect(await locate(provider)).toMatchObject({ kind: 'body', uid });
});

test('what is not read for long is not waited for longer than a few seconds', async () => {
  const uid = world.addPod('web');
  world.foreign.fault({ match: isListOfPods, times: Infinity, stall: true });
  const { provider } = await world.start();
  const before = world.clock.monotonic();
  const located = await locate(provider);
  expect(located).toEqual({ kind: 'unknown', uid, why: 'its pods over there have not been read yet' });
  expect(world.clock.monotonic() - before).toBeGreaterThanOrEqual(5_000);
  expect(world.clock.monotonic() - before).toBeLessThan(6_000);
});

test('nor longer than anybody waits for the answer', async () => {
  world.addPod('web');
  world.foreign.fault({ match: isListOfPods, times: Infinity, stall: true });
  const { provider } = await world.start();
  const asker = new AbortController();
  const before = world.clock.monotonic();
  world.clock.after(1_000, () => asker.abort());
  expect(await locate(provider, {}, asker.signal)).toMatchObject({ kind: 'unknown' });
  expect(world.clock.monotonic() - before).toBeLessThan(1_100);
});
