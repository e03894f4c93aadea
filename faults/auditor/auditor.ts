/** The auditor of one run after another: what it watches, and what it is told by its caller. */
import { setTimeout as sleep } from 'node:timers/promises';

import { ApiReader, ReadError } from './api-reader.ts';
import { canaryOf } from './checks/secrets.ts';
import type { Ours } from './checks/strangers.ts';
import type { Config } from './config.ts';
import type { Run } from './history.ts';
import { accessOf } from './kubeconfig.ts';
import { ProcessList } from './process-list.ts';
import { Recorder } from './recorder.ts';
import { SecretSearch } from './secret-search.ts';
import { snapshotOf } from './snapshot.ts';
import type { ClusterSnapshot } from './snapshot-model.ts';
import type { Pairing } from './written.ts';
import { now } from './violation.ts';

const LOOK_MS = 250;
/** Arguments of all processes are read once in so many looks. */
const LOOKS = 4;
const RETRY_MS = 200;

export class Auditor {
  readonly config: Config;
  readonly secrets: SecretSearch;
  readonly processes: ProcessList = new ProcessList();
  readonly home: Recorder;
  /** In the order of the configuration. */
  readonly providers: readonly Recorder[];
  /** As they were when the run began, by cluster; one that could not be read again after a restore has none. */
  readonly #snapshots = new Map<string, ClusterSnapshot>();
  readonly #lost = new Set<string>();

  constructor(config: Config) {
    this.config = config;
    this.secrets = new SecretSearch(config.canaries.map(canaryOf), config.logs);
    const namespaces = config.providers.flatMap((provider) => provider.namespaces);
    const recorder = (name: string, kubeconfig: string, names: string[]): Recorder =>
      new Recorder(new ApiReader(name, accessOf(kubeconfig)), new Set(names), (pod) =>
        this.secrets.readObject(name, 'pods', pod),
      );
    this.home = recorder(
      'home',
      config.home.kubeconfig,
      namespaces.map(({ home }) => home),
    );
    this.providers = config.providers.map((provider) =>
      recorder(
        provider.name,
        provider.kubeconfig,
        provider.namespaces.map(({ tenant }) => tenant),
      ),
    );
  }

  get recorders(): readonly Recorder[] {
    return [this.home, ...this.providers];
  }

  /** Watches until the signal. Fails only upon a mistake in this program. */
  async watch(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.recorders.map(async (one) => one.run(signal)), this.#look(signal)]);
    for (const { reader } of this.recorders) reader.close();
  }

  /** Processes leave no history: they are looked at again and again. */
  async #look(signal: AbortSignal): Promise<void> {
    for (let look = 0; !signal.aborted; look += 1) {
      this.processes.look();
      if (look % LOOKS === 0) this.secrets.readProcesses();
      await sleep(LOOK_MS);
    }
  }

  /** @throws {Error} if a cluster cannot be read within the bound */
  async begin(): Promise<void> {
    const snapshots = await this.#patiently(async () => {
      const problem = this.recorders.map((one) => one.problem).find((one) => one !== undefined);
      if (problem !== undefined) throw new ReadError(problem);
      return this.snapshots();
    });
    this.#snapshots.clear();
    for (const snapshot of snapshots) this.#snapshots.set(snapshot.cluster, snapshot);
    this.#lost.clear();
    this.secrets.begin();
    this.processes.begin();
    for (const recorder of this.recorders) recorder.begin();
  }

  /** Data over there went, by the caller's doing: `uid` of a remote pod, or of its home pod. */
  lost(uid: string): void {
    this.#lost.add(uid);
  }

  /**
   * The store of a cluster was put back, and its API server answers again. What strangers have there now is what counts from now on.
   *
   * @throws {Error} if there is no such cluster, or it cannot be read within the bound
   */
  async restored(cluster: string): Promise<void> {
    const recorder = this.recorders.find(({ reader }) => reader.name === cluster);
    if (recorder === undefined) throw new Error(`there is no cluster ${cluster}`);
    recorder.restored();
    this.#snapshots.delete(cluster);
    const snapshot = await this.#patiently(async () => this.#snapshot(recorder));
    this.#snapshots.set(cluster, snapshot);
  }

  /** @throws {ReadError} */
  async snapshots(): Promise<ClusterSnapshot[]> {
    return Promise.all(this.recorders.map(async (recorder) => this.#snapshot(recorder)));
  }

  async #snapshot({ reader }: Recorder): Promise<ClusterSnapshot> {
    return snapshotOf(reader, (resource, object) => this.secrets.readObject(reader.name, resource, object));
  }

  snapshotBefore(cluster: string): ClusterSnapshot | undefined {
    return this.#snapshots.get(cluster);
  }

  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    const deadline = now() + this.config.bounds.settleSeconds * 1000;
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof ReadError) || now() > deadline) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  /** What was seen of pods since the run began. */
  run(): Run {
    const { bounds, providers } = this.config;
    return {
      home: this.home.history(),
      sides: providers.flatMap(({ name, node, namespaces }, index) => {
        const cluster = this.providers[index]?.history();
        return cluster === undefined ? [] : [{ name, node, namespaces, cluster }];
      }),
      lost: this.#lost,
      skewMs: bounds.skewSeconds * 1000,
      settleMs: bounds.settleSeconds * 1000,
    };
  }

  ours(): Ours {
    const { providers, ignoreNamespaces, ignoreNodes } = this.config;
    const pairs = providers.flatMap(({ namespaces }) => namespaces);
    return {
      namespaces: new Set([...ignoreNamespaces, ...pairs.flatMap(({ home, tenant }) => [home, tenant])]),
      nodes: new Set([...ignoreNodes, ...providers.map(({ node }) => node)]),
    };
  }

  pairings(): Pairing[] {
    return this.config.providers.flatMap(({ node, namespaces }, index) => {
      const reader = this.providers[index]?.reader;
      return reader === undefined ? [] : [{ node, namespaces, reader }];
    });
  }
}
