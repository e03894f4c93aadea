import { ADVERTISEMENT_REASONS } from '../../api/advertisement.ts';
import { ANNOTATION_RENEW } from '../../api/names.ts';
import { secrets } from '../../api/resources.ts';
import { VIRTUAL_NODE_CONDITIONS, VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { KubeClient } from '../../kube/client.ts';
import { replaceIfDiffers } from '../../kube/write.ts';
import type { AccessKeeper, AccessState } from './access.ts';
import type { AgentSetup } from './agent-setup.ts';
import type { BorrowingCaches } from './caches.ts';
import type { CredentialKeeper, CredentialState } from './credentials.ts';
import type { NodeSetup } from './node-setup.ts';
import { secretName } from './names.ts';
import { usedNamespaces } from './wanted.ts';
import { type Access, type StoredAccess, forgeSecret, readSecret } from './secret.ts';
import type { Progress } from './status.ts';
import { type Work, hasReason } from './work.ts';

export interface SetupOptions {
  client: KubeClient;
  caches: BorrowingCaches;
  access: AccessKeeper;
  credentials: CredentialKeeper;
  nodes: NodeSetup;
  agents: AgentSetup;
  systemNamespace: string;
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

/** From a contract to a virtual node: credential, Secret, VirtualNodes, agent; each made right where it differs. */
export class Setup {
  readonly #options: SetupOptions;

  constructor(options: SetupOptions) {
    this.#options = options;
  }

  /** As far as it can be done now. `tell` hears how far that was, also where a later step fails. */
  async run(work: Work, tell: (progress: Progress, again: Again) => void): Promise<void> {
    const { nodes } = this.#options;
    const { advertisement, course, ours } = work;
    // Begun first: asking takes a while.
    const access = this.#access(work);
    const credential = this.#credential(work);
    const plans = nodes.plans(work);
    const existing = ours.map(({ metadata }) => metadata.name);
    const wanted = plans?.map(({ name }) => name) ?? existing;
    const names = [...new Set([...wanted, ...existing])];
    const again = { ...(credential.renewAtMs !== undefined && { atMs: credential.renewAtMs }) };
    let progress: Progress = {
      names,
      nodes: nodes.state(work, wanted),
      ...told(access, credential),
      ...this.#way(work.clusterID, access.access),
    };
    tell(progress, again);
    const { virtualNodes: recorded = [], contract } = advertisement.status ?? {};
    // What is about to be made is written down first.
    const isRecorded = wanted.every((name) => recorded.includes(name));
    if (!isRecorded || course.contract.providerSignature !== contract?.providerSignature) return;
    const stored = await this.#secret(work, access, credential);
    if (stored === undefined) return;
    progress = {
      ...progress,
      ...this.#way(work.clusterID, stored.access),
      credentialExpiresMs: stored.credential.expiresMs,
    };
    tell(progress, again);
    const inMs = plans === undefined ? undefined : await nodes.apply(work, plans);
    if (names.length > 0) await this.#agent(work, names);
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

  #access({ clusterID, facts, ours }: Work): AccessState {
    const { grant } = facts.heard;
    return this.#options.access.want(clusterID, {
      api: grant?.state === 'Active' ? grant.api : undefined,
      stored: this.#stored(clusterID)?.access,
      failing: ours.some((node) =>
        hasReason(node, VIRTUAL_NODE_CONDITIONS.reachable, VIRTUAL_NODE_REASONS.unreachable),
      ),
    });
  }

  #credential({ clusterID, ours, advertisement }: Work): CredentialState {
    const rejected = ours.some((node) =>
      hasReason(node, VIRTUAL_NODE_CONDITIONS.credentials, VIRTUAL_NODE_REASONS.credentialsRejected),
    );
    const renewal = advertisement.metadata.annotations?.[ANNOTATION_RENEW];
    const why = { rejected, ...(renewal !== undefined && { renewal }) };
    return this.#options.credentials.want(clusterID, this.#stored(clusterID)?.credential, why);
  }

  /** Written where it differs; what it holds then. */
  async #secret(
    { clusterID, signal }: Work,
    { access }: AccessState,
    { held }: CredentialState,
  ): Promise<StoredAccess | undefined> {
    const { client, caches, systemNamespace } = this.#options;
    const current = caches.secretOf(clusterID);
    const stored = this.#stored(clusterID);
    const way = access ?? stored?.access;
    if (way === undefined || held === undefined) return stored;
    const next = { access: way, credential: held };
    const desired = forgeSecret(clusterID, systemNamespace, next);
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

  async #agent(work: Work, names: readonly string[]): Promise<void> {
    const { agents, systemNamespace } = this.#options;
    const { clusterID, course, ours, facts, signal } = work;
    // While a newer contract waits, what the VirtualNodes say is what holds.
    const offered = course.terms?.namespaces ?? ours[0]?.spec.namespaces ?? [];
    await agents.ensure(
      {
        clusterID,
        virtualNodes: names.toSorted().map((name) => ({ name, nodeName: name })),
        namespaces: usedNamespaces(offered, facts.wanted)
          .map(({ homeNamespace }) => homeNamespace)
          .toSorted(),
        kubeconfigSecret: { namespace: systemNamespace, name: secretName(clusterID) },
      },
      signal,
    );
  }
}

function told(
  { access, problem }: AccessState,
  { held, problem: noToken }: CredentialState,
): Partial<Progress> {
  const { noLink, unreachable } = ADVERTISEMENT_REASONS;
  const noHold =
    held === undefined && noToken !== undefined ? { reason: noLink, message: noToken } : undefined;
  const noWay =
    access === undefined && problem !== undefined ? { reason: unreachable, message: problem } : undefined;
  const obstacle = noHold ?? noWay;
  return {
    ...(held && { credentialExpiresMs: held.expiresMs }),
    ...(obstacle && { obstacle }),
  };
}
