import type { WantedAgent } from '../peering/ports.ts';
import { accountOf, AgentObjects } from './agent-objects.ts';
import { agentAccount, forgeAgentAccount, PEERS_ACCOUNT } from './launched-agent.ts';

/**
 * Agents that run within role `all`, in a pod: each has its own account, and no pod. Pods of agents that role `cluster` has left, of
 * whichever kind, make way. The Leases of the virtual nodes say when ours may act in their place.
 */
export class AgentAccounts {
  readonly #objects: AgentObjects;
  /** Providers of which it is known that no agent in a pod serves them. */
  readonly #settled = new Set<string>();

  constructor(options: ConstructorParameters<typeof AgentObjects>[0]) {
    this.#objects = new AgentObjects(options);
  }

  async ensure(wanted: WantedAgent, signal: AbortSignal): Promise<void> {
    const objects = this.#objects;
    const { clusterID } = wanted;
    const own = agentAccount(clusterID);
    const shared = this.#settled.has(clusterID) ? [] : await objects.sharedOf(clusterID, signal);
    await objects.grant(accountOf(wanted), shared.length > 0 ? [own, PEERS_ACCOUNT] : [own], signal);
    await objects.apply([forgeAgentAccount(clusterID)], signal);
    if (this.#settled.has(clusterID)) return;
    await objects.deleteDeployment(own, signal);
    // The agent of all gives their Leases up while it has its rights; the next look takes those.
    for (const virtualNode of shared) await objects.label(virtualNode, false, signal);
    if (shared.length > 0) return;
    await objects.endPeersAgentUnlessUsed(signal);
    this.#settled.add(clusterID);
  }

  /** Of an agent that has ended. */
  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    this.#settled.delete(clusterID);
    await this.#objects.endOwnAgent(clusterID, async () => this.#objects.revoke(clusterID, signal), signal);
  }
}
