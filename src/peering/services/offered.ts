import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { sharingPolicies, type SharingPolicy } from '../../api/sharing-policy.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import type { AddressPort } from '../../api/tunnel.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { Debounce } from '../../lib/debounce.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners, Subscriptions } from '../../lib/listeners.ts';
import type { Documents } from '../protocol/documents.ts';
import { NamespaceCaches } from './namespace-caches.ts';
import { type Offering, offeringOf } from './offering.ts';
import type { Lent, OwnPods } from './ports.ts';

export interface OfferedServicesOptions extends ClusterBasics {
  caches: Caches;
  events: EventRecorder;
  lent: Lent;
  ownPods: OwnPods;
  /** All namespaces. */
  namespaces: Pick<Cache<KubeObject>, 'get' | 'onChange' | 'synced'>;
}

/** A rollout changes endpoints many times in a second, and each message to a peer holds all Services. */
const INTERVAL_MS = 500;
/** Services that cannot be read after this time are not offered. */
const PATIENCE_MS = 30_000;
const MAX_TOLD = 5;

/** We as provider: which of our Services each peer is offered, as policies, Services and endpoints are now. */
export class OfferedServices {
  readonly #options: OfferedServicesOptions;
  readonly #policies: Cache<SharingPolicy>;
  readonly #caches: NamespaceCaches;
  readonly #changes: Debounce;
  readonly #offerings = new Map<string, Offering>();
  readonly #changed = new Listeners<[clusterID: string]>();
  /** Calls back when what a peer is offered has changed; the returned function ends that. */
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#changed.add;
  readonly #complaints = new Map<string, string>();
  #isReady = false;

  constructor(options: OfferedServicesOptions) {
    this.#options = options;
    const { client, caches, clock, log } = options;
    const common = { client, clock, log };
    this.#policies = caches.of(sharingPolicies);
    this.#changes = new Debounce({ clock, intervalMs: INTERVAL_MS, callsAtOnce: true }, () =>
      this.#lookAtAll(),
    );
    this.#caches = new NamespaceCaches({ ...common, changed: () => this.#changes.trigger() });
  }

  /** In the order of their start. After it, what is offered is known. */
  components(): Component[] {
    return [this.#policies, this.#watching()];
  }

  documents(clusterID: string): Pick<Documents, 'services'> {
    const services = this.#offerings.get(clusterID)?.services ?? [];
    return services.length === 0 ? {} : { services: { services } };
  }

  /** What that peer may reach; undefined: not known yet. */
  open(clusterID: string): readonly AddressPort[] | undefined {
    return this.#isReady ? (this.#offerings.get(clusterID)?.open ?? []) : undefined;
  }

  #watching(): Component {
    const subscriptions = new Subscriptions();
    return {
      name: 'offered services',
      start: async (signal) => {
        const { lent, ownPods, namespaces, clock } = this.#options;
        subscriptions.add(
          this.#policies.onChange((_key, current, previous) => {
            if (!deepEqual(current?.spec.services, previous?.spec.services)) void this.#watch();
            this.#changes.trigger();
          }),
          lent.onChange((clusterID) => this.#look(clusterID)),
          ownPods.onChange((clusterID) => this.#look(clusterID)),
          namespaces.onChange((_key, current, previous) => {
            if (peerOf(current) !== peerOf(previous)) this.#changes.trigger();
          }),
        );
        // What is not known yet must not be taken back from peers, but what is never read must not hold up the rest.
        const patience = new AbortController();
        const late = clock.sleep(PATIENCE_MS, AbortSignal.any([signal, patience.signal]));
        await Promise.race([this.#watch(), late.catch(() => undefined)]);
        patience.abort();
        signal.throwIfAborted();
        this.#isReady = true;
        this.#lookAtAll();
      },
      stop: async () => {
        subscriptions.end();
        this.#changes.stop();
        await this.#caches.stop();
      },
    };
  }

  async #watch(): Promise<void> {
    const entries = [...this.#policies.list()].flatMap(({ spec }) => spec.services ?? []);
    const named = new Set(entries.map(({ namespace }) => namespace));
    await this.#caches.watch(new Set([...named].filter((namespace) => !isClusterNamespace(namespace))));
  }

  #lookAtAll(): void {
    for (const clusterID of new Set([...this.#options.lent.peers(), ...this.#offerings.keys()])) {
      this.#look(clusterID);
    }
  }

  #look(clusterID: string): void {
    if (!this.#isReady) return;
    const { lent, ownPods } = this.#options;
    const policy = lent.policyOf(clusterID);
    const pods = ownPods.podsFor(clusterID);
    // Without a gateway nothing is reached, so what was said before may stay.
    if (policy !== undefined && pods === undefined) return;
    const before = this.#offerings.get(clusterID);
    const now = policy && offeringOf(this.#facts(policy, pods ?? []));
    if (now === undefined) this.#offerings.delete(clusterID);
    else this.#offerings.set(clusterID, now);
    if (policy !== undefined) this.#complain(policy, now?.leftOut ?? []);
    if (deepEqual(saidOf(now), saidOf(before))) return;
    this.#changed.tell(clusterID);
  }

  #facts({ spec }: SharingPolicy, pods: readonly string[]): Parameters<typeof offeringOf>[0] {
    const { namespaces } = this.#options;
    return {
      // A peer that may reach no pod would be offered names without endpoints.
      entries: pods.length === 0 ? [] : (spec.services ?? []),
      pods,
      isClosed: (namespace) =>
        isClusterNamespace(namespace) || peerOf(namespaces.get(namespace)) !== undefined,
      services: (namespace) => (this.#caches.isSynced(namespace) ? this.#caches.services(namespace) : []),
      slices: (namespace, service) => this.#caches.slices(namespace, service),
    };
  }

  /** Tells once for each policy, not for each peer that it decides about. */
  #complain(policy: SharingPolicy, leftOut: readonly string[]): void {
    const { events, log } = this.#options;
    const { name } = policy.metadata;
    const more = leftOut.length > MAX_TOLD ? `; and ${leftOut.length - MAX_TOLD} more` : '';
    const text = leftOut.length === 0 ? undefined : `${leftOut.slice(0, MAX_TOLD).join('; ')}${more}`;
    if (text === this.#complaints.get(name)) return;
    if (text === undefined) {
      this.#complaints.delete(name);
      return;
    }
    this.#complaints.set(name, text);
    log.warn('not all Services that a policy selects can be offered', { policy: name, problem: text });
    const subject = { ...policy, apiVersion: API_VERSION, kind: 'SharingPolicy' };
    events.event(subject, 'Warning', 'ServicesNotOffered', text);
  }
}

const peerOf = (namespace: KubeObject | undefined): string | undefined =>
  namespace?.metadata.labels?.[LABEL_PEER];

const saidOf = (offering: Offering | undefined): unknown => offering?.services ?? [];
