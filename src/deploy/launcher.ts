import { LABEL_PROVIDER } from '../api/names.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import { TributaryError } from '../lib/errors.ts';
import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import { AgentObjects, launchedAs, type LauncherOptions } from './agent-objects.ts';
import {
  agentAccount,
  type AgentProgram,
  forgeAgentPod,
  type LaunchedAgent,
  PEERS_ACCOUNT,
} from './launched-agent.ts';

/**
 * Runs agents as Deployments in `tributary-agents`, each under an account of its own. What it may do there, and what
 * such an account may do, is in agents.ts; this only fills in names.
 */
export class PodLauncher implements AgentLauncher {
  readonly #program: AgentProgram;
  readonly #objects: AgentObjects;
  /** Providers of which it is known that the agent of all serves none of their virtual nodes. */
  readonly #settled = new Set<string>();
  /** The agent of all has been looked for since the start, and ended if nobody needs it. */
  #isPeersOver = false;

  constructor(options: LauncherOptions) {
    this.#program = options;
    this.#objects = new AgentObjects(options);
  }

  async ensure(wanted: WantedAgent, signal: AbortSignal): Promise<void> {
    const { clusterID } = wanted;
    const agent = launchedAs(this.#program, wanted);
    const shared = this.#settled.has(clusterID) ? [] : await this.#objects.sharedOf(clusterID, signal);
    const own = agentAccount(clusterID);
    await this.#objects.grant(agent, shared.length > 0 ? [own, PEERS_ACCOUNT] : [own], signal);
    await this.#objects.apply(forgeAgentPod(agent), signal);
    if (shared.length > 0) await this.#takeOver(agent, shared, signal);
    if (this.#settled.has(clusterID)) return;
    if (!this.#isPeersOver || shared.length > 0) await this.#objects.endPeersAgentUnlessUsed(signal);
    this.#isPeersOver = true;
    this.#settled.add(clusterID);
  }

  /** First removes the pod, so that it can still write at its end; then its rights. */
  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    this.#settled.delete(clusterID);
    await this.#objects.endOwnAgent(clusterID, async () => this.#objects.revoke(clusterID, signal), signal);
  }

  /** From the agent of all, which goes on until there is a pod that can take its place. */
  async #takeOver(agent: LaunchedAgent, shared: readonly VirtualNode[], signal: AbortSignal): Promise<void> {
    const objects = this.#objects;
    const { clusterID } = agent;
    const selector = `${LABEL_PROVIDER}=${clusterID}`;
    const runs = async (): Promise<boolean> =>
      (await objects.running(selector, signal)).some(({ status }) => status?.phase === 'Running');
    if (!(await objects.until(runs, signal))) {
      throw new TributaryError(
        'Unavailable',
        `the agent of all serves ${clusterID} until the pod of its own agent runs, and that does not run yet`,
      );
    }
    for (const virtualNode of shared) await objects.label(virtualNode, false, signal);
    // As soon as the Leases are given up. Where it takes longer, the agent of all writes nothing more here.
    await objects.until(async () => objects.isReady(selector, signal), signal);
    await objects.grant(agent, [agentAccount(clusterID)], signal);
  }
}
