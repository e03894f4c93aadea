import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { guestNetworkPolicies } from '../../../src/api/guest-network-policy.ts';
import { configMaps, pods } from '../../../src/api/resources.ts';
import type { FakeApi } from '../../support/fake-api/fake-api.ts';
import { World } from './support/world.ts';

/** What must hold whatever goes wrong between the agent and its two API servers. */

const TIMEOUT_MS = 30_000;
const WITH_CONFIG = { volumes: [{ name: 'config', configMap: { name: 'settings' } }] };

let world: World;
beforeEach(async () => {
  world = await new World({ types: [guestNetworkPolicies] }).up();
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' }, data: { a: '1' } });
});
afterEach(async () => world.down());

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `web-${index}`);
const deletions = (server: FakeApi): number => server.count(/^DELETE /u);
const isList =
  (resource: string) =>
  ({ method, path, query }: { method: string; path: string; query: URLSearchParams }): boolean =>
    method === 'GET' &&
    path.endsWith(`/${resource}`) &&
    query.get('watch') !== 'true' &&
    query.get('limit') !== '1';

async function running(count: number): Promise<void> {
  for (const name of names(count)) world.addPod(name, WITH_CONFIG);
  await world.settled();
}

const pass = async (ms: number): Promise<void> => {
  await world.clock.advance(ms);
};

/** Once the Node's conditions have followed: no write for so long that any loop would have shown itself. */
async function quiet(): Promise<void> {
  let writes = world.recordWrites();
  await world.until('the last write', async () => {
    writes = world.recordWrites();
    // By then an empty list has been asked for once more, and what it had left out is known.
    await pass(22_000);
    return writes().length === 0;
  });
  await pass(20_000);
  expect(writes()).toEqual([]);
}

describe('caches that are cold', () => {
  test.each(['pods', 'configmaps', 'secrets'])(
    'the foreign API server answers 500, then an empty list of %s once: nothing is deleted',
    async (resource) => {
      const agent = await world.start();
      await running(3);
      const match = isList(resource);
      world.foreign.fault({ match, status: 500, times: 3 });
      world.foreign.fault({ match, emptyList: true });
      await world.replace(agent);
      await world.until('listed again', () => world.foreign.count(new RegExp(`/${resource}\\?`, 'u')) > 6);
      await world.settled();
      await quiet();
      expect(deletions(world.foreign) + deletions(world.home)).toBe(0);
      expect(names(3).map((name) => world.status(name)?.['phase'])).toEqual([
        'Running',
        'Running',
        'Running',
      ]);
    },
    TIMEOUT_MS,
  );

  test.each(['pods', 'configmaps', 'secrets'])(
    'the home API server answers with an empty list of %s once: nothing is deleted',
    async (resource) => {
      const agent = await world.start();
      await running(3);
      const lists = (): number =>
        world.home.count(new RegExp(`^GET .*/${resource}(\\?(?!.*(watch=|limit=1(&|$)))|$)`, 'u'));
      const before = lists();
      world.home.fault({ match: isList(resource), status: 500, times: 2 });
      world.home.fault({ match: isList(resource), emptyList: true });
      await world.replace(agent);
      await world.settled();
      // Two failures, the empty one, and the one that finds what that had left out.
      await world.until('listed again', () => lists() >= before + 4, 120_000);
      await world.settled();
      await quiet();
      expect(deletions(world.foreign) + deletions(world.home)).toBe(0);
    },
    TIMEOUT_MS,
  );

  test(
    'both at once, and then again and again',
    async () => {
      let agent = await world.start();
      await running(2);
      for (let round = 0; round < 3; round++) {
        world.foreign.fault({ match: isList('pods'), emptyList: true });
        world.home.fault({ match: isList('pods'), emptyList: true });
        agent = await world.replace(agent);
        await world.settled();
      }
      await quiet();
      expect(deletions(world.foreign) + deletions(world.home)).toBe(0);
    },
    TIMEOUT_MS,
  );
});

describe('watches', () => {
  test(
    'closed after every other event, and compacted meanwhile',
    async () => {
      world.home.watches.eventsPerWatch = 2;
      world.foreign.watches.eventsPerWatch = 2;
      await world.start();
      for (const name of names(6)) world.addPod(name, WITH_CONFIG);
      world.foreign.storage.compact();
      world.home.storage.compact();
      await world.settled();
      for (const name of names(6)) world.deletePod(name);
      await world.until('all gone', () => world.home.storage.list('pods').length === 0);
      await world.settled();
    },
    TIMEOUT_MS,
  );

  test(
    'blind while a pod is deleted by force and made anew under its name',
    async () => {
      await world.start();
      await running(1);
      const old = world.home.storage.get('pods', 'shop/web-0')?.metadata.uid;
      const blind = world.home.fault({
        match: ({ query }) => query.get('watch') === 'true',
        times: Infinity,
        status: 503,
      });
      world.home.cut();
      world.deletePod('web-0', { force: true });
      world.addPod('web-0', WITH_CONFIG);
      blind();
      await world.settled();
      expect(world.body('web-0')?.metadata.labels?.['tributary.dev/home-uid']).not.toBe(old);
    },
    TIMEOUT_MS,
  );

  test(
    'blind over there while a body is taken away: its home pod ends as evicted',
    async () => {
      await world.start();
      await running(1);
      const uid = world.home.storage.get('pods', 'shop/web-0')?.metadata.uid ?? '';
      world.auditor.lost.add(uid);
      const blind = world.foreign.fault({
        match: ({ query }) => query.get('watch') === 'true',
        times: Infinity,
        status: 503,
      });
      world.foreign.cut();
      world.foreign.storage.remove('pods', 'tenant/web-0');
      blind();
      await world.until('ended', () => world.status('web-0')?.['phase'] === 'Failed');
      const conditions = world.status('web-0')?.['conditions'];
      expect(conditions).toContainEqual(
        expect.objectContaining({ type: 'DisruptionTarget', status: 'True' }),
      );
      await world.settled();
      await quiet();
      expect(world.body('web-0')).toBeUndefined();
    },
    TIMEOUT_MS,
  );
});

test(
  'the foreign cluster is away: nothing is overwritten; back again, all goes on',
  async () => {
    const { provider } = await world.start();
    await running(2);
    await world.foreign.stop();
    await world.until('noticed', () => !provider.contact.state.ok);
    // As the node lifecycle controller does to pods of a lost node.
    const pod = world.home.storage.get('pods', 'shop/web-0');
    if (pod === undefined) throw new Error('web-0 is gone');
    const conditions = [{ type: 'Ready', status: 'False', reason: 'NodeNotReady', lastTransitionTime: null }];
    world.home.storage.update('pods', { ...pod, status: { ...pod.status, conditions } });
    world.deletePod('web-1');
    world.addPod('web-2');
    await quiet();
    expect(world.status('web-0')?.['conditions']).toEqual(conditions);
    await world.foreign.start();
    await world.until('web-1 is gone', () => world.home.storage.get('pods', 'shop/web-1') === undefined);
    await world.settled();
    const ready = world.status('web-0')?.['conditions'];
    expect(ready).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
  },
  TIMEOUT_MS,
);

test(
  'two agents at once: never two bodies, and one life each',
  async () => {
    await world.start();
    await world.start();
    await running(8);
    for (const name of names(4)) world.deletePod(name);
    await world.until('four are gone', () => world.home.storage.list('pods').length === 4);
    for (const name of names(4)) world.addPod(name);
    await world.settled();
    await quiet();
  },
  TIMEOUT_MS,
);

test(
  'nothing is written while nothing differs',
  async () => {
    await world.start();
    await running(5);
    await quiet();
    const reads = world.home.log.length + world.foreign.log.length;
    await pass(23_000);
    // Probes only: one in two seconds.
    expect(world.home.log.length + world.foreign.log.length - reads).toBeLessThan(20);
  },
  TIMEOUT_MS,
);

test(
  'a foreign cluster that is full: the cause is shown, and it is not asked in a hot loop',
  async () => {
    let refusals = 0;
    world.foreign.fault({
      match: ({ method, path }) => method === 'POST' && path.endsWith('/pods') && ++refusals > 0,
      times: Infinity,
      status: 403,
    });
    await world.start();
    for (const name of names(5)) world.addPod(name);
    await world.until('all refused', () =>
      names(5).every((name) => world.status(name)?.['reason'] === 'Forbidden'),
    );
    const before = refusals;
    await world.clock.advance(60_000);
    // Doubling from a second on: six or seven times each.
    expect(refusals - before).toBeLessThan(5 * 8);
    expect(world.home.count(/^PUT .*\/status/u)).toBeLessThan(5 * 2 + 10);
  },
  TIMEOUT_MS,
);

test(
  'a pod made by others in the tenant namespace is never touched',
  async () => {
    const theirs = world.foreign.seed(pods, {
      metadata: { name: 'web-0', namespace: 'tenant' },
      spec: { nodeName: 'foreign-1', containers: [{ name: 'main', image: 'theirs' }] },
    });
    await world.start();
    world.addPod('web-0');
    await world.until('refused', () => world.status('web-0')?.['reason'] === 'NameTaken');
    await pass(20_000);
    expect(world.foreign.count(/^(PUT|PATCH|DELETE) .*pods/u)).toBe(0);
    expect(world.body('web-0')?.metadata.uid).toBe(theirs.metadata.uid);
  },
  TIMEOUT_MS,
);

test(
  'a pod that bears our mark and nobody’s UID is ended, and nothing at home is listed again and again',
  async () => {
    await world.start();
    await running(1);
    const metadata = { name: 'stray', namespace: 'tenant', labels: { 'tributary.dev/managed-by': 'rome' } };
    const lists = (): number =>
      world.home.log.filter((line) => /^GET .*\/pods\?(?!.*watch)/u.test(line)).length;
    const before = lists();
    world.foreign.seed(pods, { metadata, spec: { containers: [{ name: 'main', image: 'web:1' }] } });
    await world.until('ended', () => {
      const stray = world.body('stray');
      return stray === undefined || stray.metadata.deletionTimestamp !== undefined;
    });
    await pass(5_000);
    expect(lists()).toBe(before);
    expect(world.status('web-0')?.['phase']).toBe('Running');
  },
  TIMEOUT_MS,
);
