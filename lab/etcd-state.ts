/**
 * Saves and restores everything in a cluster's etcd: so a used control plane is as new within a second, while
 * starting another one takes ten. API server and controllers see the writes by their watches. It uses etcd's JSON
 * gateway (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
 */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Cluster } from './cluster.ts';

/** Key to value, both in base64. */
export type EtcdState = ReadonlyMap<string, string>;

/** Leases and the like: a running program renews them, and an old one would say that the program does not run. */
const OWN_LIFE = ['/registry/leases/kube-', '/registry/masterleases/'];
/** Leases of nodes that a user of the cluster made stay behind when their nodes go; they are deleted, never put back. */
const NODE_LEASES = ['/registry/leases/kube-node-lease/'];
/** Written at any time, by anybody; nothing depends on them. */
const NOTES = ['/registry/events/', '/registry/events.k8s.io/'];

/** etcd takes 128 operations and 1.5 MiB in one transaction. */
const MOST_OPERATIONS = 100;
const MOST_BYTES = 1_000_000;

/** Controllers react to what is restored. If it still changes after this number of passes, a program works against it. */
const PASSES = 100;
const PASS_MS = 100;

export interface Change {
  readonly key: string;
  /** Absent: to be deleted. */
  readonly value?: string;
}

/** `url`: of the client port, as in `http://127.0.0.1:2379`. */
export async function readState(url: string): Promise<EtcdState> {
  const all = Buffer.from([0]).toString('base64');
  const { kvs = [] } = await askEtcd<{ kvs?: { key: string; value?: string }[] }>(url, 'kv/range', {
    key: all,
    range_end: all,
  });
  return new Map(kvs.map(({ key, value = '' }) => [key, value]));
}

/** Restores what was there, and deletes everything else; resolves when that is stable. */
export async function restoreState(url: string, wanted: EtcdState): Promise<void> {
  let left = -1;
  for (let pass = 0; pass < PASSES; pass += 1) {
    const changes = changesTo(await readState(url), wanted);
    const counted = changes.filter(({ key }) => !isBelow(key, [...NOTES, ...OWN_LIFE]));
    if (counted.length === 0 && left === 0) return;
    left = counted.length;
    for (const batch of batches(changes)) await askEtcd(url, 'kv/txn', { success: batch.map(operation) });
    await sleep(PASS_MS);
  }
  throw new Error(`${url}: ${left} keys do not stay as they were`);
}

/**
 * The writes that turn one state into another. Only keys of Kubernetes count. What is renewed all the time stays as it is,
 * but leases of nodes that should not be there go.
 */
export function changesTo(current: EtcdState, wanted: EtcdState): Change[] {
  const deleted = [...current.keys()].filter((key) => !wanted.has(key)).map((key) => ({ key }));
  const put = [...wanted].filter(([key, value]) => current.get(key) !== value);
  return [
    ...deleted.filter(({ key }) => !isBelow(key, OWN_LIFE) || isBelow(key, NODE_LEASES)),
    ...put.map(([key, value]) => ({ key, value })).filter(({ key }) => !isBelow(key, OWN_LIFE)),
  ].filter(({ key }) => isBelow(key, ['/registry/']));
}

const isBelow = (key: string, prefixes: readonly string[]): boolean => {
  const text = Buffer.from(key, 'base64').toString('utf8');
  return prefixes.some((prefix) => text.startsWith(prefix));
};

/** In the order of the changes; each is small enough for one transaction. */
export function batches(changes: readonly Change[]): Change[][] {
  const all: Change[][] = [];
  let bytes = 0;
  for (const change of changes) {
    const last = all.at(-1);
    const size = change.key.length + (change.value?.length ?? 0);
    if (last === undefined || last.length === MOST_OPERATIONS || bytes + size > MOST_BYTES) {
      all.push([change]);
      bytes = size;
    } else {
      last.push(change);
      bytes += size;
    }
  }
  return all;
}

/** Of a transaction. */
export const operation = ({ key, value }: Change): object =>
  value === undefined ? { request_delete_range: { key } } : { request_put: { key, value } };

/** Of its client port, as the caller reaches it. */
export function etcdOf(cluster: Cluster): string {
  const flag = '--listen-client-urls=';
  const found = cluster.daemon('etcd').spec.command.findLast((word) => word.startsWith(flag));
  if (found === undefined) throw new Error(`etcd of ${cluster.name} has no ${flag}`);
  return found.slice(flag.length).replace('0.0.0.0', cluster.nodes[0]?.address ?? '127.0.0.1');
}

/** One call of the gateway; `method` as in `kv/range`. Fails with the words of etcd. */
export async function askEtcd<T>(url: string, method: string, body: object): Promise<T> {
  const response = await fetch(`${url}/v3/${method}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd at ${url}: ${method}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
