import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import type { Registries } from '../server/registries.ts';
import type { AgentParts } from './parts.ts';
import { ServedNodes } from './served-nodes.ts';
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

/** Runs agents inside this process: for role `all`, and for labs without pods. */
export class InlineLauncher implements AgentLauncher, Component {
  readonly name = 'inline agents';
  readonly #nodes: ServedNodes;
  /** ClusterID by name of the VirtualNode. */
  readonly #clusters = new Map<string, string>();

  constructor(options: InlineLauncherOptions) {
    const { parts, registries, nodeAddress, ...rest } = options;
    const { clock, log } = parts;
    const open = (virtualNode: string, own: typeof log): VirtualNodeAgent =>
      new VirtualNodeAgent({
        ...rest,
        parts: { ...parts, log: own },
        virtualNode,
        address: nodeAddress,
        kubeletPort: 0,
        registry: registries.open(virtualNode),
        metrics: async () => registries.metrics(),
        approves: true,
      });
    this.#nodes = new ServedNodes({ open, close: (name) => registries.close(name), clock, log });
  }

  async stop(): Promise<void> {
    await this.#nodes.stop();
  }

  /** Does not wait until they have started; their Nodes say how they are. */
  async ensure({ clusterID, virtualNodes }: WantedAgent, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const wanted = new Set(virtualNodes.map(({ name }) => name));
    await this.#end(this.#of(clusterID).filter((name) => !wanted.has(name)));
    for (const name of wanted) {
      this.#clusters.set(name, clusterID);
      this.#nodes.serve(name);
    }
  }

  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#end(this.#of(clusterID));
  }

  #of(clusterID: string): string[] {
    return [...this.#clusters].flatMap(([name, of]) => (of === clusterID ? [name] : []));
  }

  async #end(names: readonly string[]): Promise<void> {
    await this.#nodes.end(names);
    for (const name of names) this.#clusters.delete(name);
  }
}
