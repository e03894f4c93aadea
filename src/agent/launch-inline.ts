import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import { keepServing } from './served-node.ts';
import type { AgentParts } from './parts.ts';
import type { Registries } from '../server/registries.ts';
import { VirtualNodeAgent } from './virtual-node.ts';

interface InlineLauncherOptions {
  parts: AgentParts;
  home: KubeClient;
  /** PEM of the authorities of that API server. */
  homeCa?: string | undefined;
  caches: Caches;
  registries: Registries;
  /** Where the home API server reaches the kubelet APIs; their ports are free ones. */
  nodeAddress: string;
}

interface Running {
  clusterID: string;
  abort: AbortController;
  /** Settles when it has stopped. */
  done: Promise<void>;
}

/** Runs agents inside this process: for role `all`, and for labs without pods. */
export class InlineLauncher implements AgentLauncher, Component {
  readonly name = 'inline agents';
  readonly #options: InlineLauncherOptions;
  /** By name of the VirtualNode. */
  readonly #running = new Map<string, Running>();
  #stopped = false;

  constructor(options: InlineLauncherOptions) {
    this.#options = options;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#end([...this.#running.values()]);
  }

  /** Does not wait until they have started; their Nodes say how they are. */
  async ensure({ clusterID, virtualNodes }: WantedAgent, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const wanted = new Set(virtualNodes.map(({ name }) => name));
    await this.#end(this.#of(clusterID, (name) => !wanted.has(name)));
    if (this.#stopped) return;
    for (const name of wanted) {
      if (this.#running.has(name)) continue;
      const abort = new AbortController();
      const done = this.#run(name, abort.signal).finally(() => this.#running.delete(name));
      this.#running.set(name, { clusterID, abort, done });
    }
  }

  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#end(this.#of(clusterID, () => true));
  }

  #of(clusterID: string, matches: (virtualNode: string) => boolean): Running[] {
    return [...this.#running]
      .filter(([name, running]) => running.clusterID === clusterID && matches(name))
      .map(([, running]) => running);
  }

  async #end(ending: readonly Running[]): Promise<void> {
    for (const { abort } of ending) abort.abort(new Error('no longer wanted'));
    await Promise.all(ending.map(async ({ done }) => done));
  }

  /** Until it is no longer wanted. */
  async #run(virtualNode: string, signal: AbortSignal): Promise<void> {
    const { parts, home, homeCa, caches, registries, nodeAddress } = this.#options;
    const { clock } = parts;
    const log = parts.log.named('agent', { virtualNode });
    const open = (): VirtualNodeAgent =>
      new VirtualNodeAgent({
        parts: { ...parts, log },
        home,
        homeCa,
        caches,
        virtualNode,
        address: nodeAddress,
        kubeletPort: 0,
        registry: registries.open(virtualNode),
        metrics: async () => registries.metrics(),
        approves: true,
      });
    await keepServing({ open, close: () => registries.close(virtualNode), clock, log }, signal);
  }
}
