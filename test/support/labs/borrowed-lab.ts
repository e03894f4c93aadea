/**
 * Control planes that test files use one after another. A file gives its control plane back at the end, and the next
 * file finds it as it was when new. Files that run in parallel have different labs. Jest's globalTeardown removes all
 * of them.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../../../lab/cluster.ts';
import { readState, restoreState, type EtcdState } from '../../../lab/etcd-state.ts';
import type { Lab } from '../../../lab/lab.ts';
import { type FileLock, tryLockFile } from '../../../lab/lock.ts';
import { runRoot } from '../../../lab/paths.ts';
import { eventually } from '../eventually.ts';

/** `one` has the cluster `both`, `pair` has `home` and `foreign`; pretended nodes, one each. */
export type Shape = 'one' | 'pair';

const CLUSTERS: Readonly<Record<Shape, readonly string[]>> = { one: ['both'], pair: ['home', 'foreign'] };
/** More than the number of files that run in parallel. */
const SLOTS = 8;
const SETTLE_MS = 20_000;

export interface BorrowedLab {
  readonly lab: Lab;
  giveBack(): Promise<void>;
}

export async function borrowLab(shape: Shape): Promise<BorrowedLab> {
  for (const name of names(shape)) {
    const lock = await hold(name);
    if (lock === undefined) continue;
    try {
      const lab = await asNew(name, shape);
      return {
        lab,
        giveBack: async () => {
          for (const cluster of lab.clusters) cluster.api.close();
          await lock.release();
        },
      };
    } catch (error) {
      await lock.release();
      throw error;
    }
  }
  throw new Error(`all ${SLOTS} labs of shape ${shape} are in use`);
}

/** Removes all labs that nobody uses. */
export async function downBorrowedLabs(): Promise<void> {
  const { Lab } = await modules();
  for (const name of [...names('one'), ...names('pair')]) {
    const lock = await hold(name);
    if (lock === undefined) continue;
    await Lab.down(name);
    await lock.release();
  }
}

const names = (shape: Shape): string[] => Array.from({ length: SLOTS }, (_, i) => `it-${shape}-${i + 1}`);

async function modules(): Promise<{ Lab: typeof Lab }> {
  // Jest loads CommonJS before any module has run, so what the lab's PKI needs must be there before it is imported.
  await import('reflect-metadata');
  return import('../../../lab/lab.ts');
}

async function asNew(name: string, shape: Shape): Promise<Lab> {
  const { Lab } = await modules();
  const clusters = CLUSTERS[shape].map((cluster) => ({ name: cluster }));
  const options = { name, workload: 'kwok', clusters } as const;
  const used = await Lab.open(name).catch(() => undefined);
  if (used !== undefined) {
    try {
      await Promise.all(used.clusters.map(async (cluster) => restore(used, cluster)));
      return used;
    } catch (error) {
      console.warn(`${name} is made anew: ${String(error)}`);
    }
  }
  const lab = await Lab.fresh(options);
  // The borrower holds it, and the next borrower may be another process.
  await lab.leave();
  await Promise.all(lab.clusters.map(async (cluster) => keep(lab, cluster)));
  return lab;
}

/** What `restore` needs. */
interface Kept {
  readonly state: readonly (readonly [string, string])[];
  readonly groups: readonly string[];
}

const fileOf = (lab: Lab, cluster: Cluster): string =>
  join(lab.spec.dataDirectory, `${cluster.name}.new.json`);

async function keep(lab: Lab, cluster: Cluster): Promise<void> {
  const kept: Kept = { state: [...(await readState(etcdOf(cluster)))], groups: await groupsOf(cluster) };
  writeFileSync(fileOf(lab, cluster), JSON.stringify(kept));
}

async function restore(lab: Lab, cluster: Cluster): Promise<void> {
  const kept = JSON.parse(readFileSync(fileOf(lab, cluster), 'utf8')) as Kept;
  const state: EtcdState = new Map(kept.state);
  await restoreState(etcdOf(cluster), state);
  // The API server forgets kinds a moment after their definitions are gone.
  await eventually(
    'the kinds of the file before are gone',
    async () => String(await groupsOf(cluster)) === String(kept.groups),
    SETTLE_MS,
  );
}

async function groupsOf(cluster: Cluster): Promise<string[]> {
  const list = await cluster.api.get<{ groups: { name: string }[] }>('/apis');
  return (list?.groups ?? []).map(({ name }) => name).toSorted();
}

function etcdOf(cluster: Cluster): string {
  const flag = '--listen-client-urls=';
  const found = cluster.daemon('etcd').spec.command.find((word) => word.startsWith(flag));
  if (found === undefined) throw new Error(`etcd of ${cluster.name} has no ${flag}`);
  return found.slice(flag.length);
}

/** Holds a name for this process; undefined when another one holds it. */
async function hold(name: string): Promise<FileLock | undefined> {
  mkdirSync(runRoot(), { recursive: true });
  return tryLockFile(join(runRoot(), `${name}.borrowed`));
}
