/**
 * Control planes that test files use one after another. A file gives its control plane back at the end, and the next
 * file finds it as it was when new. Files that run in parallel have different labs. Jest's globalTeardown removes all
 * of them.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../../../lab/cluster.ts';
import { etcdOf, readState, restoreState, type EtcdState } from '../../../lab/etcd-state.ts';
import { ownerOf } from '../../../lab/known-daemons.ts';
import type { Lab, LabOptions } from '../../../lab/lab.ts';
import type { Node } from '../../../lab/node.ts';
import { type FileLock, tryLockFile } from '../../../lab/lock.ts';
import { runRoot } from '../../../lab/paths.ts';
import { eventually } from '../eventually.ts';

/**
 * `pair` has `home` and `foreign`, with one pretended node each. `linked` has `rome` and `milan` on a network, and the manifests
 * of the role `cluster` in both.
 */
export type Shape = 'pair' | 'linked';

/** Etcd listens on the network, too: it is asked from outside of it. */
const ON_NETWORK = {
  workload: 'kwok',
  flags: { etcd: ['--listen-client-urls=http://0.0.0.0:2379'] },
} as const;

const LABS: Readonly<Record<Shape, Omit<LabOptions, 'name'>>> = {
  pair: { workload: 'kwok', clusters: [{ name: 'home' }, { name: 'foreign' }] },
  linked: {
    clusters: [
      { name: 'rome', ...ON_NETWORK },
      { name: 'milan', ...ON_NETWORK },
    ],
  },
};
const SHAPES = Object.keys(LABS) as Shape[];
/** More than the number of files that run in parallel. */
const SLOTS = 8;
const SETTLE_MS = 20_000;

export interface BorrowedLab {
  readonly lab: Lab;
  readonly giveBack: () => Promise<void>;
}

export interface Wish {
  /** Called once for a new lab; what it makes belongs to the lab as it was when new. */
  readonly furnish?: (lab: Lab) => Promise<void>;
  /** The clusters that are needed, by name; any other may be as the last borrower left it. Default: all. */
  readonly clusters?: readonly string[];
}

export async function borrowLab(shape: Shape, wish: Wish = {}): Promise<BorrowedLab> {
  for (const name of names(shape)) {
    const lock = await hold(name);
    if (lock === undefined) continue;
    try {
      const lab = await asNew(name, shape, wish);
      return {
        lab,
        giveBack: async () => {
          await endPrograms(lab);
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

/** Removes those of these labs that nobody uses. Default: all. */
export async function downBorrowedLabs(wanted: readonly string[] = SHAPES.flatMap(names)): Promise<void> {
  const { Lab } = await modules();
  for (const name of wanted) {
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

async function asNew(name: string, shape: Shape, { furnish, clusters }: Wish): Promise<Lab> {
  const { Lab } = await modules();
  const used = await Lab.open(name).catch(() => undefined);
  if (used !== undefined) {
    try {
      // A file that was killed gave nothing back.
      await endPrograms(used);
      const needed = used.clusters.filter((cluster) => clusters?.includes(cluster.name) ?? true);
      await Promise.all(needed.map(async (cluster) => restore(used, cluster)));
      // A lab that outlives its run may be older than the manifests.
      if (process.env['TRIBUTARY_TEST_LABS'] === 'keep') await furnish?.(used);
      return used;
    } catch (error) {
      console.warn(`${name} is made anew: ${String(error)}`);
    }
  }
  const lab = await Lab.fresh({ ...LABS[shape], name });
  // The borrower holds it, and the next borrower may be another process.
  await lab.leave();
  await furnish?.(lab);
  await Promise.all(lab.clusters.map(async (cluster) => keep(lab, cluster)));
  return lab;
}

/** Kills what files have started on nodes, and removes its logs; what the cluster itself runs stays. */
async function endPrograms(lab: Lab): Promise<void> {
  const nodes = new Set(lab.clusters.flatMap((cluster) => cluster.nodes.map(({ name }) => name)));
  const programs = [...lab.daemons().values()].filter(({ name }) => nodes.has(ownerOf(name)));
  await Promise.all(programs.map(async (program) => program.kill()));
  for (const { spec } of programs) rmSync(spec.logFile, { force: true });
}

/** What `restore` needs. */
interface Kept {
  readonly state: readonly (readonly [string, string])[];
  readonly groups: readonly string[];
  /** Of each node, by name: its nftables rules. */
  readonly rules: Readonly<Record<string, string>>;
}

const fileOf = (lab: Lab, cluster: Cluster): string =>
  join(lab.spec.dataDirectory, `${cluster.name}.new.json`);

async function keep(lab: Lab, cluster: Cluster): Promise<void> {
  const rules = await Promise.all(cluster.nodes.map(async (node) => [node.name, await rulesOf(node)]));
  const kept: Kept = {
    state: [...(await readState(etcdOf(cluster)))],
    groups: await groupsOf(cluster),
    rules: Object.fromEntries(rules),
  };
  writeFileSync(fileOf(lab, cluster), JSON.stringify(kept));
}

async function restore(lab: Lab, cluster: Cluster): Promise<void> {
  const kept = JSON.parse(readFileSync(fileOf(lab, cluster), 'utf8')) as Kept;
  const state: EtcdState = new Map(kept.state);
  // First: what a killed file has walled off cannot be asked.
  await Promise.all(cluster.nodes.map(async (node) => restoreRules(node, kept.rules[node.name] ?? '')));
  await restoreState(etcdOf(cluster), state);
  // The API server forgets kinds a moment after their definitions are gone.
  await eventually(
    'the kinds of the file before are gone',
    async () => String(await groupsOf(cluster)) === String(kept.groups),
    SETTLE_MS,
  );
}

const rulesOf = async (node: Node): Promise<string> => node.exec(['nft', '-s', 'list', 'ruleset']);

async function restoreRules(node: Node, rules: string): Promise<void> {
  if ((await rulesOf(node)) !== rules)
    await node.exec(['nft', '-f', '-'], { stdin: `flush ruleset\n${rules}` });
}

async function groupsOf(cluster: Cluster): Promise<string[]> {
  const list = await cluster.api.get<{ groups: { name: string }[] }>('/apis');
  return (list?.groups ?? []).map(({ name }) => name).toSorted();
}

/** Holds a name for this process; undefined when another one holds it. */
async function hold(name: string): Promise<FileLock | undefined> {
  mkdirSync(runRoot(), { recursive: true });
  return tryLockFile(join(runRoot(), `${name}.borrowed`));
}
