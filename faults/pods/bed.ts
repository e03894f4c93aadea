/** Two real control planes with pretended nodes, and lanes between them in which faults are injected beside each other. */
import { join } from 'node:path';

import { parseAllDocuments } from 'yaml';

import { binaries } from '../../lab/binaries.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { Lab } from '../../lab/lab.ts';
import { run } from '../../lab/run.ts';
import { compileProgram, type Edit, runToEnd } from '../../lab/compiled-program.ts';
import { until } from '../until.ts';
import { Lane } from './lane.ts';

export interface BedOptions {
  /** Of the lab. */
  readonly name: string;
  readonly lanes: number;
  readonly checkout?: string | undefined;
  /** Made in the program before it is compiled. */
  readonly edits?: readonly Edit[] | undefined;
  /** How long everything may take to come to rest after a fault. */
  readonly patienceSeconds: number;
  readonly progress: (line: string) => void;
}

interface PlainObject {
  readonly kind?: string;
}

/** How long nothing may be written in the end. */
const QUIET_SECONDS = 2;

export class PodsBed {
  readonly lab: Lab;
  /** Main module of the program. */
  readonly main: string;
  readonly laneCount: number;
  readonly bounds: { readonly settleSeconds: number; readonly quietSeconds: number };
  readonly lanes: Lane[] = [];
  readonly #kubectl: string;

  private constructor(
    lab: Lab,
    main: string,
    { kubectl, lanes, patienceSeconds }: { kubectl: string; lanes: number; patienceSeconds: number },
  ) {
    this.bounds = { settleSeconds: patienceSeconds, quietSeconds: QUIET_SECONDS };
    this.lab = lab;
    this.main = main;
    this.laneCount = lanes;
    this.#kubectl = kubectl;
  }

  static async up({ name, lanes, checkout, edits, patienceSeconds, progress }: BedOptions): Promise<PodsBed> {
    const lab = await Lab.fresh({
      name,
      workload: 'kwok',
      clusters: [{ name: 'home' }, { name: 'foreign', nodes: 2, podPlayers: 1 }],
      progress,
    });
    try {
      const main = compileProgram(join(lab.spec.dataDirectory, 'program'), {
        ...(checkout !== undefined && { checkout }),
        ...(edits !== undefined && { edits }),
      });
      progress('the program is compiled');
      const { kubectl } = await binaries(progress, ['kubectl']);
      const bed = new PodsBed(lab, main, { kubectl, lanes, patienceSeconds });
      await bed.#furnish();
      for (let index = 0; index < lanes; index++) bed.lanes.push(await Lane.up(bed, index));
      progress(`${lanes} lanes are up`);
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  get home(): Cluster {
    return this.lab.cluster('home');
  }

  get provider(): Cluster {
    return this.lab.cluster('foreign');
  }

  async down(): Promise<void> {
    await Promise.allSettled(this.lanes.map(async (lane) => lane.down()));
    await this.lab.down();
  }

  /** What a command of the program prints. */
  tributary(...args: readonly string[]): string {
    return runToEnd(process.execPath, [this.main, ...args]);
  }

  /** As a person applies it. */
  async apply(
    cluster: Cluster,
    yaml: string,
    isWanted: (object: PlainObject) => boolean = () => true,
  ): Promise<void> {
    const objects = parseAllDocuments(yaml)
      .map((document) => document.toJS() as PlainObject | null)
      .filter((object) => object !== null);
    await this.applyObjects(cluster, objects.filter(isWanted));
  }

  async applyObjects({ kubeconfig }: Cluster, items: readonly object[]): Promise<void> {
    await run(
      [this.#kubectl, '--kubeconfig', kubeconfig, 'apply', '--server-side', '--force-conflicts', '-f', '-'],
      {
        stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      },
    );
  }

  async #furnish(): Promise<void> {
    const crds = this.tributary('manifests', 'crds');
    await Promise.all([this.home, this.provider].map(async (cluster) => this.apply(cluster, crds)));
    await until('the kind VirtualNode is served', async () => {
      const { status } = await this.home.api.call('GET', '/apis/tributary.dev/v1alpha1/virtualnodes');
      return status === 200 ? true : String(status);
    });
    const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tributary-system' } };
    await this.applyObjects(this.home, [system]);
  }
}
