import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { Informer, type InformerOptions } from '../../../src/kube/informer.ts';
import { keyOf } from '../../../src/kube/store.ts';
import { createLogger, silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import type { AnyObject } from '../../support/fake-api/storage.ts';

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let informers: Informer<ConfigMap>[] = [];

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
});

afterEach(async () => {
  await Promise.all(informers.map((informer) => informer.stop()));
  informers = [];
  await client.close();
  await server.stop();
});

const lists = (): number => server.count(/^GET (?!.*watch=)/);

/** Full jitter with this source waits next to nothing, so that tests need no clock of their own. */
const impatient = (): number => 0.001;

function informerOf(options: Partial<InformerOptions<ConfigMap>> = {}): Informer<ConfigMap> {
  const informer = new Informer<ConfigMap>({
    client,
    type: configMaps,
    list: { namespace: 'ns' },
    clock,
    log: silentLogger,
    random: impatient,
    ...options,
  });
  informers.push(informer);
  return informer;
}

async function started(options: Partial<InformerOptions<ConfigMap>> = {}): Promise<Informer<ConfigMap>> {
  const informer = informerOf(options);
  await clock.during('the informer starts', informer.start(new AbortController().signal));
  return informer;
}

const seed = (name: string, data: Record<string, string> = {}): AnyObject =>
  server.seed(configMaps, { metadata: { name, namespace: 'ns' }, data });

function change(name: string, data: Record<string, string>): void {
  const current = server.storage.get('configmaps', `ns/${name}`);
  if (current !== undefined) server.storage.update('configmaps', { ...current, data });
}

const remove = (name: string): AnyObject => server.storage.remove('configmaps', `ns/${name}`);

/** The names in the store, with their versions: the whole view. */
const view = (objects: Iterable<{ metadata: { name: string; resourceVersion: string } }>): string[] =>
  [...objects].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort();

const truth = (): string[] => view(server.storage.list('configmaps'));

const agrees = (informer: Informer<ConfigMap>): Promise<void> =>
  clock.until('the store holds what the server holds', () => view(informer.list()).join() === truth().join());

test('it holds what is there and follows what happens', async () => {
  seed('a');
  seed('b');
  const informer = await started();
  const changes: string[] = [];
  informer.onChange((key, current, previous) =>
    changes.push(`${key} ${previous?.data?.['v'] ?? '-'} > ${current?.data?.['v'] ?? '-'}`),
  );
  expect(informer.size).toBe(2);
  seed('c', { v: '1' });
  change('c', { v: '2' });
  remove('c');
  await clock.until('three changes', () => changes.length === 3);
  expect(changes).toEqual(['ns/c - > 1', 'ns/c 1 > 2', 'ns/c 2 > -']);
  expect(informer.get('ns/a')).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
});

test('objects of the store are frozen at their top, in one shape, and without managedFields', async () => {
  seed('listed');
  const informer = await started();
  seed('watched');
  await agrees(informer);
  const [listed, watched] = [informer.get('ns/listed'), informer.get('ns/watched')];
  expect(Object.keys(listed ?? {}).sort()).toEqual(Object.keys(watched ?? {}).sort());
  expect(listed?.metadata).not.toHaveProperty('managedFields');
  expect(watched?.metadata).not.toHaveProperty('managedFields');
  expect(() => Object.assign(listed ?? {}, { data: {} })).toThrow(TypeError);
});

test('10,000 events with the watch closed after each 50: none lost, no second list', async () => {
  for (let index = 0; index < 100; index++) seed(`cm-${index}`, { v: '0' });
  server.watches.eventsPerWatch = 50;
  const informer = await started();
  let seen = 0;
  let last = 0;
  informer.onChange((_key, current) => {
    seen++;
    // Each event carries its own number: a gap or a step back would show.
    const value = Number(current?.data?.['v']);
    expect(value).toBe(last + 1);
    last = value;
  });
  for (let event = 1; event <= 10_000; event++) {
    change(`cm-${event % 100}`, { v: String(event) });
    // A burst of 500 at a time, far ahead of the watcher.
    if (event % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await clock.until('all events', () => seen === 10_000, 30_000);
  await agrees(informer);
  expect(lists()).toBe(1);
  expect(server.count(/watch=true/)).toBeGreaterThanOrEqual(200);
});

test('a watch that ends in mid-object is resumed before it', async () => {
  seed('a', { v: '1' });
  const informer = await started();
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  const [watcher] = server.watches.watchers;
  watcher?.line('{"type":"MODIFIED","object":{"metadata":{"name":"a","resource');
  watcher?.end();
  change('a', { v: '2' });
  await agrees(informer);
  expect(lists()).toBe(1);
});

test('a watch whose connection breaks is resumed without a list', async () => {
  const informer = await started();
  for (let round = 0; round < 5; round++) {
    await clock.until('a watcher', () => server.watches.watchers.length === 1);
    seed(`before-${round}`);
    await agrees(informer);
    server.cut();
    seed(`after-${round}`);
    await agrees(informer);
  }
  expect(lists()).toBe(1);
});

test.each([
  ['in the stream', () => server.storage.compact()],
  ['as the answer', () => void server.fault({ match: ({ query }) => query.has('watch'), status: 410 })],
])('410 %s: a new list, whose differences are told with the last known object', async (_where, expire) => {
  seed('stays');
  seed('goes', { v: 'last' });
  const informer = await started();
  const changes: string[] = [];
  informer.onChange((key, current, previous) =>
    changes.push(`${key} ${previous?.data?.['v'] ?? '-'} > ${current?.data?.['v'] ?? '-'}`),
  );
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  await server.stop();
  remove('goes');
  seed('comes', { v: 'new' });
  expire();
  await server.start();
  await agrees(informer);
  expect(changes).toEqual(['ns/goes last > -', 'ns/comes - > new']);
});

test('an error in the middle of a list changes nothing', async () => {
  for (let index = 0; index < 10; index++) seed(`cm-${index}`);
  const informer = await started({ list: { namespace: 'ns', limit: 3 } });
  const changes: string[] = [];
  informer.onChange((key) => changes.push(key));
  const recover = server.fault({ match: ({ query }) => query.has('continue'), status: 500, times: Infinity });
  informer.relist('test');
  await clock.until('three attempts', () => server.count(/continue=/) >= 3 + 3);
  expect(informer.size).toBe(10);
  expect(informer.contact.failingSince).toBeDefined();
  expect(informer.contact.error).toContain('500');
  recover();
  await clock.until('contact', () => informer.contact.failingSince === undefined);
  expect(changes).toEqual([]);
});

test('start waits for as long as the API server fails, and then succeeds', async () => {
  seed('a');
  server.fault({ status: 503, times: 5 });
  const informer = await started();
  expect(informer.synced).toBe(true);
  expect(informer.size).toBe(1);
  expect(lists()).toBe(6);
});

describe('rights that are being granted', () => {
  const said: string[] = [];
  const log = createLogger({ level: 'info', now: () => 0, write: (line) => void said.push(line) });
  beforeEach(() => {
    said.splice(0);
  });

  test('are waited for: nothing is said, nothing is in trouble, and the list comes soon', async () => {
    seed('a');
    server.fault({ status: 403, times: 4 });
    let troubles = 0;
    const informer = informerOf({ awaitsRights: true, log, random: () => 1 });
    informer.onContact(() => troubles++);
    const before = clock.monotonic();
    await clock.during('the informer starts', informer.start(new AbortController().signal));
    expect(informer.size).toBe(1);
    expect(said).toEqual([]);
    // One change: the first sign of life.
    expect(troubles).toBe(1);
    // At most 200, 400, 800 and 1000 ms; otherwise 7.5 s.
    expect(clock.monotonic() - before).toBeLessThan(2500);
  });

  test('are missed when they do not come', async () => {
    const grant = server.fault({ status: 403, times: Infinity });
    const informer = informerOf({ awaitsRights: true, log, random: () => 1 });
    const starting = informer.start(new AbortController().signal);
    await clock.until('it is said', () => said.length > 0, 30_000);
    expect(informer.contact).toMatchObject({ code: 'Forbidden' });
    expect(said).toEqual([expect.stringContaining('"message":"lost contact"')]);
    grant();
    await clock.during('the rights are there', starting);
  });

  test('are missed at once when they are taken away', async () => {
    const informer = await started({ awaitsRights: true, log });
    server.fault({ status: 403, times: Infinity });
    informer.relist('a test');
    await clock.until('it is said at once', () => said.some((line) => line.includes('lost contact')));
  });
});

test('start ends with its signal', async () => {
  server.fault({ stall: true, times: Infinity });
  const abort = new AbortController();
  const starting = informerOf().start(abort.signal);
  abort.abort(new Error('enough'));
  await expect(starting).rejects.toMatchObject({ code: 'Aborted' });
});

test('a list of an older state than already seen is refused, the store stays', async () => {
  seed('a', { v: '1' });
  const goBack = server.storage.snapshot();
  seed('b');
  const informer = await started();
  const changes: string[] = [];
  informer.onChange((key) => changes.push(key));
  goBack();
  informer.relist('test');
  await clock.until('refusals', () => lists() >= 4);
  expect(view(informer.list())).toHaveLength(2);
  expect(informer.contact.error).toContain('older state');
  // The lagging server catches up.
  for (let index = 0; index < 5; index++) change('a', { v: `x${index}` });
  await clock.until('contact', () => informer.contact.failingSince === undefined);
  expect(changes).toContain('ns/a');
  await agrees(informer);
});

test('an etcd restored from a backup is believed after a while', async () => {
  seed('a', { v: '1' });
  const goBack = server.storage.snapshot();
  for (let index = 0; index < 50; index++) seed(`lost-${index}`);
  const informer = await started();
  goBack();
  const began = clock.monotonic();
  informer.relist('test');
  await clock.until('the old state', () => informer.size === 1, 3_600_000);
  expect(clock.monotonic() - began).toBeGreaterThan(30_000);
  change('a', { v: '2' });
  await agrees(informer);
});

test('replayed and duplicate events change nothing and are told to nobody', async () => {
  const informer = await started();
  const first = seed('a', { v: '1' });
  change('a', { v: '2' });
  await agrees(informer);
  const changes: string[] = [];
  informer.onChange((key) => changes.push(key));
  const [watcher] = server.watches.watchers;
  watcher?.send('ADDED', first);
  watcher?.send('MODIFIED', server.storage.get('configmaps', 'ns/a') ?? {});
  seed('b');
  await clock.until('b', () => informer.get('ns/b') !== undefined);
  expect(changes).toEqual(['ns/b']);
  expect(informer.get('ns/a')?.data).toEqual({ v: '2' });
  expect(lists()).toBe(1);
});

test('an old event about a deleted object does not bring it back, but makes it look again', async () => {
  const informer = await started();
  const dead = seed('dead');
  await agrees(informer);
  remove('dead');
  await agrees(informer);
  const changes: string[] = [];
  informer.onChange((key) => changes.push(key));
  server.watches.watchers[0]?.send('ADDED', dead);
  await clock.until('a second list', () => lists() === 2);
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  expect(changes).toEqual([]);
  expect(informer.get('ns/dead')).toBeUndefined();
});

test('events out of order converge by a new list', async () => {
  const informer = await started();
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  const [watcher] = server.watches.watchers;
  // As if the server had swapped two events: the later one comes first.
  const send = watcher?.send.bind(watcher);
  const held: [string, object][] = [];
  if (watcher !== undefined) watcher.send = (type, object) => void held.push([type, object]);
  seed('first');
  seed('second');
  for (const [type, object] of held.toReversed()) send?.(type, object);
  await agrees(informer);
  expect(lists()).toBe(2);
});

test('deleted and created again while nobody watched: one change with two UIDs', async () => {
  seed('a', { v: 'old' });
  const informer = await started();
  const changes: [string | undefined, string | undefined][] = [];
  informer.onChange((_key, current, previous) => changes.push([previous?.data?.['v'], current?.data?.['v']]));
  const old = informer.get('ns/a')?.metadata.uid;
  await server.stop();
  remove('a');
  const { uid } = seed('a', { v: 'new' }).metadata;
  server.storage.compact();
  await server.start();
  await clock.until('the new one', () => informer.get('ns/a')?.metadata.uid === uid);
  expect(uid).not.toBe(old);
  expect(changes).toEqual([['old', 'new']]);
});

test.each([
  ['not JSON', 'nonsense\n'],
  ['not an event', '{"type":"SURPRISE","object":{}}\n'],
  ['an ERROR event', '{"type":"ERROR","object":{"kind":"Status","code":500,"message":"boom"}}\n'],
])('a line that is %s is a failure that is heard of, and no news is lost', async (_what, line) => {
  const informer = await started();
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  let failures = 0;
  informer.onContact(() => (failures += informer.contact.failingSince === undefined ? 0 : 1));
  server.watches.watchers[0]?.line(line);
  await clock.until('the failure', () => failures === 1);
  seed('a');
  await agrees(informer);
  expect(lists()).toBe(1);
});

test('a server that ends each watch at once is not stormed', async () => {
  await started({ random: () => 0.5 });
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  const began = clock.monotonic();
  for (let round = 0; round < 2; round++) {
    await clock.until('a watcher', () => server.watches.watchers.length === 1);
    server.watches.watchers[0]?.end();
    await clock.until('gone', () => server.watches.watchers.length === 0);
  }
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  // 250 ms and 500 ms at this source of chance.
  expect(clock.monotonic() - began).toBeGreaterThan(700);
});

test('relist keeps the store meanwhile, and one asked for during a list brings another', async () => {
  seed('a');
  const informer = await started();
  const hold = server.fault({ match: ({ query }) => !query.has('watch'), delayMs: 50, times: Infinity });
  informer.relist('first');
  await clock.until('the list is asked for', () => lists() === 2);
  informer.relist('second');
  expect(informer.size).toBe(1);
  await clock.until('a third list', () => lists() === 3);
  hold();
  await agrees(informer);
});

test('indexes follow the objects', async () => {
  const informer = await started({
    indexes: { v: ({ data }) => (data?.['v'] === undefined ? [] : [data['v']]) },
  });
  const names = (value: string): string[] => informer.byIndex('v', value).map(keyOf).sort();
  seed('a', { v: 'red' });
  seed('b', { v: 'red' });
  change('b', { v: 'blue' });
  await agrees(informer);
  expect([names('red'), names('blue')]).toEqual([['ns/a'], ['ns/b']]);
  remove('a');
  await agrees(informer);
  expect(names('red')).toEqual([]);
  expect([informer.hasIndexed('v', 'red'), informer.hasIndexed('v', 'blue')]).toEqual([false, true]);
  expect(() => informer.byIndex('w', '')).toThrow('no such index');
});

test('transform decides what is kept', async () => {
  const informer = await started({
    transform: (object) => {
      if (object.metadata.name === 'unwanted') return undefined;
      const { data: _data, ...rest } = object;
      return rest;
    },
  });
  seed('unwanted', { v: '1' });
  seed('wanted', { v: '1' });
  await clock.until('the wanted one', () => informer.size === 1);
  expect(informer.get('ns/wanted')).not.toHaveProperty('data');
});

test('a listener that throws costs the others nothing', async () => {
  const informer = await started();
  let heard = 0;
  informer.onChange(() => {
    throw new Error('a bug');
  });
  const leave = informer.onChange(() => heard++);
  seed('a');
  await clock.until('the other listener', () => heard === 1);
  leave();
  seed('b');
  await agrees(informer);
  expect(heard).toBe(1);
});

test('stop ends the watch at the server, and nothing follows', async () => {
  const informer = await started();
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  await informer.stop();
  await clock.until('no watcher', () => server.watches.watchers.length === 0);
  expect(client.stats.streamsOpen).toBe(0);
});
