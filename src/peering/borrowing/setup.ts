import { ADVERTISEMENT_REASONS } from '../../api/advertisement.ts';
import { ANNOTATION_RENEW } from '../../api/names.ts';
import { secrets } from '../../api/resources.ts';
import { VIRTUAL_NODE_CONDITIONS, VIRTUAL_NODE_REASONS, type VirtualNode } from '../../api/virtual-node.ts';
import type { KubeClient } from '../../kube/client.ts';
import { replaceIfDiffers } from '../../kube/write.ts';
import type { Basics } from '../../lib/basics.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { ProxySettings } from '../../lib/proxy.ts';
import type { AgentLauncher, WantedAgent } from '../ports.ts';
import type { AccessFinder, AccessState } from './access.ts';
import type { BorrowingCaches } from './caches.ts';
import type { CredentialRenewer, CredentialState } from './credentials.ts';
import type { ActiveProvider } from './facts.ts';
import { usedNamespaces } from './namespaces.ts';
import type { NodeSetup } from './node-setup.ts';
import { type Access, forgeSecret, readSecret, secretName, type StoredAccess } from './secret.ts';
import type { Progress } from './status.ts';

interface SetupOptions {
  client: KubeClient;
  caches: BorrowingCaches;
  access: AccessFinder;
  credentials: CredentialRenewer;
  nodes: NodeSetup;
  agents: AgentSetup;
  systemNamespace: string;
  /** Through which agents reach API servers of providers. */
  proxies?: ProxySettings;
  /** How the last stream to that provider was made. */
  wayTo?: (clusterID: string) => 'Link' | 'DialBack' | undefined;
}

/** When to look again, besides every change. */
export interface Again {
  /** Milliseconds from now. */
  inMs?: number;
  /** Milliseconds since the epoch. */
  atMs?: number;
}

/** From a contract to a virtual node: credential, Secret, VirtualNodes, agent. Each is corrected where it differs. */
export class Setup {
  readonly #options: SetupOptions;

  constructor(options: SetupOptions) {
    this.#options = options;
  }

  /** Does what can be done now. `tell` is called with the progress, also before a later step fails. */
  async run(provider: ActiveProvider, tell: (progress: Progress, again: Again) => void): Promise<void> {
    const { nodes } = this.#options;
    const { advertisement, step, ours } = provider;
    // These begin first, since asking takes a while.
    const access = this.#access(provider);
    const credential = this.#credential(provider);
    const plans = nodes.plans(provider);
    const existing = ours.map(({ metadata }) => metadata.name);
    const wanted = plans?.map(({ name }) => name) ?? existing;
    const names = [...new Set([...wanted, ...existing])];
    const again = { ...(credential.renewAtMs !== undefined && { atMs: credential.renewAtMs }) };
    let progress: Progress = {
      names,
      nodes: nodes.state(provider, wanted),
      ...told(access, credential),
      ...this.#way(provider.clusterID, access.access),
    };
    tell(progress, again);
    const { virtualNodes: recorded = [], contract } = advertisement.status ?? {};
    // What is about to be made is recorded first.
    const isRecorded = wanted.every((name) => recorded.includes(name));
    if (!isRecorded || step.contract.providerSignature !== contract?.providerSignature) return;
    const stored = await this.#secret(provider, access, credential);
    if (stored === undefined) return;
    progress = {
      ...progress,
      ...this.#way(provider.clusterID, stored.access),
      credentialExpiresMs: stored.credential.expiresMs,
    };
    tell(progress, again);
    const inMs = plans === undefined ? undefined : await nodes.apply(provider, plans);
    if (names.length > 0) await this.#agent(provider, names);
    tell(progress, { ...again, ...(inMs !== undefined && { inMs }) });
  }

  #way(clusterID: string, access: Access | undefined): Pick<Progress, 'access'> {
    if (access === undefined) return {};
    return { access: access.how === 'Direct' ? 'Direct' : (this.#options.wayTo?.(clusterID) ?? 'Link') };
  }

  #stored(clusterID: string): StoredAccess | undefined {
    const secret = this.#options.caches.secretOf(clusterID);
    return secret === undefined ? undefined : readSecret(secret);
  }

  #access({ clusterID, facts, ours }: ActiveProvider): AccessState {
    const { grant } = facts.received;
    return this.#options.access.want(clusterID, {
      api: grant?.state === 'Active' ? grant.api : undefined,
      stored: this.#stored(clusterID)?.access,
      failing: ours.some((node) =>
        hasReason(node, VIRTUAL_NODE_CONDITIONS.reachable, VIRTUAL_NODE_REASONS.unreachable),
      ),
    });
  }

  #credential({ clusterID, ours, advertisement }: ActiveProvider): CredentialState {
    const rejected = ours.some((node) =>
      hasReason(node, VIRTUAL_NODE_CONDITIONS.credentials, VIRTUAL_NODE_REASONS.credentialsRejected),
    );
    const renewal = advertisement.metadata.annotations?.[ANNOTATION_RENEW];
    const why = { rejected, ...(renewal !== undefined && { renewal }) };
    return this.#options.credentials.want(clusterID, this.#stored(clusterID)?.credential, why);
  }

  /** Writes the Secret where it differs. Returns what it holds then. */
  async #secret(
    { clusterID, signal }: ActiveProvider,
    { access }: AccessState,
    { held }: CredentialState,
  ): Promise<StoredAccess | undefined> {
    const { client, caches, systemNamespace, proxies } = this.#options;
    const current = caches.secretOf(clusterID);
    const stored = this.#stored(clusterID);
    const way = access ?? stored?.access;
    if (way === undefined || held === undefined) return stored;
    const next = { access: way, credential: held };
    const desired = forgeSecret(clusterID, systemNamespace, next, proxies);
    if (current === undefined) {
      await client.create(secrets, desired, { signal });
      return next;
    }
    const metadata = {
      ...current.metadata,
      labels: { ...current.metadata.labels, ...desired.metadata.labels },
      annotations: { ...current.metadata.annotations, ...desired.metadata.annotations },
    };
    const merged = { ...current, metadata, ...(desired.data && { data: desired.data }) };
    await replaceIfDiffers(client, secrets, current, { desired: merged, signal });
    return next;
  }

  async #agent(provider: ActiveProvider, names: readonly string[]): Promise<void> {
    const { agents, systemNamespace } = this.#options;
    const { clusterID, step, ours, facts, signal } = provider;
    // While a newer contract waits, the VirtualNodes say what is in force.
    const offered = step.terms?.namespaces ?? ours[0]?.spec.namespaces ?? [];
    await agents.ensure(
      {
        clusterID,
        virtualNodes: names.toSorted().map((name) => ({ name, nodeName: name })),
        namespaces: usedNamespaces(offered, facts.desired)
          .map(({ homeNamespace }) => homeNamespace)
          .toSorted(),
        kubeconfigSecret: { namespace: systemNamespace, name: secretName(clusterID) },
      },
      signal,
    );
  }
}

const hasReason = ({ status }: VirtualNode, type: string, reason: string): boolean =>
  status?.conditions?.some((one) => one.type === type && one.status === 'False' && one.reason === reason) ??
  false;

function told(
  { access, problem }: AccessState,
  { held, problem: noToken }: CredentialState,
): Partial<Progress> {
  const { noLink, unreachable } = ADVERTISEMENT_REASONS;
  if (held === undefined && noToken !== undefined) return { obstacle: { reason: noLink, message: noToken } };
  return {
    ...(held && { credentialExpiresMs: held.expiresMs }),
    ...(!access && problem !== undefined && { obstacle: { reason: unreachable, message: problem } }),
  };
}

interface AgentSetupOptions extends Basics {
  launcher: AgentLauncher;
}

/** How often the agent's objects are looked at where nothing differs. */
const ENSURE_INTERVAL_MS = 60_000;
const LAUNCH_TIMEOUT_MS = 20_000;

/** Starts and removes the agents of providers. */
export class AgentSetup {
  readonly #options: AgentSetupOptions;
  /** Spares a question at every look. */
  readonly #ensured = new Map<string, { agent: WantedAgent; at: number }>();

  constructor(options: AgentSetupOptions) {
    this.#options = options;
  }

  async ensure(agent: WantedAgent, signal: AbortSignal): Promise<void> {
    const { launcher, clock } = this.#options;
    const before = this.#ensured.get(agent.clusterID);
    const isFresh = before !== undefined && clock.monotonic() - before.at < ENSURE_INTERVAL_MS;
    if (isFresh && deepEqual(before.agent, agent)) return;
    const what = `starting the agent of ${agent.clusterID}`;
    using deadline = startDeadline(clock, LAUNCH_TIMEOUT_MS, what, signal);
    await launcher.ensure(agent, deadline.signal);
    this.#ensured.set(agent.clusterID, { agent, at: clock.monotonic() });
  }

  /** An agent that does not end in time (its machine is dead, say) does not hold up the rest. */
  async remove(clusterID: string, signal: AbortSignal): Promise<void> {
    const { launcher, clock, log } = this.#options;
    this.#ensured.delete(clusterID);
    using deadline = startDeadline(clock, LAUNCH_TIMEOUT_MS, `ending the agent of ${clusterID}`, signal);
    try {
      await launcher.remove(clusterID, deadline.signal);
    } catch (error) {
      if (signal.aborted || !(deadline.signal.aborted || hasCode(error, 'Aborted'))) throw error;
      log.warn('the agent did not end in time', { peer: clusterID, error: errorMessage(error) });
    }
  }
}
