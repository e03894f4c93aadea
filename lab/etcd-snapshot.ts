/**
 * A backup of a cluster's etcd, and its restore: what was written in between is lost, and revisions go back. (`restoreState` of
 * etcd-state.ts brings the same objects back by writes, so its revisions go on.)
 */
import { cpSync, renameSync, rmSync } from 'node:fs';

import type { Cluster } from './cluster.ts';
import type { Daemon } from './daemon.ts';

const READY_TIMEOUT_MS = 120_000;
const DATA_FLAG = '--data-dir=';
const IN_USE = /address already in use/;
/**
 * They hold views of the API server, and are started again, as in a real restore. kwok is not, as kubelets are not; a new one would
 * also miss what happens to pods before it holds the Leases of its nodes.
 */
const DEPENDENTS = ['kube-controller-manager', 'kube-scheduler'];

export interface EtcdSnapshot {
  /** Puts it back, and starts the control plane again; resolves when the API server is ready. May be done more than once. */
  restore(options?: { signal?: AbortSignal; whileDown?: () => Promise<void> }): Promise<void>;
  /** Removes the copy. */
  drop(): void;
}

/** Copies the data while etcd stands still: as a crash would leave them, from which it recovers. */
export function takeSnapshot(cluster: Cluster): EtcdSnapshot {
  const etcd = cluster.daemon('etcd');
  const data = dataOf(etcd);
  const copy = `${data}.snapshot`;
  rmSync(copy, { recursive: true, force: true });
  etcd.stop();
  try {
    cpSync(data, copy, { recursive: true });
  } finally {
    etcd.cont();
  }
  return {
    restore: async (options = {}) => restore(cluster, copy, options),
    drop: () => rmSync(copy, { recursive: true, force: true }),
  };
}

async function restore(
  cluster: Cluster,
  copy: string,
  { signal, whileDown }: { signal?: AbortSignal; whileDown?: () => Promise<void> },
): Promise<void> {
  const [etcd, apiServer] = [cluster.daemon('etcd'), cluster.daemon('kube-apiserver')];
  const dependents = DEPENDENTS.map((name) => cluster.daemon(name));
  cluster.api.close();
  await Promise.all([...dependents, apiServer].map(async (daemon) => daemon.kill()));
  await etcd.kill();
  const data = dataOf(etcd);
  cpSync(copy, `${data}.next`, { recursive: true });
  rmSync(data, { recursive: true, force: true });
  renameSync(`${data}.next`, data);
  await whileDown?.();
  etcd.start();
  apiServer.start();
  const isReady = async (): Promise<boolean> => {
    // While nobody listened, a test beside this one may have tried whether the port is free.
    if (apiServer.id === undefined && IN_USE.test(apiServer.tail())) apiServer.start();
    return cluster.api.isReady();
  };
  await apiServer.waitFor('/readyz', isReady, { timeoutMs: READY_TIMEOUT_MS, signal });
  // After /readyz, as at the first start.
  for (const daemon of dependents) daemon.start();
}

function dataOf(etcd: Daemon): string {
  const flag = etcd.spec.command.findLast((word) => word.startsWith(DATA_FLAG));
  if (flag === undefined) throw new Error(`${etcd.name} has no ${DATA_FLAG}`);
  return flag.slice(DATA_FLAG.length);
}
