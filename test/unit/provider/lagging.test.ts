import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pods } from '../../../src/api/resources.ts';
import type { FakeApi } from '../../support/fake-api/fake-api.ts';
import { World } from './support/world.ts';

/** What an agent is shown that was true once, and namespaces that somebody over there takes away. */

const TIMEOUT_MS = 30_000;
/** Losses that are believed at once; one more every so often (src/lib/loss-budget.ts). */
const AT_ONCE = 20;
const PAUSE_MS = 2_000;

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `web-${index}`);
const phases = (count: number): unknown[] => names(count).map((name) => world.status(name)?.['phase']);

/** From now on the next so many lists of pods are as they are now, as by an API server that lags behind the etcd of others. */
async function remembered(server: FakeApi, times: number): Promise<() => void> {
  const client = server.client({ token: async () => 'agent-token' });
  const { items, resourceVersion } = await client.list(pods);
  await client.close();
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'PodList',
    metadata: { resourceVersion },
    items: items.map((item) => ({ ...item, apiVersion: 'v1', kind: 'Pod' })),
  });
  return () => {
    server.fault({
      match: ({ method, path, query }) =>
        method === 'GET' &&
        path.endsWith('/pods') &&
        query.get('watch') !== 'true' &&
        query.get('limit') !== '1',
      times,
      body,
    });
  };
}

test.each(['home', 'foreign', 'both'] as const)(
  'an agent begins anew with an API server that lags (%s): no pod is ended, made twice or brought back',
  async (side) => {
    let agent = await world.start();
    for (const name of names(3)) world.addPod(name);
    await world.settled();
    const servers = side === 'both' ? [world.home, world.foreign] : [world[side]];
    const lags = await Promise.all(servers.map(async (server) => remembered(server, 2)));
    // Two go, one of them comes again under its name, and two are new.
    for (const name of ['web-0', 'web-1']) world.deletePod(name);
    await world.until('two are gone', () => world.home.storage.list('pods').length === 1);
    for (const name of ['web-1', 'web-3', 'web-4']) world.addPod(name);
    await world.settled();
    const before = world.foreign.storage.list('pods').map(({ metadata }) => metadata.uid);
    for (const lag of lags) lag();
    const writes = world.recordWrites();
    agent = await world.replace(agent);
    await world.settled();
    await world.clock.advance(60_000);
    await world.settled();
    // A body that is no longer there may be asked to go, by its UID: that hits nobody.
    expect(writes().filter((line) => /^POST .*\/pods/u.test(line))).toEqual([]);
    expect(world.foreign.storage.list('pods').map(({ metadata }) => metadata.uid)).toEqual(before);
    expect(world.body('web-0')).toBeUndefined();
  },
  TIMEOUT_MS,
);

test(
  'the tenant namespace is deleted over there, with all pods: home pods fail slowly, new ones wait and run when it is back',
  async () => {
    await world.start();
    const count = AT_ONCE + 5;
    for (const name of names(count)) world.auditor.lost.add(world.addPod(name));
    await world.settled();
    const back = world.foreign.fault({
      match: ({ method, path }) => method === 'POST' && path.endsWith('/pods'),
      times: Infinity,
      status: 404,
      message: 'namespaces "tenant" not found',
    });
    for (const { metadata } of world.foreign.storage.list('pods'))
      world.foreign.storage.remove('pods', `tenant/${metadata.name}`);
    const failed = (): number => phases(count).filter((phase) => phase === 'Failed').length;
    await world.until('those that are believed at once have failed', () => failed() >= AT_ONCE);
    expect(failed()).toBeLessThanOrEqual(AT_ONCE + 1);
    await world.clock.advance(PAUSE_MS);
    expect(failed()).toBeLessThan(count);
    await world.until('all have failed', () => failed() === count);
    world.addPod('new');
    const asked = (): number => world.foreign.count(/^POST .*\/pods/u);
    const before = asked();
    await world.clock.advance(60_000);
    expect(asked() - before).toBeLessThan(10);
    expect(world.status('new')?.['phase']).toBe('Pending');
    back();
    await world.settled();
    expect(world.status('new')?.['phase']).toBe('Running');
    expect(failed()).toBe(count);
  },
  TIMEOUT_MS,
);
