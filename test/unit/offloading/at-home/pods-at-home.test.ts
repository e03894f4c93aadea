import { afterEach, beforeEach, expect, test } from '@jest/globals';

import type { NamespaceOffloading } from '../../../../src/api/namespace-offloading.ts';
import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import { pods } from '../../../../src/api/resources.ts';
import { PodsAtHome } from '../../../../src/offloading/at-home/pods-at-home.ts';
import { OffloadWorld } from '../support/offload-world.ts';

/** Pods that were there before, as the controller shows and moves them. */

const TIMEOUT_MS = 180_000;
const WEB = {
  labels: { 'pod-template-hash': 'abc' },
  ownerReferences: [
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-abc', uid: 'u', controller: true },
  ],
};
const LET_IN = { ...WEB, annotations: { 'tributary.dev/strategy': 'Remote' } };

let world: OffloadWorld;
beforeEach(async () => {
  world = await new OffloadWorld().up();
  await world.virtualNode('milan', 'milan');
}, TIMEOUT_MS);
afterEach(async () => world.down(), TIMEOUT_MS);

const atHome = async (): Promise<number | undefined> => (await world.get())?.status?.podsAtHome;
const conditionOf = (one: NamespaceOffloading | undefined, type: string): string => {
  const found = one?.status?.conditions?.find((condition) => condition.type === type);
  return found === undefined ? 'none' : `${found.status} ${found.reason}`;
};
const isReady = async (name: string): Promise<void> => {
  const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  const ref = { name, namespace: 'shop' };
  await world.client.patch(pods, ref, { type: 'merge', body }, { subresource: 'status' });
};
const change = async (spec: object): Promise<unknown> =>
  world.client.patch(
    namespaceOffloadings,
    { name: 'offloading', namespace: 'shop' },
    { type: 'merge', body: { spec } },
  );
const gone = async (name: string): Promise<unknown> =>
  world.client.delete(pods, { name, namespace: 'shop' }, { gracePeriodSeconds: 0 });

test('Remote is not Ready while there are pods on real nodes, and says so at once when there are none', async () => {
  await world.pod('web-abc-1', 'real-1', WEB);
  await world.pod('web-abc-2', 'milan', LET_IN);
  await world.start();
  await world.offload({ podStrategy: 'Remote' });
  const { status } = await world.untilReady('PodsAtHome');
  expect(status?.podsAtHome).toBe(1);
  expect(status?.conditions?.map(({ type, status: value }) => `${type} ${value}`)).toEqual([
    'Ready False',
    'PodsAtHome True',
  ]);
  expect(status?.conditions?.[0]?.message).toContain('`kubectl -n shop rollout restart deployment web`');
  await gone('web-abc-1');
  const after = await world.untilReady('AsExpected');
  expect([conditionOf(after, 'PodsAtHome'), after.status?.podsAtHome]).toEqual(['False AsExpected', 0]);
});

test('LocalAndRemote is Ready, counts them, and tells each once, also when another process goes on', async () => {
  await world.pod('web-abc-1', 'real-1', WEB);
  await world.pod('pinned', 'milan', WEB);
  await world.pod('done', 'real-1', {}, 'Succeeded');
  await world.start();
  await world.offload();
  const { status } = await world.untilReady('AsExpected');
  expect(status?.podsAtHome).toBe(1);
  const told = (): string[] => world.events.filter((line) => line.startsWith('Pod/'));
  expect(told()).toEqual([
    'Pod/web-abc-1 PodAtHome: made before its namespace was offloaded, so it stays on real nodes; to let it go, run `kubectl -n shop rollout restart deployment web`',
  ]);
  await world.stop();
  await world.start();
  await gone('web-abc-1');
  await world.until('the next process counts on', async () => (await atHome()) === 0);
  expect(told()).toHaveLength(1);
});

test.each([
  ['soon', 0],
  // The configuration of webhooks is written at most every five seconds where many objects have come at once.
  ['late', 10_000],
])(
  'a pod that is made before the webhook knows of the object is found by a later look: %s',
  async (_, ms) => {
    await world.start();
    await world.offload({ podStrategy: 'Remote' });
    await world.untilReady('AsExpected');
    await world.clock.advance(ms);
    await world.pod('web-abc-1', 'real-1', WEB);
    await world.untilReady('PodsAtHome');
  },
);

test('another strategy is another question', async () => {
  await world.pod('web-abc-1', 'real-1', LET_IN);
  await world.start();
  await world.offload();
  await world.untilReady('AsExpected');
  expect(await atHome()).toBe(0);
  await change({ podStrategy: 'Remote' });
  await world.untilReady('PodsAtHome');
  await change({ podStrategy: 'Local' });
  const local = await world.untilReady('AsExpected');
  await world.until('nobody looks any more', async () => (await atHome()) === undefined);
  expect(conditionOf(await world.get(), 'PodsAtHome')).toBe('none');
  expect(local.spec.podStrategy).toBe('Local');
});

test('existingPods Move: one after the other, each when the one before is Ready abroad', async () => {
  for (const name of ['web-abc-1', 'web-abc-2']) {
    await world.pod(name, 'real-1', WEB);
    await isReady(name);
  }
  await world.start();
  await world.offload({ podStrategy: 'Remote' });
  await world.untilReady('PodsAtHome');
  // Nothing is moved that nobody has asked for.
  await world.clock.advance(60_000);
  expect(await world.podNames()).toEqual(['web-abc-1@real-1', 'web-abc-2@real-1']);
  await change({ existingPods: 'Move' });
  const ending = async (): Promise<string[]> =>
    (await world.client.list(pods, { namespace: 'shop' })).items
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .map(({ metadata }) => metadata.name);
  await world.until('one is evicted', async () => (await ending()).length === 1);
  expect(await ending()).toEqual(['web-abc-1']);
  await gone('web-abc-1');
  await world.pod('web-abc-3', 'milan', LET_IN);
  await world.clock.advance(120_000);
  expect(await ending()).toEqual([]);
  await isReady('web-abc-3');
  await world.until('the other one is', async () => (await ending()).length === 1);
  await gone('web-abc-2');
  await world.pod('web-abc-4', 'milan', LET_IN);
  await world.untilReady('AsExpected');
  expect(world.events.filter((line) => line.includes('PodMoved'))).toHaveLength(2);
});

test('existingPods Move waits for a cluster that has the namespace', async () => {
  world.answer('milan', 'shop', undefined);
  await world.pod('web-abc-1', 'real-1', WEB);
  await isReady('web-abc-1');
  await world.start();
  await world.offload({ podStrategy: 'Remote', existingPods: 'Move' });
  await world.untilReady('InProgress');
  await world.clock.advance(60_000);
  expect(
    (await world.client.get(pods, { name: 'web-abc-1', namespace: 'shop' })).metadata.deletionTimestamp,
  ).toBeUndefined();
  world.answer('milan', 'shop', { state: 'Mapped', tenantNamespace: 'shop-there' });
  await world.until(
    'it is moved',
    async () =>
      (await world.client.get(pods, { name: 'web-abc-1', namespace: 'shop' })).metadata.deletionTimestamp !==
      undefined,
  );
});

test('for an object that a tether keeps, it names the command', async () => {
  await world.pod('web-abc-1', 'real-1', WEB);
  const { client, clock } = world;
  const home = new PodsAtHome({ client, clock, events: { event: () => {} }, virtualNodes: () => new Set() });
  const labels = { 'tributary.dev/offloading-origin': 'tether' };
  const offloading = await client.create(namespaceOffloadings, {
    metadata: { namespace: 'shop', name: 'offloading', labels },
    spec: { podStrategy: 'Remote', existingPods: 'Stay' },
  });
  const look = await clock.during('a look', home.look(offloading, new AbortController().signal));
  expect(look?.condition.message).toContain('`tributary tether CLUSTER --evict`');
});
