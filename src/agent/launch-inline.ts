import type { AgentAccounts } from '../deploy/agent-accounts.ts';
import { agentAccount } from '../deploy/launched-agent.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import type { Registries } from '../server/registries.ts';
import type { Access, OpenAccess } from './accounts.ts';
import type { AgentParts } from './parts.ts';
import { ServedNodes } from './served-nodes.ts';
import { VirtualNodeAgent } from './virtual-node.ts';

interface InlineLauncherOptions {
  parts: AgentParts;
  /** For what only the leader may write. */
  acting: KubeClient;
  /** How agents see our own API server. */
  own: Access;
  /** Each agent under an account of its own, instead; absent: all as this process. */
  accounts?: { launched: Pick<AgentAccounts, 'ensure' | 'remove'>; open: OpenAccess };
  /** PEM of the authorities of that API server. */
  homeCa?: string | undefined;
  registries: Registries;
  /** Where the home API server reaches the kubelet APIs; their ports are free ones. */
  nodeAddress: string;
}

/** Runs agents inside this process: for role `all`, and for labs without pods. */
export class InlineLauncher implements AgentLauncher, Component {
  readonly name = 'inline agents';
  readonly #accounts: InlineLauncherOptions['accounts'];
  readonly #nodes: ServedNodes;
  /** ClusterID by name of the VirtualNode. */
  readonly #clusters = new Map<string, string>();
  /** By ClusterID; where agents have accounts. */
  readonly #opened = new Map<string, Access>();

  #isStopped = false;

  constructor(options: InlineLauncherOptions) {
    const { parts, acting, own: ours, homeCa, registries, nodeAddress } = options;
    const { clock, log } = parts;
    const open = (virtualNode: string, own: typeof log): VirtualNodeAgent =>
      new VirtualNodeAgent({
        ...(this.#opened.get(this.#clusters.get(virtualNode) ?? '') ?? ours),
        homeCa,
        parts: { ...parts, log: own },
        virtualNode,
        address: nodeAddress,
        kubeletPort: 0,
        registry: registries.open(virtualNode),
        metrics: async () => registries.metrics(),
        approver: acting,
      });
    this.#accounts = options.accounts;
    this.#nodes = new ServedNodes({ open, close: (name) => registries.close(name), clock, log });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#nodes.stop();
    await Promise.all([...this.#opened.keys()].map(async (clusterID) => this.#close(clusterID)));
  }

  /** Does not wait until they have started; their Nodes say how they are. */
  async ensure(agent: WantedAgent, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clusterID, virtualNodes } = agent;
    await this.#open(agent, signal);
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
    await this.#close(clusterID);
    await this.#accounts?.launched.remove(clusterID, signal);
  }

  async #open(agent: WantedAgent, signal: AbortSignal): Promise<void> {
    if (this.#accounts === undefined) return;
    await this.#accounts.launched.ensure(agent, signal);
    if (this.#isStopped || this.#opened.has(agent.clusterID)) return;
    this.#opened.set(agent.clusterID, this.#accounts.open(agentAccount(agent.clusterID)));
  }

  async #close(clusterID: string): Promise<void> {
    const access = this.#opened.get(clusterID);
    this.#opened.delete(clusterID);
    await access?.home.close();
  }

  #of(clusterID: string): string[] {
    return [...this.#clusters].flatMap(([name, of]) => (of === clusterID ? [name] : []));
  }

  async #end(names: readonly string[]): Promise<void> {
    await this.#nodes.end(names);
    for (const name of names) this.#clusters.delete(name);
  }
}
