/**
 * Several real Kubernetes clusters on this machine.
 *
 *     await using lab = await Lab.up({ clusters: [{ name: 'home' }, { name: 'foreign' }] });
 *     lab.cluster('home').kubeconfig
 *
 * A lab outlives the program that made it: `Lab.open` finds it again, and `Lab.down` removes it, also after a crash.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { binaries } from './binaries.ts';
import { locked } from './cache.ts';
import { cleanUp, removeDirectory } from './cleanup.ts';
import { Cluster } from './cluster.ts';
import { startContainersCluster } from './containers.ts';
import type { Daemon } from './daemon.ts';
import { holdLab, type Hold, type HoldOptions } from './holder.ts';
import { enterHost } from './host.ts';
import { localPathImage, systemImages } from './images.ts';
import { Journal } from './journal.ts';
import { startKwokCluster } from './kwok.ts';
import { knownDaemons, ownerOf } from './known-daemons.ts';
import { checkLabName, chooseSubnet, subnetsInRoutes, underlayNetns } from './network.ts';
import { createNamespaceDirectory, NODE_PROGRAMS } from './node.ts';
import { labPaths, runRoot, type LabPaths } from './paths.ts';
import { missing, thisMachine } from './preflight.ts';
import { run, type RunOptions } from './run.ts';
import { resolveSpec, type ClusterOptions, type LabSpec, type Workload } from './spec.ts';
import { together } from './together.ts';
import { createUnderlay } from './underlay.ts';
import type { StartCluster } from './workload.ts';

export interface LabOptions {
  /** Default `lab`. Labs with different names can run in parallel. */
  readonly name?: string;
  /** Default `containers`. */
  readonly workload?: Workload;
  /** Default: `home` and `foreign`, one node each. */
  readonly clusters?: readonly ClusterOptions[];
  /** Folder on a disk for the lab's data; default in the cache. */
  readonly directory?: string;
  /** Aborting it makes `up` fail, and clean up. */
  readonly signal?: AbortSignal;
  /** Whether to wait if another program holds a lab of that name (holder.ts), instead of refusing. */
  readonly wait?: boolean;
  /** Gets a line for each step, with the seconds since the beginning. */
  readonly progress?: (line: string) => void;
}

export interface DownOptions extends HoldOptions {
  readonly force?: boolean;
}

const DEFAULT_NAME = 'lab';
/** Of labs that this process has brought up, until it takes them down. */
const holds = new Map<string, Hold>();
const DEFAULT_CLUSTERS: readonly ClusterOptions[] = [{ name: 'home' }, { name: 'foreign' }];

export class Lab {
  readonly spec: LabSpec;
  readonly #journal: Journal;
  readonly #clusters: ReadonlyMap<string, Cluster>;

  private constructor(spec: LabSpec, journal: Journal, clusters: readonly Cluster[]) {
    this.spec = spec;
    this.#journal = journal;
    this.#clusters = new Map(clusters.map((cluster) => [cluster.name, cluster]));
  }

  /**
   * Starts a lab. If it is up already, it is returned as it is; what an interrupted start has left is removed first.
   * If the start fails, nothing is left. If somebody else holds the lab, it is refused or waited for.
   */
  static async up(options: LabOptions = {}): Promise<Lab> {
    const { name = DEFAULT_NAME } = options;
    checkLabName(name);
    return holding(name, options, async () => Lab.#up(options));
  }

  static async #up(options: LabOptions): Promise<Lab> {
    const { name = DEFAULT_NAME, workload = 'containers', signal } = options;
    const progress = stopwatch(options.progress ?? (() => {}));
    const lack = workload === 'containers' ? missing(thisMachine()) : undefined;
    if (lack !== undefined) throw new Error(lack);

    const paths = labPaths(name, options.directory);
    const journal = new Journal(paths.runDirectory);
    return locked(lockFile(name), async () => {
      if (journal.exists()) {
        const existing = await openReady(journal);
        if (existing) {
          checkSame(existing.spec, options);
          progress('already up');
          return existing;
        }
        progress('removing what an interrupted lab has left');
        await cleanUp(journal);
      }
      // Before anything is made: the first run builds programs for minutes.
      await prepare(workload, options.clusters ?? DEFAULT_CLUSTERS, progress);
      signal?.throwIfAborted();
      try {
        return await build(journal, { ...options, name, workload }, { paths, progress });
      } catch (error) {
        progress('failed: removing everything again');
        await cleanUp(journal);
        signal?.throwIfAborted();
        throw error;
      }
    });
  }

  /** Starts a new lab; one that is up already is removed first. For tests and measurements, also after a killed run. */
  static async fresh(options: LabOptions = {}): Promise<Lab> {
    const { name = DEFAULT_NAME } = options;
    checkLabName(name);
    return holding(name, options, async () => {
      if (await remove(name)) options.progress?.('removed what an earlier run had left');
      return Lab.#up(options);
    });
  }

  /** A lab that is up; throws when there is none. */
  static async open(name: string = DEFAULT_NAME): Promise<Lab> {
    const journal = new Journal(labPaths(name).runDirectory);
    const lab = await openReady(journal);
    if (lab) return lab;
    const why = journal.exists()
      ? 'is broken; what does not run: npm run lab -- status --name'
      : 'is not up: npm run lab -- up --name';
    throw new Error(`lab ${name} ${why} ${name}`);
  }

  /**
   * Removes a lab, complete or not, and returns whether there was anything to remove. With force, it is removed even
   * if somebody else holds it.
   */
  static async down(name: string = DEFAULT_NAME, options: DownOptions = {}): Promise<boolean> {
    if (options.force === true) return remove(name);
    const hold = holds.get(name) ?? (await holdLab(name, options));
    try {
      return await remove(name);
    } finally {
      holds.delete(name);
      await hold.release();
    }
  }

  /** Removes all labs that this process holds, and returns their names: for a program that is interrupted. */
  static async downHeld(): Promise<string[]> {
    const names = [...holds.keys()];
    await Promise.allSettled(names.map(async (name) => Lab.down(name)));
    return names;
  }

  /** @internal `build` and `openReady` come here. */
  static of(spec: LabSpec, journal: Journal, clusters: readonly Cluster[]): Lab {
    return new Lab(spec, journal, clusters);
  }

  get name(): string {
    return this.spec.name;
  }

  get clusters(): readonly Cluster[] {
    return [...this.#clusters.values()];
  }

  cluster(name: string): Cluster {
    const found = this.#clusters.get(name);
    if (!found)
      throw new Error(`lab ${this.name} has no cluster ${name}: ${[...this.#clusters.keys()].join(' ')}`);
    return found;
  }

  /** Runs a program where the segments meet: rules of nftables there are the lab's firewalls. */
  async onRouter(
    command: readonly [string, ...string[]],
    options: Omit<RunOptions, 'netns'> = {},
  ): Promise<string> {
    return run(command, { ...options, netns: underlayNetns(this.name) });
  }

  /** All daemons by full name: `home/etcd`, `home-1/kubelet`. */
  daemons(): ReadonlyMap<string, Daemon> {
    return knownDaemons(this.#journal);
  }

  /** The lab stays up without a holder, so any other program may hold it next. */
  async leave(): Promise<void> {
    const hold = holds.get(this.name);
    holds.delete(this.name);
    await hold?.release();
  }

  /** Removes the lab. */
  async down(): Promise<void> {
    for (const cluster of this.clusters) cluster.api.close();
    await Lab.down(this.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down();
  }
}

async function remove(name: string): Promise<boolean> {
  const journal = new Journal(labPaths(name).runDirectory);
  return locked(lockFile(name), async () => {
    if (!journal.exists()) return false;
    await cleanUp(journal);
    return true;
  });
}

/** Holds the lab from before `work` until it is taken down, or `work` fails. */
async function holding<T>(name: string, options: HoldOptions, work: () => Promise<T>): Promise<T> {
  const held = holds.get(name);
  const hold = held ?? (await holdLab(name, options));
  // If this process holds the lab twice, the second holder has no lock of its own.
  const isFirst = !holds.has(name);
  if (isFirst) holds.set(name, hold);
  try {
    return await work();
  } catch (error) {
    if (isFirst) {
      holds.delete(name);
      await hold.release();
    }
    throw error;
  }
}

/** A lab that is up must be the requested one; otherwise it is an error. */
function checkSame(existing: LabSpec, options: LabOptions): void {
  const { clusters = DEFAULT_CLUSTERS, workload = 'containers' } = options;
  const wanted = resolveSpec({ ...existing, workload, clusters });
  if (isDeepStrictEqual(wanted, existing)) return;
  const names = existing.clusters.map(({ name, nodeCount }) => `${name} (${nodeCount})`).join(', ');
  throw new Error(
    `lab ${existing.name} is already up, but with other clusters or options: ${existing.workload}, ${names}. ` +
      'Take it down first, or choose another name',
  );
}

async function prepare(
  workload: Workload,
  clusters: readonly ClusterOptions[],
  progress: (line: string) => void,
): Promise<void> {
  if (workload !== 'containers') return;
  // All in one build, before images ask for some of them.
  await binaries(progress);
  await systemImages(progress);
  if (clusters.some(({ storage }) => storage)) await localPathImage(progress);
}

const starters: Readonly<Record<Workload, StartCluster>> = {
  containers: startContainersCluster,
  kwok: startKwokCluster,
};

async function build(
  journal: Journal,
  options: LabOptions & { name: string; workload: Workload },
  context: { paths: LabPaths; progress: (line: string) => void },
): Promise<Lab> {
  const { progress } = context;
  const isReal = options.workload === 'containers';
  const spec = await reserve(journal, options, context.paths);
  for (const path of [spec.runDirectory, spec.dataDirectory]) {
    journal.append({ kind: 'directory', path });
    // A process that outlived its lab may have written files there. Outside the cache they may belong to somebody
    // else.
    if (path === labPaths(spec.name).dataDirectory) await removeDirectory(path);
    mkdirSync(path, { recursive: true });
  }
  if (isReal) {
    await enterHost(spec.runDirectory);
    await createNamespaceDirectory(spec.runDirectory);
    await createUnderlay(spec, journal);
    progress(`network ready at 172.30.${spec.underlay.subnet}.0/24`);
  }
  const planes = await together(
    options.signal,
    spec.clusters.map((cluster) => async (signal: AbortSignal) => {
      const plane = await starters[cluster.workload]({ lab: spec, cluster, journal, progress, signal });
      plane.api.close();
      const access = {
        server: plane.server,
        kubeconfig: plane.kubeconfig,
        pkiDirectory: plane.pki.directory,
      };
      journal.append({ kind: 'cluster', name: cluster.name, access });
      return plane;
    }),
  );
  journal.append({ kind: 'ready' });
  progress(`up: ${planes.length} clusters`);
  const lab = await openReady(journal);
  if (!lab) throw new Error('a daemon ended as soon as everything was ready; see status');
  return lab;
}

/** Chooses the names and addresses of the lab and records them, one lab at a time. */
async function reserve(
  journal: Journal,
  options: LabOptions & { name: string; workload: Workload },
  paths: LabPaths,
): Promise<LabSpec> {
  return locked(join(runRoot(), 'subnets.lock'), async () => {
    const subnet = options.workload === 'containers' ? chooseSubnet(await takenSubnets()) : 0;
    const spec = resolveSpec({
      name: options.name,
      workload: options.workload,
      clusters: options.clusters ?? DEFAULT_CLUSTERS,
      underlay: { subnet },
      ...paths,
    });
    journal.append({ kind: 'lab', spec });
    return spec;
  });
}

async function takenSubnets(): Promise<Set<number>> {
  const taken = subnetsInRoutes(await run(['ip', '-4', 'route', 'show', 'table', 'all']));
  for (const name of labNames()) {
    const { spec } = new Journal(join(runRoot(), name)).read();
    if (spec?.workload === 'containers') taken.add(spec.underlay.subnet);
  }
  return taken;
}

/** Names of all labs with a journal, whatever their state. */
export function labNames(): string[] {
  try {
    return readdirSync(runRoot()).filter((name) => existsSync(join(runRoot(), name, 'journal.jsonl')));
  } catch {
    return [];
  }
}

/** The lab of a journal, if it was finished and all its daemons still run, except those without power. */
async function openReady(journal: Journal): Promise<Lab | undefined> {
  const state = journal.read();
  const { spec } = state;
  if (!spec || !state.ready) return undefined;
  const daemons = [...knownDaemons(journal).values()];
  const components = daemons.filter(({ name }) => !isExtra(spec, name) && !state.off.has(ownerOf(name)));
  if (!components.every(({ id }) => id !== undefined)) return undefined;
  const clusters = await Promise.all(
    spec.clusters.map(async (cluster) => {
      const access = state.clusters.get(cluster.name);
      if (!access) throw new Error(`the journal of lab ${spec.name} lacks cluster ${cluster.name}`);
      return Cluster.open({ lab: spec, cluster, journal, access });
    }),
  );
  return Lab.of(spec, journal, clusters);
}

/** Whether it is a program of somebody else, started by `Node.spawn`: if it ends, the lab is not broken. */
function isExtra(spec: LabSpec, name: string): boolean {
  const node = spec.clusters.flatMap(({ nodes }) => nodes).find((node) => name.startsWith(`${node.name}/`));
  return node !== undefined && !NODE_PROGRAMS.some((program) => name === `${node.name}/${program}`);
}

function lockFile(name: string): string {
  mkdirSync(runRoot(), { recursive: true });
  return join(runRoot(), `${name}.lock`);
}

/** Puts the seconds since now before each line. */
function stopwatch(progress: (line: string) => void): (line: string) => void {
  const start = performance.now();
  return (line) => progress(`${((performance.now() - start) / 1000).toFixed(1).padStart(5)} s  ${line}`);
}
