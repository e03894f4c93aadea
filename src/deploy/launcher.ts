import { AGENTS_NAMESPACE, type Manifest, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { LABEL_PROVIDER } from '../api/names.ts';
import { isFinished } from '../api/pod.ts';
import { pods, roleBindings } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { applyManifests, deleteManifests } from '../kube/apply.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Basics } from '../lib/basics.ts';
import { eachAtOnce } from '../lib/each-at-once.ts';
import { errorMessage, hasCode, ignoring, TributaryError } from '../lib/errors.ts';
import type { AgentLauncher, WantedAgent } from '../peering/ports.ts';
import { agentBindingNames, agentName, forgeLaunchedAgent, type LaunchedAgent } from './launched-agent.ts';

interface PodLauncherOptions extends Basics {
  home: KubeClient;
  image: string;
  priorityClassName?: string;
  dns?: LaunchedAgent['dns'];
  /** With which agents start. */
  logLevel?: LaunchedAgent['logLevel'];
  restoredKeepSeconds?: number;
  /** How long the pod may take to go before its rights are taken from it; default 12 s. */
  goneMs?: number;
}

const POLL_MS = 250;
const BINDINGS_AT_ONCE = 8;

/**
 * Runs agents as Deployments in `tributary-agents`, each under an account of its own. What it may do there, and what
 * such an account may do, is in agents.ts; this only fills in names.
 */
export class PodLauncher implements AgentLauncher {
  readonly #options: PodLauncherOptions;

  constructor(options: PodLauncherOptions) {
    this.#options = options;
  }

  async ensure(wanted: WantedAgent, signal: AbortSignal): Promise<void> {
    const { home } = this.#options;
    const names = agentBindingNames(wanted.clusterID);
    const { bindings = [], rest = [] } = Object.groupBy(
      forgeLaunchedAgent(this.#launched(wanted)),
      ({ metadata }) => (names.includes(metadata.name ?? '') ? 'bindings' : 'rest'),
    );
    // Pods of a new namespace wait for its binding, and it may be the last of many.
    await eachAtOnce(bindings, BINDINGS_AT_ONCE, async (binding) => this.#bind(binding, signal));
    await applyManifests(home, rest, { signal });
    await this.#unbind(wanted.clusterID, new Set(wanted.namespaces), signal);
  }

  /** First removes the pod, so that it can still write at its end; then its rights. */
  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    const { home, log } = this.#options;
    const name = agentName(clusterID);
    const own = { namespace: AGENTS_NAMESPACE, name };
    const bound = { namespace: SYSTEM_NAMESPACE, name };
    const rbac = 'rbac.authorization.k8s.io/v1';
    await deleteManifests(home, [{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: own }], { signal });
    if (!(await this.#untilGone(clusterID, signal))) {
      log.warn('the pod of an agent does not go; its account is taken away all the same', { clusterID });
    }
    await this.#unbind(clusterID, new Set(), signal);
    await deleteManifests(
      home,
      [
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: own },
        { apiVersion: rbac, kind: 'Role', metadata: bound },
        { apiVersion: rbac, kind: 'RoleBinding', metadata: bound },
      ],
      { signal },
    );
  }

  #launched({ kubeconfigSecret, ...wanted }: WantedAgent): LaunchedAgent {
    const { image, priorityClassName, dns, logLevel, restoredKeepSeconds } = this.#options;
    if (kubeconfigSecret.namespace !== SYSTEM_NAMESPACE) {
      throw new TributaryError('Invalid', `kubeconfig Secrets of agents are in ${SYSTEM_NAMESPACE}`);
    }
    return {
      ...wanted,
      namespaces: [...new Set(wanted.namespaces)].toSorted(),
      virtualNodes: wanted.virtualNodes.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      kubeconfigSecret: kubeconfigSecret.name,
      image,
      ...(priorityClassName !== undefined && { priorityClassName }),
      ...(dns && { dns }),
      ...(logLevel && { logLevel }),
      ...(restoredKeepSeconds !== undefined && { restoredKeepSeconds }),
    };
  }

  /** A namespace that is about to go, or gone, is no reason not to serve the others. */
  async #bind(binding: Manifest, signal: AbortSignal): Promise<void> {
    const { home, log } = this.#options;
    try {
      await applyManifests(home, [binding], { signal });
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

  async #untilGone(clusterID: string, signal: AbortSignal): Promise<boolean> {
    const { home, clock, goneMs = 12_000 } = this.#options;
    const end = clock.monotonic() + goneMs;
    const labelSelector = `${LABEL_PROVIDER}=${clusterID}`;
    for (;;) {
      const { items } = await home.list(pods, { namespace: AGENTS_NAMESPACE, labelSelector, signal });
      if (!items.some(isRunning)) return true;
      if (clock.monotonic() >= end) return false;
      await clock.sleep(POLL_MS, signal);
    }
  }
}

/** A pod that has ended may still exist for a while; it does nothing any more. */
const isRunning = (pod: KubeObject & { status?: { phase?: string } }): boolean => !isFinished(pod);
