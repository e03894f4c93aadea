import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { isClusterID } from '../../api/forms.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { BY_IDENTITY, idOf, primaryOf } from './foreign-cluster.ts';
import { type ClusterIntent, intentOf, isKnown, type Policies } from './intent.ts';
import { type ClustersOptions, LIMITS } from './options.ts';
import { ForeignClusterReconciler } from './reconciler.ts';
import { joinTokenRef, type NamedKey, NamedSecrets, networkKeyRefs, NetworkKeys } from './secrets.ts';

export type { ClustersLimits, ClustersOptions } from './options.ts';
export { BY_IDENTITY, clusterIndexes } from './foreign-cluster.ts';

/**
 * ForeignClusters: what is wanted of each (`intent`), whom to dial, and what people see. `intent` answers from caches at
 * any time; the objects are kept by the controller in `components()`.
 */
export class Clusters {
  readonly #options: ClustersOptions;
  readonly #secrets: NamedSecrets;
  readonly #keys: NetworkKeys;
  readonly #keeper: ForeignClusterReconciler;
  readonly #listeners = new Set<(clusterID: string) => void>();
  readonly #keyListeners = new Set<() => void>();
  readonly #unsubscribes: (() => void)[] = [];

  constructor(options: ClustersOptions) {
    const { client, clock, metrics, systemNamespace: namespace, limits } = options;
    const log = options.log.named('clusters');
    this.#options = options;
    this.#secrets = new NamedSecrets({
      client,
      clock,
      log,
      namespace,
      wanted: () => this.#secretNames(),
      ...(metrics && { metrics }),
    });
    this.#keys = new NetworkKeys((ref) => this.#secrets.value(ref), log);
    this.#keeper = new ForeignClusterReconciler({
      ...options,
      log,
      limits: { ...LIMITS, ...limits },
      policies: () => this.#policies(),
      intent: (clusterID) => this.intent(clusterID),
    });
  }

  /** What `intent` looks at; started before those who ask it. */
  caches(): Component[] {
    const follow: Component = {
      name: 'intents',
      start: async (signal) => {
        signal.throwIfAborted();
        this.#follow();
        await Promise.resolve();
      },
      stop: async () => {
        for (const unsubscribe of this.#unsubscribes.splice(0)) unsubscribe();
        await Promise.resolve();
      },
    };
    return [follow, ...this.#secrets.components()];
  }

  /** Keeps the objects and says whom to dial; started after links, lending and borrowing, whose word it takes. */
  components(): Component[] {
    return this.#keeper.components();
  }

  /** What is wanted of a cluster, now; from caches. */
  intent(clusterID: string): ClusterIntent {
    const { clusters, clock } = this.#options;
    const known = clusters.byIndex(BY_IDENTITY, clusterID);
    return intentOf({
      clusterID,
      clusters: known,
      view: this.#options.links().view(clusterID),
      policies: this.#policies(),
      joinToken: this.#joinToken(clusterID, primaryOf(known)),
      now: clock.now(),
    });
  }

  /** Whether we deal with it, or it is one of the strangers. */
  isAcquainted(clusterID: string): boolean {
    const { outgoing, incoming } = this.#options;
    const reports = [outgoing().report(clusterID), incoming().report(clusterID)];
    return isKnown(this.intent(clusterID), reports);
  }

  /** Calls back with each ClusterID whose intent may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The network keys that policies refer to, as far as they are there. */
  networkKeys(): readonly NamedKey[] {
    const { acceptance, sharing } = this.#options;
    return this.#keys.read(networkKeyRefs([...acceptance.list(), ...sharing.list()]));
  }

  /** Throws Invalid where the network key that the policy refers to is missing or unfit: it then means nobody. */
  checkNetworkKey(policy: Pick<AcceptancePolicy | SharingPolicy, 'spec'>): void {
    const refs = networkKeyRefs([policy]);
    this.networkKeys();
    for (const name of refs.keys()) this.#keys.check(name);
  }

  /** Calls back when `networkKeys` may answer something else. */
  onNetworkKeys(listener: () => void): () => void {
    this.#keyListeners.add(listener);
    return () => this.#keyListeners.delete(listener);
  }

  #policies(): Policies {
    const { acceptance, sharing } = this.#options;
    return { acceptance: acceptance.list(), sharing: sharing.list() };
  }

  /** One that is another cluster's is worth something there, and is not shown to this one. */
  #joinToken(clusterID: string, cluster: ForeignCluster | undefined): string | undefined {
    const ref = cluster?.spec?.joinTokenSecretRef;
    const text = ref === undefined ? '' : (this.#secrets.value(joinTokenRef(ref))?.toString('utf8') ?? '');
    const [of = ''] = text.trim().split('.');
    return text.trim() === '' || (isClusterID(of) && of !== clusterID) ? undefined : text.trim();
  }

  #secretNames(): Set<string> {
    const { acceptance, sharing, clusters } = this.#options;
    const keys = networkKeyRefs([...acceptance.list(), ...sharing.list()]).values();
    const tokens = [...clusters.list()].flatMap(({ spec }) => spec?.joinTokenSecretRef ?? []);
    return new Set([...keys, ...tokens].map(({ name }) => name));
  }

  #follow(): void {
    const { clusters, acceptance, sharing, links } = this.#options;
    const onPolicy = (_key: string, current?: object, previous?: object): void => {
      // A status that others write is none of our business.
      if (deepEqual(specOf(current), specOf(previous))) return;
      this.#secrets.refresh();
      for (const cluster of clusters.list()) this.#tell(idOf(cluster));
      for (const { clusterID } of links().views()) this.#tell(clusterID);
      for (const listener of this.#keyListeners) listener();
      this.#keeper.policiesChanged();
    };
    this.#unsubscribes.push(
      clusters.onChange((_key, current, previous) => this.#onCluster(current, previous)),
      acceptance.onChange(onPolicy),
      sharing.onChange(onPolicy),
      this.#secrets.onChange((name) => this.#onSecret(name)),
      links().onChange(({ clusterID }) => this.#tell(clusterID)),
    );
  }

  #onCluster(current: ForeignCluster | undefined, previous: ForeignCluster | undefined): void {
    if (deepEqual(relevant(current), relevant(previous))) return;
    const refs = [current, previous].map((cluster) => cluster?.spec?.joinTokenSecretRef?.name);
    if (refs[0] !== refs[1]) this.#secrets.refresh();
    for (const cluster of [current, previous]) if (cluster !== undefined) this.#tell(idOf(cluster));
  }

  #onSecret(name: string): void {
    for (const cluster of this.#options.clusters.list()) {
      if (cluster.spec?.joinTokenSecretRef?.name === name) this.#tell(idOf(cluster));
    }
    for (const listener of this.#keyListeners) listener();
  }

  #tell(clusterID: string | undefined): void {
    if (clusterID === undefined) return;
    for (const listener of this.#listeners) listener(clusterID);
  }
}

const specOf = (object: object | undefined): unknown => {
  const { spec, metadata } = (object ?? {}) as { spec?: unknown; metadata?: { deletionTimestamp?: string } };
  return { spec, deleted: metadata?.deletionTimestamp };
};

/** What of an object a intent is made of. */
function relevant(cluster: ForeignCluster | undefined): unknown {
  if (cluster === undefined) return undefined;
  const { metadata, spec, status = {} } = cluster;
  const { uid, labels, annotations, deletionTimestamp } = metadata;
  const { foundBy, standing, sightings = {} } = status;
  const sources = Object.keys(sightings).toSorted((a, b) => (a < b ? -1 : 1));
  return { uid, labels, annotations, deletionTimestamp, spec, foundBy, standing, sources };
}
