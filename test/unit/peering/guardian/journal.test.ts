import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import type { Secret } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { type Entry, entryOf } from '../../../../src/peering/guardian/entry.ts';
import { JournalStore } from '../../../../src/peering/guardian/journal-store.ts';
import { homeCondition } from '../../../../src/peering/guardian/report.ts';
import { readShard, shardOf, shardSecret } from '../../../../src/peering/guardian/journal.ts';
import { AT, podOf } from './support.ts';

const HEAD = { namespace: 'rome-shop', namespaceUid: 'n', peer: 'rome', since: AT, shards: 3, shard: 1 };
const entries = [entryOf(podOf({}), undefined, true)].filter((it): it is Entry => it !== undefined);

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
  const store = new JournalStore({ client, log: silentLogger, peer: 'rome', namespace, marks: () => ({}) });
  const write = async (): Promise<void> => store.write(() => true, new AbortController().signal);
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
