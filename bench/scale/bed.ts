/**
 * Virtual nodes of one foreign cluster with thousands of pods each. Only a few of these are made as pods are made; the others are
 * copies of them in etcd, since an agent would take minutes for each ten thousand.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { etcdOf } from '../../lab/etcd-state.ts';
import { pods } from '../../src/api/resources.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { ownClient } from '../frame/own-client.ts';
import type { Program } from '../frame/program.ts';
import { Bed, type Restartable, tenantOf } from '../pods/bed.ts';
import type { Mirror } from '../pods/contender.ts';
import { createMany } from '../pods/many-pods.ts';
import { isReady } from '../pods/readiness.ts';
import { begin, probeFlags } from '../pods/restart.ts';
import { copyOf, type Pair, pairsOf } from './copies.ts';
import { keyOf, readPods, writeAll } from './stored-pods.ts';

export interface ScaleBedOptions {
  /** Virtual nodes, each with an agent of its own. */
  readonly nodes: number;
  /** Of each node, made as pods are made. */
  readonly seeds: number;
  /** Of each node. */
  readonly mostPods: number;
  readonly nodeFlags: readonly string[];
  readonly say: (line: string) => void;
}

/** One virtual node. */
export interface Place {
  readonly name: string;
  readonly tenant: string;
  readonly agent: Restartable;
  /** Names of its copies. */
  readonly copies: string[];
  readonly seeds: readonly Pair[];
}

const FOREIGN_PODS_PER_NODE = 200;
const SEEDED_TIMEOUT_MS = 600_000;
const CAUGHT_UP_MS = 300_000;
/** An agent that begins anew tells home once more of events over there that are young. */
const SETTLE_MS = 90_000;
/** Nobody plays kubelet any more, schedules, or counts: what would cost memory for each pod, and is not measured. */
const NOT_NEEDED = ['kwok', 'kube-scheduler', 'kube-controller-manager'];
const COPIES_AT_A_TIME = 2_000;

export class ScaleBed {
  readonly bed: Bed;
  readonly places: readonly Place[];
  /** Of the home cluster, as a user whose requests are not taken for those of the agents. */
  readonly home: HttpClient;
  #made = 0;

  private constructor(bed: Bed, places: readonly Place[], home: HttpClient) {
    this.bed = bed;
    this.places = places;
    this.home = home;
  }

  static async up({ nodes, seeds, mostPods, nodeFlags, say }: ScaleBedOptions): Promise<ScaleBed> {
    const names = Array.from({ length: nodes }, (_none, index) => `agent-${index}`);
    const bed = await Bed.up({
      name: 'bench-scale',
      progress: say,
      nodeFlags,
      audit: true,
      storesJson: true,
      agents: names,
      mostPods,
      foreignNodes: Math.ceil((nodes * seeds) / FOREIGN_PODS_PER_NODE),
    });
    try {
      const places = await seeded(bed, names, seeds);
      say(`${seeds} pods run on each of ${nodes} nodes`);
      return new ScaleBed(bed, places, await ownClient(bed.cluster('home')));
    } catch (error) {
      await bed.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await this.home.close();
    await this.bed.down();
  }

  /** Until each node has so many pods. No agent may run. */
  async fill(perNode: number): Promise<void> {
    const [home, foreign] = [etcdOf(this.bed.cluster('home')), etcdOf(this.bed.cluster('foreign'))];
    for (const place of this.places) {
      for (let missing = perNode - podsOf(place); missing > 0; missing = perNode - podsOf(place)) {
        const made = Array.from({ length: Math.min(missing, COPIES_AT_A_TIME) }, () => this.#copy(place));
        // Bodies first, as if an agent had made them: nobody looks, but a run that breaks off leaves no pod that needs one.
        await writeAll(
          foreign,
          made.map(({ name, values }) => [keyOf(place.tenant, name), values.foreign]),
        );
        await writeAll(
          home,
          made.map(({ name, values }) => [keyOf(place.name, name), values.home]),
        );
        place.copies.push(...made.map(({ name }) => name));
      }
    }
    await this.#caughtUp();
    await this.bed.quiet();
  }

  /** API servers read what was written behind them; until then they refuse a list as too new. */
  async #caughtUp(): Promise<void> {
    for (const client of [this.home, this.bed.clients.foreign])
      await this.bed.until('the API server knows all pods', CAUGHT_UP_MS, async () =>
        client.list(pods, { limit: 1, namespace: 'default' }).then(
          () => true,
          () => false,
        ),
      );
  }

  #copy({ seeds }: Place): { name: string; values: Record<'home' | 'foreign', string> } {
    const number = this.#made++;
    const name = `copy-${String(number).padStart(6, '0')}`;
    const pair = seeds[number % seeds.length];
    if (pair === undefined) throw new Error('there is no pod to copy');
    return { name, values: copyOf(pair, name, number) };
  }
}

export const podsOf = ({ seeds, copies }: Place): number => seeds.length + copies.length;

/** Each agent makes the bodies of some pods; then all are stopped. */
async function seeded(bed: Bed, names: readonly string[], count: number): Promise<Place[]> {
  const running: { name: string; agent: Restartable; program: Program }[] = [];
  for (const name of names) {
    const agent = await bed.restartable('agent', probeFlags(bed, name), name);
    const { program } = await begin(agent, 0);
    running.push({ name, agent, program });
    await bed.nodeReady(name, program);
    await createMany(bed, { ...mirrorOf(name), program }, count);
  }
  for (const { name } of running)
    await bed.until(`${count} pods of ${name} Ready`, SEEDED_TIMEOUT_MS, async () => {
      const { items } = await bed.clients.home.list(pods, { namespace: name });
      return items.filter(isReady).length >= count;
    });
  await sleep(SETTLE_MS);
  // Before the agents: without these a cluster takes a silent node for lost.
  for (const cluster of ['home', 'foreign'] as const)
    for (const daemon of NOT_NEEDED) await bed.cluster(cluster).daemon(daemon).kill();
  await Promise.all(running.map(async ({ program }) => program.stop()));
  return Promise.all(
    running.map(async ({ name, agent }) => {
      const tenant = tenantOf(name);
      const home = await readPods(etcdOf(bed.cluster('home')), name);
      const foreign = await readPods(etcdOf(bed.cluster('foreign')), tenant);
      return { name, tenant, agent, copies: [], seeds: pairsOf(home, foreign) };
    }),
  );
}

const mirrorOf = (name: string): Omit<Mirror, 'program'> => ({
  name,
  cluster: 'home',
  namespace: name,
  node: name,
  tenant: tenantOf(name),
});
