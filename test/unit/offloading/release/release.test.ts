import { afterEach, expect, test } from '@jest/globals';
import { pods, secrets } from '../../../../src/api/resources.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { journalOf, journalSecret } from '../../../../src/offloading/release/journal.ts';
import { World } from './world.ts';

/** The shell around the decisions, over a simulated API server. */

let world: World;
afterEach(async () => world.down());

test('a pod with an owner is released, and its owner held off', async () => {
  world = await new World().up();
  const uid = world.addPod('web-0', { owned: true });
  world.addPod('web-1', { node: 'rome', owned: true });
  const began = world.clock.now();
  await world.start();
  await world.until('released', () => world.pod('web-0') === undefined);
  const { heldOff = [], clusters, conditions } = world.offloading.status ?? {};
  expect(heldOff).toEqual([{ owner: 'ReplicaSet/web-1', virtualNode: 'milan', until: expect.any(String) }]);
  expect(Date.parse(heldOff[0]?.until ?? '')).toBeGreaterThan(began + 590_000);
  // What is the offloading controller's is as it was.
  expect([clusters?.length, conditions]).toEqual([1, []]);
  const deaths = (world.api.storage.since('pods', 100) ?? []).filter(
    ({ previous }) => previous?.metadata.uid === uid,
  );
  expect(deaths.at(-1)?.previous?.status).toMatchObject({
    conditions: expect.arrayContaining([
      expect.objectContaining({
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'ReleasedFromVirtualNode',
      }),
    ]),
  });
  await world.clock.until('told', () => world.told.length > 0);
  expect(world.told).toEqual([
    'Released web-0: released from virtual node "milan", which could not place it: no room. It may go to a real node',
  ]);
  // Not on a node of ours.
  expect(world.pod('web-1')?.metadata.deletionTimestamp).toBeUndefined();
  expect(world.journals).toEqual([]);
});

test('a pod without an owner is made anew, once the old one is gone', async () => {
  world = await new World().up();
  world.agentsEnd = false;
  const uid = world.addPod('bare');
  await world.start();
  await world.until('deleted', () => world.pod('bare')?.metadata.deletionTimestamp !== undefined);
  expect(world.journals).toEqual([`tributary-remake-${uid}`]);
  expect(world.creations('bare')).toBe(1);
  world.agentsEnd = true;
  await world.until('made anew', () => world.journals.length === 0);
  expect(world.pod('bare')).toMatchObject({
    metadata: { annotations: { 'tributary.dev/released-from': 'milan', 'tributary.dev/remade-for': uid } },
    spec: { containers: [{ name: 'main', image: 'web:1' }] },
  });
  expect(world.pod('bare')?.spec).not.toHaveProperty('nodeName');
  expect(world.offloading.status?.heldOff).toMatchObject([{ owner: 'Pod/bare', virtualNode: 'milan' }]);
  expect(world.told.map((text) => text.split(' ')[0])).toEqual(['Released', 'Remade']);
});

test('no more of a namespace are on their way to be made anew than we keep manifests of', async () => {
  world = await new World().up();
  world.agentsEnd = false;
  for (let number = 0; number < 32; number += 1) {
    const pod = {
      metadata: { namespace: 'shop', name: `other-${number}`, uid: `uid-${number}` },
      spec: { containers: [] },
    };
    const journal = journalOf(pod as unknown as Pod, { from: 'milan', unlessStarted: false });
    world.api.seed(pods, {
      metadata: {
        ...pod.metadata,
        deletionTimestamp: new Date(world.clock.now()).toISOString(),
        finalizers: ['test/wait'],
      },
    });
    world.api.seed(secrets, journalSecret(journal, 'tributary-system'));
  }
  world.addPod('bare');
  world.addPod('web-0', { owned: true });
  await world.start();
  await world.until(
    'the owned one is released',
    () => world.pod('web-0')?.metadata.deletionTimestamp !== undefined,
  );
  expect(world.pod('bare')?.metadata.deletionTimestamp).toBeUndefined();
  expect(world.offloading.status?.heldOff?.map(({ owner }) => owner)).toEqual(['ReplicaSet/web-1']);
});

test('a name that somebody else has taken meanwhile is left to them', async () => {
  world = await new World().up();
  world.agentsEnd = false;
  world.addPod('bare');
  await world.start();
  await world.until('deleted', () => world.pod('bare')?.metadata.deletionTimestamp !== undefined);
  world.api.storage.remove('pods', 'shop/bare');
  world.api.seed(pods, { metadata: { namespace: 'shop', name: 'bare' }, spec: { containers: [] } });
  const { uid } = world.pod('bare')?.metadata ?? {};
  await world.until('the journal is dropped', () => world.journals.length === 0);
  expect(world.pod('bare')?.metadata.uid).toBe(uid);
  expect(world.told.at(-1)).toMatch(/^RemakeDropped bare: /);
});

test('a pod whose start is reported in the very moment of its release stays', async () => {
  world = await new World().up();
  const uid = world.addPod('web-0', { owned: true });
  // Served after the start has been stored: by a version that has passed.
  world.api.fault({
    match: ({ method, path }) => {
      if (method === 'DELETE' && path.endsWith('/web-0')) world.startPod('web-0');
      return false;
    },
    times: Infinity,
  });
  await world.start();
  await world.until('tried', () => world.api.count(/^DELETE .*web-0/) > 0);
  await world.until('started', () => world.pod('web-0')?.status?.phase === 'Running');
  expect(world.pod('web-0')?.metadata).toMatchObject({ uid });
  expect(world.pod('web-0')?.metadata.deletionTimestamp).toBeUndefined();
});

test('a journal does nothing to a pod that has started', async () => {
  world = await new World().up();
  const uid = world.addPod('bare');
  world.api.fault({
    match: ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/secrets')) world.startPod('bare');
      return false;
    },
    times: Infinity,
  });
  await world.start();
  await world.until('the journal came', () => world.api.count(/^POST .*secrets/) > 0);
  await world.until('the journal went', () => world.journals.length === 0);
  expect(world.pod('bare')?.metadata.uid).toBe(uid);
  expect(world.pod('bare')?.metadata.deletionTimestamp).toBeUndefined();
});

test('Remote, and no other virtual node: it is said, and the pod stays until there is one', async () => {
  world = await new World().up({ podStrategy: 'Remote' });
  world.addPod('web-0', { owned: true });
  await world.start();
  await world.until('told', () => world.told.length > 0);
  expect(world.told[0]).toMatch(/^NotReleased web-0: .*podStrategy Remote/);
  expect(world.api.log.filter((line) => !line.startsWith('GET'))).toEqual([]);
  const { storage } = world.api;
  const key = 'namespaceoffloadings.tributary.dev';
  const { offloading } = world;
  const rome = { cluster: 'id-rome', virtualNodes: ['rome'], phase: 'Ready', reason: 'AsExpected' };
  const clusters = [...(offloading.status?.clusters ?? []), rome];
  storage.update(key, { ...offloading, status: { ...offloading.status, clusters } } as never);
  await world.until('released', () => world.pod('web-0') === undefined);
  await world.clock.until('told', () => world.told.length > 1);
  expect(world.told.at(-1)).toMatch(/It may go to virtual node "rome"/);
});

test('a pod whose data are over there waits for a place there', async () => {
  world = await new World().up();
  world.addPod('db-0', { owned: true, claim: 'data-db-0' });
  await world.start();
  await world.until('told', () => world.told.length > 0);
  expect(world.told[0]).toMatch(/^NotReleased db-0: .*volumes are over there.*no room/);
  expect(world.api.log.filter((line) => !line.startsWith('GET'))).toEqual([]);
});

test('a provider that refuses everything does not empty itself at once', async () => {
  world = await new World().up();
  for (let index = 0; index < 40; index++) world.addPod(`web-${index}`, { owned: true });
  await world.start();
  const released = (): number => world.told.filter((text) => text.startsWith('Released')).length;
  await world.until('the burst', () => released() >= 20);
  const began = world.clock.monotonic();
  await world.clock.until('one more', () => released() > 20);
  expect(world.clock.monotonic() - began).toBeGreaterThan(200);
  expect(released()).toBeLessThan(25);
  expect(world.offloading.status?.heldOff).toHaveLength(1);
});

test('pods of a virtual node that comes later', async () => {
  world = await new World().up({}, []);
  world.addPod('web-0', { owned: true });
  await world.start();
  expect(world.api.count(/fieldSelector/)).toBe(0);
  world.api.seed(virtualNodes, { metadata: { name: 'milan' }, spec: { nodeName: 'milan-node' } });
  await world.until('released', () => world.pod('web-0') === undefined);
});

test('pods of a virtual node that has gone are no longer looked after', async () => {
  world = await new World().up();
  world.addPod('web-0', { owned: true });
  await world.start();
  await world.until('released', () => world.pod('web-0') === undefined);
  world.api.storage.remove('virtualnodes.tributary.dev', 'milan');
  // News of another virtual node comes after that of the one that has gone.
  world.api.seed(virtualNodes, { metadata: { name: 'rome' }, spec: { nodeName: 'rome-node' } });
  await world.clock.until('rome is looked after', () => world.api.count(/rome-node/) > 0);
  world.addPod('web-1', { owned: true });
  world.addPod('web-2', { node: 'rome', owned: true });
  await world.until('released', () => world.pod('web-2') === undefined);
  expect(world.pod('web-1')?.metadata.deletionTimestamp).toBeUndefined();
});
