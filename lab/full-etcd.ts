/**
 * An etcd that is full: it has a quota that what it holds nearly reaches, and junk takes the rest. It answers reads and deletions,
 * and refuses every other write until somebody makes room and disarms its alarm
 * (https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota).
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Cluster } from './cluster.ts';
import { askEtcd, etcdOf } from './etcd-state.ts';

const READY_TIMEOUT_MS = 60_000;
/** By then a commit has been made, also on a slow machine. What fits into free pages makes no file longer. */
const COMMIT_MS = 500;
const POLL_MS = 10;
const ROOM_BYTES = 4_194_304;
const JUNK_BYTES = 524_288;
/** Not below `/registry/`: no API server sees it. */
const JUNK = '/junk/';
const AFTER_JUNK = '/junk0';
const IS_FULL = /database space exceeded/;

interface Status {
  readonly dbSize: string;
  readonly header: { readonly revision: string };
}

export interface FullEtcd {
  /** What an administrator does: removes the junk, compacts, defragments, disarms. */
  makeRoom(): Promise<void>;
  /** Starts etcd again with the quota that it had. */
  end(): Promise<void>;
}

/** Resolves when etcd refuses writes. Until then it is away for a moment, since it starts again with another quota. */
export async function fillEtcd(cluster: Cluster): Promise<FullEtcd> {
  const [etcd, url] = [cluster.daemon('etcd'), etcdOf(cluster)];
  const { dbSize } = await statusOf(url);
  const startWith = async (more: readonly string[]): Promise<void> => {
    await etcd.restart(more);
    const answers = async (): Promise<boolean> =>
      statusOf(url).then(
        () => true,
        () => false,
      );
    await etcd.waitFor('status', answers, { timeoutMs: READY_TIMEOUT_MS });
  };
  const quota = Number(dbSize) + ROOM_BYTES;
  await startWith([`--quota-backend-bytes=${quota}`]);
  try {
    await fill(url, quota);
  } catch (error) {
    await startWith([]);
    throw error;
  }
  return { makeRoom: async () => makeRoom(url), end: async () => startWith([]) };
}

async function fill(url: string, quota: number): Promise<void> {
  const most = (4 * ROOM_BYTES) / JUNK_BYTES;
  for (let n = 0; n < most; n += 1) {
    const body = { key: base64(`${JUNK}${n}`), value: randomBytes(JUNK_BYTES).toString('base64') };
    try {
      await askEtcd(url, 'kv/put', body);
    } catch (error) {
      if (IS_FULL.test(String(error))) return;
      throw error;
    }
    if ((n + 1) * JUNK_BYTES >= ROOM_BYTES) await committed(url, quota);
  }
  throw new Error(`etcd at ${url} took ${most * JUNK_BYTES} bytes, and is not full: its quota was ignored`);
}

/** etcd compares its quota with what it has committed, which it does every 100 ms; a fast machine writes all junk before that. */
async function committed(url: string, quota: number): Promise<void> {
  const end = performance.now() + COMMIT_MS;
  while (Number((await statusOf(url)).dbSize) < quota && performance.now() < end) await sleep(POLL_MS);
}

async function makeRoom(url: string): Promise<void> {
  const junk = { key: base64(JUNK), range_end: base64(AFTER_JUNK) };
  const { header } = await askEtcd<Pick<Status, 'header'>>(url, 'kv/deleterange', junk);
  await askEtcd(url, 'kv/compaction', { revision: header.revision, physical: true });
  await askEtcd(url, 'maintenance/defragment', {});
  const { alarms = [] } = await askEtcd<{ alarms?: object[] }>(url, 'maintenance/alarm', { action: 'GET' });
  // Each by the ID of its member, as etcdctl does it.
  for (const alarm of alarms) await askEtcd(url, 'maintenance/alarm', { action: 'DEACTIVATE', ...alarm });
}

const statusOf = async (url: string): Promise<Status> => askEtcd(url, 'maintenance/status', {});
const base64 = (text: string): string => Buffer.from(text).toString('base64');
