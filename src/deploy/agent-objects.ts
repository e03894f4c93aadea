/** What all launchers do with the objects of agents in the home cluster. Which objects: launched-agent.ts. */
import { AGENTS_NAMESPACE, type Manifest, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { AGENT_OF_ALL, LABEL_AGENT, LABEL_PROVIDER } from '../api/names.ts';
import { isConditionTrue } from '../api/conditions.ts';
import { isFinished } from '../api/pod.ts';
import type { AccountRef } from '../api/rbac.ts';
import { nodes, pods, roleBindings } from '../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { KubeObject, Pod } from '../api/wire.ts';
import { applyManifests, deleteManifests } from '../kube/apply.ts';
import type { KubeClient } from '../kube/client.ts';
import { replaceIfDiffers } from '../kube/write.ts';
import type { Basics } from '../lib/basics.ts';
import { eachAtOnce } from '../lib/each-at-once.ts';
import { errorMessage, hasCode, ignoring, TributaryError } from '../lib/errors.ts';
import type { WantedAgent } from '../peering/ports.ts';
import {
  type AccountOfAgent,
  agentAccount,
  agentBindingNames,
  agentName,
  type AgentProgram,
  forgeAgentRights,
  type LaunchedAgent,
  PEERS_ACCOUNT,
} from './launched-agent.ts';

interface ObjectsOptions extends Basics {
  home: KubeClient;
  /** How long the pod may take to go before its rights are taken from it; default 12 s. */
  goneMs?: number;
}

export interface LauncherOptions extends ObjectsOptions, AgentProgram {}

const POLL_MS = 250;
const BINDINGS_AT_ONCE = 8;
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Throws Invalid where its credential is where no agent may read it. */
export function accountOf({ kubeconfigSecret, ...wanted }: WantedAgent): AccountOfAgent {
  if (kubeconfigSecret.namespace !== SYSTEM_NAMESPACE) {
    throw new TributaryError('Invalid', `kubeconfig Secrets of agents are in ${SYSTEM_NAMESPACE}`);
  }
  return {
    ...wanted,
    namespaces: [...new Set(wanted.namespaces)].toSorted(),
    virtualNodes: wanted.virtualNodes.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    kubeconfigSecret: kubeconfigSecret.name,
  };
}

/** Likewise, with its program. */
export function launchedAs(program: AgentProgram, wanted: WantedAgent): LaunchedAgent {
  const { image, priorityClassName, dns, logLevel, restoredKeepSeconds } = program;
  return {
    ...accountOf(wanted),
    image,
    ...(priorityClassName !== undefined && { priorityClassName }),
    ...(dns && { dns }),
    ...(logLevel && { logLevel }),
    ...(restoredKeepSeconds !== undefined && { restoredKeepSeconds }),
  };
}

export class AgentObjects {
  readonly #options: ObjectsOptions;

  constructor(options: ObjectsOptions) {
    this.#options = options;
  }

  async apply(manifests: readonly Manifest[], signal: AbortSignal): Promise<void> {
    await applyManifests(this.#options.home, manifests, { signal });
  }

  /** Gives those accounts what the agent may do, and takes it from all others. */
  async grant(agent: AccountOfAgent, accounts: readonly AccountRef[], signal: AbortSignal): Promise<void> {
    const names = agentBindingNames(agent.clusterID);
    const { bindings = [], rest = [] } = Object.groupBy(forgeAgentRights(agent, accounts), ({ metadata }) =>
      names.includes(metadata.name ?? '') ? 'bindings' : 'rest',
    );
    // Pods of a new namespace wait for its binding, and it may be the last of many.
    await eachAtOnce(bindings, BINDINGS_AT_ONCE, async (binding) => this.#bind(binding, signal));
    await this.apply(rest, signal);
    await this.#unbind(agent.clusterID, new Set(agent.namespaces), signal);
  }

  /** Takes all of its rights. */
  async revoke(clusterID: string, signal: AbortSignal): Promise<void> {
    await this.#unbind(clusterID, new Set(), signal);
    const metadata = { namespace: SYSTEM_NAMESPACE, name: agentName(clusterID) };
    const kinds = ['Role', 'RoleBinding'];
    await deleteManifests(
      this.#options.home,
      kinds.map((kind) => ({ apiVersion: RBAC, kind, metadata })),
      { signal },
    );
  }

  async deleteDeployment(metadata: AccountRef, signal: AbortSignal): Promise<void> {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata };
    await deleteManifests(this.#options.home, [deployment], { signal });
  }

  async deleteAccount(metadata: AccountRef, signal: AbortSignal): Promise<void> {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata };
    await deleteManifests(this.#options.home, [account], { signal });
  }

  /** The pod of one provider's own agent, then its rights unless others need them, and its account. */
  async endOwnAgent(clusterID: string, rights: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const own = agentAccount(clusterID);
    await this.deleteDeployment(own, signal);
    const selector = `${LABEL_PROVIDER}=${clusterID}`;
    const isGone = async (): Promise<boolean> => (await this.running(selector, signal)).length === 0;
    if (!(await this.until(isGone, signal))) {
      const { log } = this.#options;
      log.warn('the pod of an agent does not go; its account is taken away all the same', { clusterID });
    }
    await rights();
    await this.deleteAccount(own, signal);
  }

  /** The agent of all ends where it serves no VirtualNode. */
  async endPeersAgentUnlessUsed(signal: AbortSignal): Promise<void> {
    const { home } = this.#options;
    const labelSelector = `${LABEL_AGENT}=${AGENT_OF_ALL}`;
    const { items } = await home.list(virtualNodes, { labelSelector, signal });
    if (items.length > 0) return;
    await this.deleteDeployment(PEERS_ACCOUNT, signal);
    await this.deleteAccount(PEERS_ACCOUNT, signal);
  }

  /** Those of its VirtualNodes that the agent of all serves. */
  async sharedOf(clusterID: string, signal: AbortSignal): Promise<VirtualNode[]> {
    const all = await this.virtualNodesOf(clusterID, signal);
    return all.filter(({ metadata }) => metadata.labels?.[LABEL_AGENT] !== undefined);
  }

  async virtualNodesOf(clusterID: string, signal: AbortSignal): Promise<readonly VirtualNode[]> {
    const labelSelector = `${LABEL_PROVIDER}=${clusterID}`;
    return (await this.#options.home.list(virtualNodes, { labelSelector, signal })).items;
  }

  async hasNodes(clusterID: string, signal: AbortSignal): Promise<boolean> {
    const labelSelector = `${LABEL_PROVIDER}=${clusterID}`;
    return (await this.#options.home.list(nodes, { labelSelector, signal })).items.length > 0;
  }

  /** By its label the agent of all serves it, or leaves it to another. */
  async label(virtualNode: VirtualNode, isShared: boolean, signal: AbortSignal): Promise<void> {
    const { metadata } = virtualNode;
    const { [LABEL_AGENT]: _label, ...others } = metadata.labels ?? {};
    const labels = isShared ? { ...others, [LABEL_AGENT]: AGENT_OF_ALL } : others;
    const desired = { ...virtualNode, metadata: { ...metadata, labels } };
    await replaceIfDiffers(this.#options.home, virtualNodes, virtualNode, { desired, signal }).catch(
      ignoring('NotFound'),
    );
  }

  /** Pods of agents that may still do something. */
  async running(labelSelector: string, signal: AbortSignal): Promise<Pod[]> {
    const namespace = AGENTS_NAMESPACE;
    const { items } = await this.#options.home.list(pods, { namespace, labelSelector, signal });
    return items.filter(isRunning);
  }

  async isReady(labelSelector: string, signal: AbortSignal): Promise<boolean> {
    return (await this.running(labelSelector, signal)).some((pod) =>
      isConditionTrue(pod.status?.conditions, 'Ready'),
    );
  }

  /** Whether it came true in time. */
  async until(condition: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    const { clock, goneMs = 12_000 } = this.#options;
    const end = clock.monotonic() + goneMs;
    for (;;) {
      if (await condition()) return true;
      if (clock.monotonic() >= end) return false;
      await clock.sleep(POLL_MS, signal);
    }
  }

  /** A namespace that is about to go, or gone, is no reason not to serve the others. */
  async #bind(binding: Manifest, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    try {
      await this.apply([binding], signal);
    } catch (error) {
      if (!hasCode(error, 'NotFound', 'Forbidden')) throw error;
      const { namespace, name } = binding.metadata;
      log.warn('an agent gets no rights in a namespace', { namespace, name, error: errorMessage(error) });
    }
  }

  /** Removes its rights in namespaces that are not offloaded (any more). */
  async #unbind(clusterID: string, keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { home } = this.#options;
    const labelSelector = `${LABEL_PROVIDER}=${clusterID}`;
    const names = agentBindingNames(clusterID);
    const { items } = await home.list(roleBindings, { labelSelector, signal });
    for (const { metadata } of items) {
      const { name, namespace = '' } = metadata;
      if (!names.includes(name) || keep.has(namespace)) continue;
      await home.delete(roleBindings, { name, namespace }, { signal }).catch(ignoring('NotFound'));
    }
  }
}

/** A pod that has ended may still exist for a while; it does nothing any more. */
const isRunning = (pod: KubeObject & { status?: { phase?: string } }): boolean => !isFinished(pod);
