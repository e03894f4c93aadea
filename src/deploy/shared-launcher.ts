import { LABEL_APP_INSTANCE, PEERS_NAME } from '../api/manifest.ts';
import { LABEL_PROVIDER } from '../api/names.ts';
import { TributaryError } from '../lib/errors.ts';
import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import { AgentObjects, launchedAs, type LauncherOptions } from './agent-objects.ts';
import { agentAccount, forgePeersPod, type LaunchedAgent, PEERS_ACCOUNT } from './launched-agent.ts';

/** How often account and Deployment of the agent of all are looked at, for all providers together. */
const POD_INTERVAL_MS = 60_000;
const PEERS_SELECTOR = `${LABEL_APP_INSTANCE}=${PEERS_NAME}`;

/**
 * Runs one agent for all providers, role `peers`. Each provider still has a Role and bindings of its own, which say what may be done for it,
 * so that they go with it; the account has the sum of them. Which virtual nodes it serves is said by a label on each.
 */
export class SharedLauncher implements AgentLauncher {
  readonly #options: LauncherOptions;
  readonly #objects: AgentObjects;
  /** Providers that are served, or about to be. */
  readonly #users = new Set<string>();
  /** Of these it is known that they have no pod of their own any more. */
  readonly #settled = new Set<string>();
  #pod: { at: number; applied: Promise<void> } | undefined;

  constructor(options: LauncherOptions) {
    this.#options = options;
    this.#objects = new AgentObjects(options);
  }

  async ensure(wanted: WantedAgent, signal: AbortSignal): Promise<void> {
    const { clusterID } = wanted;
    const agent = launchedAs(this.#options, wanted);
    this.#users.add(clusterID);
    const isMoving = !this.#settled.has(clusterID) && (await this.#hasOwn(clusterID, signal));
    const own = agentAccount(clusterID);
    await this.#objects.grant(agent, isMoving ? [own, PEERS_ACCOUNT] : [PEERS_ACCOUNT], signal);
    await this.#applyPod(agent, signal);
    const names = new Set(agent.virtualNodes.map(({ name }) => name));
    for (const virtualNode of await this.#objects.virtualNodesOf(clusterID, signal)) {
      if (names.has(virtualNode.metadata.name)) await this.#objects.label(virtualNode, true, signal);
    }
    if (this.#settled.has(clusterID)) return;
    await this.#replaceOwn(agent, isMoving, signal);
    this.#settled.add(clusterID);
  }

  /** First leaves the agent the time to end, so that it can still write; then takes its rights. */
  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    const objects = this.#objects;
    for (const virtualNode of await objects.virtualNodesOf(clusterID, signal)) {
      await objects.label(virtualNode, false, signal);
    }
    // It removes the Nodes of VirtualNodes that are gone.
    await objects.until(async () => !(await objects.hasNodes(clusterID, signal)), signal);
    await objects.endOwnAgent(clusterID, async () => objects.revoke(clusterID, signal), signal);
    this.#users.delete(clusterID);
    this.#settled.delete(clusterID);
    if (this.#users.size > 0) return;
    this.#pod = undefined;
    await objects.endPeersAgentUnlessUsed(signal);
  }

  async #hasOwn(clusterID: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#objects.running(`${LABEL_PROVIDER}=${clusterID}`, signal)).length > 0;
  }

  /** One look for all who ask at about the same time. A failed one is told to each of them, and made again by the next. */
  async #applyPod(agent: LaunchedAgent, signal: AbortSignal): Promise<void> {
    const now = this.#options.clock.monotonic();
    if (this.#pod === undefined || now - this.#pod.at >= POD_INTERVAL_MS) {
      const applied = this.#objects.apply(forgePeersPod(agent), signal);
      const pod = (this.#pod = { at: now, applied });
      applied.catch(() => {
        if (this.#pod === pod) this.#pod = undefined;
      });
    }
    await this.#pod.applied;
  }

  /** The provider's own agent goes on until the one that takes its place is ready; Leases see to it that one acts at a time. */
  async #replaceOwn(agent: LaunchedAgent, isMoving: boolean, signal: AbortSignal): Promise<void> {
    const objects = this.#objects;
    const { clusterID } = agent;
    const isThere = async (): Promise<boolean> => objects.isReady(PEERS_SELECTOR, signal);
    if (isMoving && !(await objects.until(isThere, signal))) {
      throw new TributaryError(
        'Unavailable',
        `the agent of ${clusterID} goes on until the pod of ${PEERS_NAME} is ready, and that is not ready yet`,
      );
    }
    const narrow = async (): Promise<void> =>
      isMoving ? objects.grant(agent, [PEERS_ACCOUNT], signal) : Promise.resolve();
    await objects.endOwnAgent(clusterID, narrow, signal);
  }
}
