import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { isClusterID } from '../../api/forms.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { deepEqual } from '../../lib/equality.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { BY_IDENTITY, idOf, primaryOf } from './foreign-cluster.ts';
import { type ClusterIntent, intentOf, isKnown, type Policies } from './intent.ts';
import { type ClustersOptions, LIMITS } from './options.ts';
import { ForeignClusterReconciler } from './reconciler.ts';
import { joinTokenRef, type NamedKey, networkKeyRefs, NetworkKeys, ReferencedSecrets } from './secrets.ts';

export type { ClustersLimits, ClustersOptions } from './options.ts';
export { BY_IDENTITY, clusterIndexes } from './foreign-cluster.ts';

/**
 * ForeignClusters: what is wanted of each (`intent`), whom to dial, and what people see. `intent` answers from caches at
 * any time; the controller in `components()` writes the objects.
 */
export class Clusters {
  readonly #options: ClustersOptions;
  readonly #secrets: ReferencedSecrets;
  readonly #keys: NetworkKeys;
  readonly #reconciler: ForeignClusterReconciler;
  readonly #changed = new Listeners<[clusterID: string]>();
  /**
   * Calls back with each ClusterID whose intent may have changed; the returned function ends that. It does not call for
   * a SharingPolicy: lending follows these policies itself, and nobody else reads them from an intent.
   */
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#changed.add;
  readonly #keysChanged = new Listeners();
  /** Calls back when the answer of `networkKeys` may have changed. */
  readonly onNetworkKeys: Listeners['add'] = this.#keysChanged.add;

  constructor(options: ClustersOptions) {
    const { client, clock, metrics, systemNamespace: namespace, limits } = options;
    const log = options.log.named('clusters');
    this.#options = options;
    this.#secrets = new ReferencedSecrets({
      client,
      clock,
      log,
      namespace,
      wanted: () => this.#secretNames(),
      ...(metrics && { metrics }),
    });
    this.#keys = new NetworkKeys((ref) => this.#secrets.value(ref), log);
    this.#reconciler = new ForeignClusterReconciler({
      ...options,
      log,
      limits: { ...LIMITS, ...limits },
      policies: () => this.#policies(),
      intent: (clusterID) => this.intent(clusterID),
    });
  }

  /** What `intent` looks at; started before those who ask it. */
  caches(): Component[] {
    return [subscribing('intents', () => this.#follow()), ...this.#secrets.components()];
  }

  /** Writes the objects and says whom to dial; started after links, lending and borrowing, which it asks. */
  components(): Component[] {
    return this.#reconciler.components();
  }

  /** What is wanted of a cluster, now; from caches. */
  intent(clusterID: string): ClusterIntent {
    const { clusters, clock, ties } = this.#options;
    const known = clusters.byIndex(BY_IDENTITY, clusterID);
    return intentOf({
      clusterID,
      clusters: known,
      view: this.#options.links().view(clusterID),
      policies: this.#policies(),
      joinToken: this.#joinToken(clusterID, primaryOf(known)),
      ...(ties && { ties: ties(clusterID) }),
      now: clock.now(),
    });
  }

  /** To be called when `ties` may answer something else about that cluster; without one, about any. */
  tiesChanged(clusterID?: string): void {
    if (clusterID === undefined) {
      this.#tellAll();
      this.#reconciler.policiesChanged();
    } else {
      this.#tell(clusterID);
      this.#reconciler.peerChanged(clusterID);
    }
  }

  /** Whether we deal with that cluster; otherwise it is a stranger. */
  isKnown(clusterID: string): boolean {
    const { outgoing, incoming } = this.#options;
    const reports = [outgoing().report(clusterID), incoming().report(clusterID)];
    return isKnown(this.intent(clusterID), reports);
  }

  /** The network keys that policies refer to and that are there. */
  networkKeys(): readonly NamedKey[] {
    const { acceptance, sharing } = this.#options;
    return this.#keys.read(networkKeyRefs([...acceptance.list(), ...sharing.list()]));
  }

  /** Throws Invalid where the network key that the policy refers to is missing or unfit: the policy then selects nobody. */
  checkNetworkKey(policy: Pick<AcceptancePolicy | SharingPolicy, 'spec'>): void {
    const refs = networkKeyRefs([policy]);
    this.networkKeys();
    for (const name of refs.keys()) this.#keys.check(name);
  }

  #policies(): Policies {
    const { acceptance, sharing } = this.#options;
    return { acceptance: acceptance.list(), sharing: sharing.list() };
  }

  /** A token of another cluster is worth something there, so it is not shown to this one. */
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

  #follow(): (() => void)[] {
    const { clusters, acceptance, sharing, links } = this.#options;
    return [
      clusters.onChange((_key, current, previous) => this.#onCluster(current, previous)),
      acceptance.onChange((_key, current, previous) => {
        this.#onPolicy(current, previous, () => this.#tellAll());
      }),
      sharing.onChange((_key, current, previous) => this.#onPolicy(current, previous)),
      this.#secrets.onChange((name) => this.#onSecret(name)),
      links().onChange(({ clusterID }) => this.#tell(clusterID)),
    ];
  }

  #onPolicy(
    current: object | undefined,
    previous: object | undefined,
    tell: () => void = () => undefined,
  ): void {
    // Others write the status; it does not matter here.
    if (deepEqual(specOf(current), specOf(previous))) return;
    this.#secrets.refresh();
    tell();
    this.#keysChanged.tell();
    this.#reconciler.policiesChanged();
  }

  #tellAll(): void {
    const { clusters, links } = this.#options;
    for (const cluster of clusters.list()) this.#tell(idOf(cluster));
    for (const { clusterID } of links().views()) this.#tell(clusterID);
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
    this.#keysChanged.tell();
  }

  #tell(clusterID: string | undefined): void {
    if (clusterID !== undefined) this.#changed.tell(clusterID);
  }
}

const specOf = (object: object | undefined): unknown => {
  const { spec, metadata } = (object ?? {}) as { spec?: unknown; metadata?: { deletionTimestamp?: string } };
  return { spec, deleted: metadata?.deletionTimestamp };
};

/** The parts of an object from which an intent is made. */
function relevant(cluster: ForeignCluster | undefined): unknown {
  if (cluster === undefined) return undefined;
  const { metadata, spec, status = {} } = cluster;
  const { uid, labels, annotations, deletionTimestamp } = metadata;
  const { foundBy, standing, sightings = {} } = status;
  const sources = Object.keys(sightings).toSorted((a, b) => (a < b ? -1 : 1));
  return { uid, labels, annotations, deletionTimestamp, spec, foundBy, standing, sources };
}
