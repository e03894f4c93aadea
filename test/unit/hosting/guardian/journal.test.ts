import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import type { Secret } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { type JournalEntry, entryOf } from '../../../../src/hosting/guardian/journal-entry.ts';
import { PodMemory } from '../../../../src/hosting/guardian/pod-memory.ts';
import { JournalStore } from '../../../../src/hosting/guardian/journal-store.ts';
import { homeCondition } from '../../../../src/hosting/guardian/report.ts';
import { readShard, shardOf, shardSecret, shardsFor } from '../../../../src/hosting/guardian/journal.ts';
import { Mutex } from '../../../../src/hosting/guardian/mutex.ts';
import { PeerWrites } from '../../../../src/hosting/peer-writes.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { AT, podOf } from './support.ts';

const RATE = { burstMiB: 4, mibPerMinute: 2 } as const;
const HEAD = { namespace: 'rome-shop', namespaceUid: 'n', peer: 'rome', since: AT, shards: 3, shard: 1 };
const entries = [entryOf(podOf({}), undefined, true)].filter((it): it is JournalEntry => it !== undefined);

const stored = (data: Buffer | string): Secret =>
  ({
    metadata: { name: 'tributary-journal-rome-shop-1', labels: {} },
    data: { journal: Buffer.from(data).toString('base64') },
  }) as unknown as Secret;
const packed = (json: unknown): Secret => stored(gzipSync(JSON.stringify(json)));

test('what is written is read again', async () => {
  const secret = (await shardSecret({ ...HEAD, entries })) as Secret;
  expect(await readShard(secret)).toEqual({ ...HEAD, entries });
});

test.each([
  ['a bomb', stored(gzipSync(Buffer.alloc(80 * 1024 * 1024)))],
  ['no gzip', stored('x')],
  ['nothing', stored('')],
  ['no JSON', stored(gzipSync('{'))],
  ['another form', packed({ form: 2 })],
  ['a shard beyond', packed({ form: 1, since: AT, shards: 1, shard: 1, entries: [] })],
  ['no time', packed({ form: 1, since: 'x', shards: 1, shard: 0, entries: [] })],
  ['a pod without a spec', packed({ form: 1, since: AT, shards: 1, shard: 0, entries: [{ name: 'a' }] })],
])('%s is refused', async (_name, secret) => {
  await expect(readShard(secret)).rejects.toMatchObject({ code: 'Invalid' });
});

test('a pod stays in its share', () => {
  expect(shardOf('u', 8)).toBe(shardOf('u', 8));
  expect(new Set(Array.from({ length: 100 }, (_, at) => shardOf(`u${at}`, 8))).size).toBe(8);
});

test('what is too large to be written is said, until it is not any more', async () => {
  const written: unknown[] = [];
  const client = { create: async (_type: unknown, it: unknown) => written.push(it) } as unknown as KubeClient;
  const namespace = { metadata: { name: 'rome-shop', uid: 'n' } } as unknown as Secret;
  const store = new JournalStore({
    client,
    log: silentLogger,
    peer: 'rome',
    namespace,
    marks: () => ({}),
    memory: new PodMemory(),
    mutex: new Mutex(),
    writes: new PeerWrites({ clock: new FakeClock(), ...RATE }),
  });
  const write = async (): Promise<number> => store.write(() => true, new AbortController().signal);
  await store.begin(AT, entries);
  for (const entry of entries) {
    store.put({ ...entry, annotations: { large: randomBytes(900 * 1024).toString('base64') } });
  }
  await write();
  expect(written).toEqual([]);
  const summary = { pods: 1, recreated: 0, since: AT, isGone: false, gap: store.gap ?? '' };
  expect(homeCondition([summary]).message).toMatch(/tributary-journal-rome-shop-0 .* is not written down/);
  for (const entry of entries) store.put(entry);
  await write();
  expect(written).toHaveLength(1);
  expect(store.gap).toBeUndefined();
});

const large = (count: number, bytes: number): JournalEntry[] =>
  Array.from({ length: count }, (_, at) => ({
    ...(entries[0] as JournalEntry),
    name: `pod-${at}`,
    homeUid: `home-${at}`,
    annotations: { large: 'x'.repeat(bytes) },
  }));

test('entries that pack well are spread over Secrets that can be read again', async () => {
  const all = large(350, 200 * 1024);
  const shards = await shardsFor(all);
  const read: string[] = [];
  for (let shard = 0; shard < shards; shard++) {
    const share = all.filter(({ homeUid }) => shardOf(homeUid, shards) === shard);
    const secret = (await shardSecret({ ...HEAD, shards, shard, entries: share })) as Secret;
    read.push(...(await readShard(secret)).entries.map(({ name }) => name));
  }
  expect(read).toHaveLength(350);
});

test('few pods take one Secret; many take as many as they need packed', async () => {
  expect(await shardsFor([])).toBe(1);
  expect(await shardsFor(large(20, 1000))).toBe(1);
  const noise = large(20, 0).map((it) => ({
    ...it,
    annotations: { noise: randomBytes(60 * 1024).toString('base64') },
  }));
  expect(await shardsFor(noise)).toBeGreaterThan(4);
});

test.each([
  ['that would be longer than what is read', large(340, 200 * 1024)],
  [
    'with a pod that would be refused',
    large(1, 0).map((it) => ({
      ...it,
      annotations: Object.fromEntries(Array.from({ length: 2001 }, (_, at) => [`a${at}`, ''])),
    })),
  ],
  ['with too many pods', large(20_001, 0)],
])('a share is not written %s', async (_what, share) => {
  await expect(shardSecret({ ...HEAD, entries: share })).rejects.toThrow(
    /tributary-journal-rome-shop-1 .* is not written down any more/,
  );
});

test('what falls out while its share is written is not in it the next time', async () => {
  const written: string[][] = [];
  let store: JournalStore | undefined;
  const write = async (_type: unknown, it: Secret): Promise<Secret> => {
    written.push((await readShard(it)).entries.map(({ name }) => name));
    store?.drop('pod-0');
    return { ...it, metadata: { ...it.metadata, uid: 's', resourceVersion: '1' } };
  };
  const client = { create: write, replace: write } as unknown as KubeClient;
  const namespace = { metadata: { name: 'rome-shop', uid: 'n' } } as unknown as Secret;
  const writes = new PeerWrites({ clock: new FakeClock(), ...RATE });
  const common = { log: silentLogger, peer: 'rome', memory: new PodMemory(), mutex: new Mutex(), writes };
  store = new JournalStore({ ...common, client, namespace, marks: () => ({}) });
  await store.begin(AT, []);
  for (const entry of large(2, 0)) store.put(entry);
  const { signal } = new AbortController();
  for (let time = 0; time < 3; time++) await store.write(() => true, signal);
  expect(written).toEqual([['pod-0', 'pod-1'], ['pod-1']]);
});

test('what changes without end is stored whole as often as a budget of bytes allows, and as it is in the end', async () => {
  const clock = new FakeClock();
  const written: string[] = [];
  let bytes = 0;
  const client = {
    create: async (_type: unknown, it: Secret) => store(it),
    replace: async (_type: unknown, it: Secret) => store(it),
  } as unknown as KubeClient;
  const store = async (it: Secret): Promise<Secret> => {
    bytes += JSON.stringify(it).length;
    written.push((await readShard(it)).entries.find(({ name }) => name === 'small')?.annotations['at'] ?? '');
    return { ...it, metadata: { ...it.metadata, uid: 's', resourceVersion: '1' } };
  };
  const namespace = { metadata: { name: 'rome-shop', uid: 'n' } } as unknown as Secret;
  const writes = new PeerWrites({ clock, ...RATE });
  const common = { log: silentLogger, peer: 'rome', memory: new PodMemory(), mutex: new Mutex(), writes };
  const journal = new JournalStore({ ...common, client, namespace, marks: () => ({}) });
  const noise = randomBytes(250 * 1024).toString('base64');
  await journal.begin(AT, []);
  const [entry] = entries;
  if (entry === undefined) throw new Error('no entry');
  journal.put({ ...entry, name: 'large', annotations: { noise } });
  const { signal } = new AbortController();
  let waitMs = Infinity;
  for (let at = 1; at <= 30; at++) {
    journal.put({ ...entry, name: 'small', annotations: { at: `${at}` } });
    waitMs = await journal.write(() => true, signal);
    await clock.advance(1_000);
  }
  expect(waitMs).toBeLessThan(60_000);
  expect(journal.isBegun).toBe(true);
  const depot = { metadata: { name: 'rome-depot', uid: 'd' } } as unknown as Secret;
  const other = new JournalStore({ ...common, client, namespace: depot, marks: () => ({}) });
  await other.begin(AT, []);
  expect(await other.write(() => true, signal)).toBeLessThan(60_000);
  // Nothing is done for its pods.
  expect(other.isBegun).toBe(false);
  expect(bytes).toBeLessThan((RATE.burstMiB + 2 * RATE.mibPerMinute) * 1024 * 1024);
  await clock.advance(waitMs);
  expect(await journal.write(() => true, signal)).toBe(Infinity);
  expect(written.at(-1)).toBe('30');
});
