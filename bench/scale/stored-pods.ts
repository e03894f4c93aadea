/** Pods of a cluster that keeps JSON, read and written in its etcd: thousands in a second, and nobody else is asked. */
import { askEtcd, batches, type Change, operation } from '../../lab/etcd-state.ts';
import type { Pod } from '../../src/api/wire.ts';
import { eachAtOnce } from '../../src/lib/each-at-once.ts';

/** Transactions under way. */
const AT_ONCE = 4;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export const keyOf = (namespace: string, name: string): string => `/registry/pods/${namespace}/${name}`;

/** All of a namespace. */
export async function readPods(url: string, namespace: string): Promise<Pod[]> {
  const { kvs = [] } = await askEtcd<{ kvs?: { value: string }[] }>(url, 'kv/range', {
    key: base64(`/registry/pods/${namespace}/`),
    range_end: base64(`/registry/pods/${namespace}0`),
  });
  return kvs.map(({ value }) => JSON.parse(Buffer.from(value, 'base64').toString('utf8')) as Pod);
}

/** By key; values as text. */
export async function writeAll(url: string, values: readonly (readonly [string, string])[]): Promise<void> {
  const changes = values.map(([key, value]): Change => ({ key: base64(key), value: base64(value) }));
  await eachAtOnce(batches(changes), AT_ONCE, async (batch) =>
    askEtcd(url, 'kv/txn', { success: batch.map(operation) }),
  );
}
