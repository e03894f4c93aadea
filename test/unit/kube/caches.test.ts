import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import type { Cache } from '../../../src/kube/cache.ts';
import { type CacheOptions, Caches } from '../../../src/kube/caches.ts';
import { type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';
import { fastClock } from '../../support/fast-clock.ts';

const TEAM = 'team';
const { signal } = new AbortController();

let server: FakeApiServer;
let client: HttpClient;
let caches: Caches;
let asked: Cache<ConfigMap>[];

beforeEach(async () => {
  server = await new FakeApiServer().start();
  client = createClient(server.credentials());
  caches = new Caches({ client, clock: fastClock(50), log: silentLogger, random: () => 0.001 });
  asked = [];
});

afterEach(async () => {
  await Promise.all(asked.map(async (cache) => cache.stop()));
  await client.close();
  await server.stop();
});

function ask(options: CacheOptions<ConfigMap> = {}): Cache<ConfigMap> {
  const cache = caches.of(configMaps, options);
  asked.push(cache);
  return cache;
}

async function started(options: CacheOptions<ConfigMap> = {}): Promise<Cache<ConfigMap>> {
  const cache = ask(options);
  await cache.start(signal);
  return cache;
}

function seed(name: string, team: string): void {
  server.seed(configMaps, { metadata: { name, namespace: 'ns', labels: { [TEAM]: team } } });
}

function move(name: string, team: string): void {
  const current = server.storage.get('configmaps', `ns/${name}`);
  if (current === undefined) throw new Error(`no ${name}`);
  const metadata = { ...current.metadata, labels: { [TEAM]: team } };
  server.storage.update('configmaps', { ...current, metadata });
}

const teamOf = (object: ConfigMap | undefined): string => object?.metadata.labels?.[TEAM] ?? '-';
const names = (cache: Cache<ConfigMap>): string[] => [...cache.list()].map(({ metadata }) => metadata.name);
const lists = (): number => server.count(/^GET .*configmaps(?!.*watch=true)/);
const watches = (): number => server.count(/configmaps\?.*watch=true/);
const watched = async (count = 1): Promise<void> =>
  eventually(`${count} watches`, () => server.watches.watchers.length === count);

/** What a cache tells, as "name: before > now". */
function changesOf(cache: Cache<ConfigMap>): string[] {
  const changes: string[] = [];
  cache.onChange((key, current, previous) =>
    changes.push(`${key.slice('ns/'.length)}: ${teamOf(previous)} > ${teamOf(current)}`),
  );
  return changes;
}

test('all who ask for the same share one list and one watch', async () => {
  seed('a', 'red');
  const cold = ask();
  const all = await Promise.all([started(), started(), started({ name: 'another name' })]);
  await watched();
  seed('b', 'red');
  for (const cache of all) await eventually('both', () => names(cache).join() === 'a,b');
  expect([lists(), watches()]).toEqual([1, 1]);
  expect([cold.synced, cold.size, cold.get('ns/a')]).toEqual([false, 0, undefined]);
});

test.each<[string, CacheOptions<ConfigMap>]>([
  ['another namespace', { list: { namespace: 'ns' } }],
  ['another selector of labels', { list: { labelSelector: TEAM } }],
  ['another selector of fields', { list: { fieldSelector: 'metadata.name=a' } }],
  ['metadata only', { list: { metadataOnly: true } }],
  ['another form', { transform: (object) => ({ ...object, data: {} }) }],
])('%s is a watch of its own, and one for all who ask for it', async (_what, options) => {
  seed('a', 'red');
  await started();
  await started(options);
  await started({ ...options });
  await watched(2);
  expect([lists(), watches()]).toEqual([2, 2]);
});

test('who comes later knows nothing before its start, and then is told of what is there; the others are not told again', async () => {
  seed('a', 'red');
  const first = ask();
  const told = changesOf(first);
  await first.start(signal);
  const later = ask({ indexes: { team: (object) => [teamOf(object)] } });
  const heard = changesOf(later);
  expect([later.synced, later.get('ns/a'), later.byIndex('team', 'red')]).toEqual([false, undefined, []]);
  const starting = later.start(signal);
  expect(heard).toEqual(['a: - > red']);
  await starting;
  expect(later.synced).toBe(true);
  expect(later.byIndex('team', 'red')).toEqual([first.get('ns/a')]);
  expect(told).toEqual(['a: - > red']);
  await watched();
  move('a', 'blue');
  await eventually('the change', () => heard.length === 2);
  expect(heard).toEqual(['a: - > red', 'a: red > blue']);
  expect(told).toEqual(heard);
  expect(later.hasIndexed('team', 'red')).toBe(false);
  expect(later.hasIndexed('team', 'blue')).toBe(true);
});

test('one that begins while it is told of an object learns of each once', async () => {
  seed('a', 'red');
  seed('b', 'red');
  const outer = ask();
  const inner = ask();
  const heard = changesOf(inner);
  let begun: Promise<void> | undefined;
  outer.onChange(() => {
    begun ??= inner.start(signal);
  });
  await outer.start(signal);
  await begun;
  expect(heard).toEqual(['a: - > red', 'b: - > red']);
});

test('who sees some of them is told of what comes into sight and what leaves it, as by a selector', async () => {
  seed('a', 'red');
  seed('b', 'blue');
  const red = ask({
    only: (object) => teamOf(object) === 'red',
    indexes: { all: () => ['all'], team: (object) => [teamOf(object)] },
  });
  const heard = changesOf(red);
  await red.start(signal);
  expect([names(red), red.size, red.get('ns/b')]).toEqual([['a'], 1, undefined]);
  expect(red.byIndex('all', 'all').map(({ metadata }) => metadata.name)).toEqual(['a']);
  expect([red.hasIndexed('team', 'red'), red.hasIndexed('team', 'blue')]).toEqual([true, false]);
  await watched();
  move('b', 'red');
  move('a', 'blue');
  move('a', 'green');
  server.storage.remove('configmaps', 'ns/b');
  await eventually('nothing is red', () => red.size === 0);
  expect(heard).toEqual(['a: - > red', 'b: - > red', 'a: red > -', 'b: red > -']);
});

test('that it is gone is told of one that was in sight, though its last state is not', async () => {
  seed('a', 'red');
  const red = ask({ only: (object) => teamOf(object) === 'red' });
  const heard = changesOf(red);
  await red.start(signal);
  await eventually('the watcher', () => server.watches.watchers.length === 1);
  const current = server.storage.get('configmaps', 'ns/a');
  const last = { ...current?.metadata, labels: { [TEAM]: 'blue' }, resourceVersion: '1000' };
  server.watches.watchers[0]?.send('DELETED', { ...current, metadata: last });
  await eventually('it is gone', () => heard.length === 2);
  expect(heard).toEqual(['a: - > red', 'a: blue > -']);
});

test('indexes of the same name are each asker’s own; one that nobody has made is a mistake', async () => {
  seed('a', 'red');
  const one = await started({ indexes: { by: (object) => [teamOf(object)] } });
  const other = await started({ indexes: { by: ({ metadata }) => [metadata.name] } });
  expect([one.hasIndexed('by', 'red'), one.hasIndexed('by', 'a')]).toEqual([true, false]);
  expect([other.hasIndexed('by', 'red'), other.hasIndexed('by', 'a')]).toEqual([false, true]);
  expect(() => one.byIndex('0', 'red')).toThrow('no such index');
});

test('the watch lasts until the last one has stopped, and begins again for the next one', async () => {
  seed('a', 'red');
  const [one, other] = [await started(), await started()];
  await watched();
  const heard = changesOf(one);
  await one.stop();
  seed('b', 'red');
  await eventually('the other sees it', () => other.size === 2);
  expect(heard).toEqual([]);
  await other.stop();
  await watched(0);
  expect(names(other)).toEqual(['a', 'b']);
  const next = await started();
  await watched();
  expect([lists(), names(next)]).toEqual([2, ['a', 'b']]);
});

test('where a kind is not served each waits for itself, and who comes later is told of the refusal', async () => {
  const serve = server.fault({
    match: ({ path }) => path.endsWith('configmaps'),
    times: Infinity,
    status: 404,
  });
  const [one, other] = [ask(), ask()];
  const abort = new AbortController();
  const starting = one.start(abort.signal);
  await eventually('it is refused', () => one.contact.status === 404);
  let told = 0;
  other.onContact(() => told++);
  const waiting = other.start(signal);
  expect(told).toBe(1);
  abort.abort(new Error('no patience'));
  await expect(starting).rejects.toMatchObject({ code: 'Aborted' });
  expect([one.synced, other.synced]).toEqual([false, false]);
  serve();
  await waiting;
  expect([one.synced, other.synced]).toEqual([true, true]);
});

test('stopped before it has begun, or before there was an answer, it leaves nothing behind', async () => {
  const [never, early] = [ask(), ask()];
  await never.stop();
  server.fault({ stall: true });
  const starting = early.start(signal);
  await eventually('it has asked', () => lists() === 1);
  await Promise.all([expect(starting).rejects.toMatchObject({ code: 'Aborted' }), early.stop()]);
  const gone = new AbortController();
  gone.abort();
  await expect(ask().start(gone.signal)).rejects.toBeDefined();
  await started();
  await watched();
});

test('a live read that contradicts it makes it list again, for all', async () => {
  const [one, other] = [await started(), await started()];
  await watched();
  one.relist('a live read says otherwise');
  await eventually('a second list', () => lists() === 2);
  seed('a', 'red');
  await eventually('both see it', () => one.size === 1 && other.size === 1);
});
