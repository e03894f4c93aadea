import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import { HOME_LEASE } from '../../api/names.ts';
import { leases, namespaces } from '../../api/resources.ts';
import { LABEL_PEER, LABEL_TENANCY, peerOf } from '../../api/tenant-labels.ts';
import type { KubeObject, Lease, Namespace } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller } from '../../kube/controller.ts';
import { refOf } from '../../kube/store.ts';
import { ignoring } from '../../lib/errors.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { HostingParts } from '../parts.ts';
import { type HomeState, Heartbeat, type Pulse } from './heartbeat.ts';

const BY_PEER = 'peer';
/** The duration in a new Lease; a home may write another. */
const DURATION_SECONDS = 40;
const CONCURRENCY = 4;

type PresenceOptions = Omit<HostingParts, 'events'>;

/**
 * Which homes are there. A home shows it by renewing the Lease `tributary-home` in at least one of its tenant namespaces; the
 * last renewal counts. Only our own monotonic clock is used: a home is away when none of its Leases was renewed for as long as
 * they last, counted from when we first saw them. So a guardian that has just started waits for a full duration.
 */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #namespaces: Cache<Namespace>;
  readonly #leases: Cache<Lease>;
  readonly #maker: Controller;
  readonly #timers = new Map<string, Heartbeat>();
  readonly #listeners = new Listeners<[peer: string]>();
  #isStopped = false;

  constructor(options: PresenceOptions) {
    this.#options = options;
    const { caches, clock, metrics, random } = options;
    const log = options.log.named('presence');
    this.#namespaces = caches.of(namespaces, {
      only: ({ metadata }) => metadata.labels?.[LABEL_PEER] !== undefined,
      indexes: { [BY_PEER]: (namespace) => [peerOf(namespace)] },
      name: 'cache of guarded namespaces',
    });
    this.#leases = caches.of(leases, {
      list: { fieldSelector: `metadata.name=${HOME_LEASE}` },
      name: 'cache of Leases of homes',
    });
    this.#maker = new Controller({
      clock,
      log,
      ...(random && { random }),
      name: 'home leases',
      concurrency: CONCURRENCY,
      reconcile: async (key, { signal }) => this.#make(key, signal),
      ...(metrics && { metrics }),
    });
  }

  components(): Component[] {
    return [this.#namespaces, this.#leases, this.#triggers(), this.#maker];
  }

  state(peer: string): HomeState {
    return this.#timers.get(peer)?.state ?? 'Unknown';
  }

  /** What its Leases show; changes with each renewal. */
  marks(peer: string): Record<string, string> {
    return this.#timers.get(peer)?.marks ?? {};
  }

  /** Without those that are being deleted. */
  namespacesOf(peer: string): KubeObject[] {
    return this.#namespaces
      .byIndex(BY_PEER, peer)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  namespace(name: string): KubeObject | undefined {
    return this.#namespaces.get(name);
  }

  /** Calls back when the state of a home, or the namespaces of its peer, have changed; not after a mere renewal. */
  onChange(listener: (peer: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Whether the home is away, by a live read of its Leases, because a watch may have gone silent. Asked before anything is done
   * that a home that is there would not want.
   */
  async isStillAway(peer: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#liveState(peer, signal)) === 'Away';
  }

  /** The same for a home that is late or away. */
  async isStillSilent(peer: string, signal: AbortSignal): Promise<boolean> {
    const state = await this.#liveState(peer, signal);
    return state === 'Late' || state === 'Away';
  }

  async #liveState(peer: string, signal: AbortSignal): Promise<HomeState> {
    for (const { metadata } of this.namespacesOf(peer)) {
      const list = { namespace: metadata.name, fieldSelector: `metadata.name=${HOME_LEASE}`, signal };
      const { items } = await this.#options.client.list(leases, list);
      for (const lease of items) this.#timer(peer).heard(metadata.name, pulseOf(lease));
    }
    return this.state(peer);
  }

  #triggers(): Component {
    return subscribing('presence of homes', () => {
      const ends = [
        this.#namespaces.onChange((key, current, previous) => {
          if (current !== undefined) this.#maker.add(key);
          const peers = new Set([current, previous].flatMap((it) => (it ? [peerOf(it)] : [])));
          for (const peer of peers) this.#onNamespace(peer, key);
        }),
        this.#leases.onChange((key, current) => this.#onLease(refOf(key).namespace ?? '', current)),
      ];
      for (const { metadata } of this.#namespaces.list()) this.#maker.add(metadata.name);
      for (const lease of this.#leases.list()) this.#onLease(lease.metadata.namespace ?? '', lease);
      return [...ends, () => this.#stopTimers()];
    });
  }

  #stopTimers(): void {
    this.#isStopped = true;
    for (const timer of this.#timers.values()) timer.stop();
  }

  #onNamespace(peer: string, name: string): void {
    if (this.namespacesOf(peer).length === 0) {
      this.#timers.get(peer)?.stop();
      this.#timers.delete(peer);
    } else {
      const lease = this.#leases.get(`${name}/${HOME_LEASE}`);
      // The Lease may have been seen before the namespace.
      if (lease !== undefined && this.#namespaces.get(name) !== undefined) this.#onLease(name, lease);
    }
    this.#listeners.tell(peer);
  }

  /** Takes constant time and writes nothing, because each peer renews every few seconds. */
  #onLease(namespace: string, lease: Lease | undefined): void {
    const tenant = this.#namespaces.get(namespace);
    if (tenant === undefined) return;
    if (lease === undefined) this.#maker.add(namespace);
    else this.#timer(peerOf(tenant)).heard(namespace, pulseOf(lease));
  }

  #timer(peer: string): Heartbeat {
    const known = this.#timers.get(peer);
    if (known !== undefined) return known;
    const made = new Heartbeat(this.#options.clock, () => this.#listeners.tell(peer));
    if (!this.#isStopped) this.#timers.set(peer, made);
    return made;
  }

  async #make(namespace: string, signal: AbortSignal): Promise<void> {
    const tenant = this.#namespaces.get(namespace);
    if (tenant === undefined || tenant.metadata.deletionTimestamp !== undefined) return;
    if (this.#leases.get(`${namespace}/${HOME_LEASE}`) !== undefined) return;
    const { labels = {} } = tenant.metadata;
    const tenancy = labels[LABEL_TENANCY];
    const metadata = {
      namespace,
      name: HOME_LEASE,
      labels: {
        [LABEL_APP_NAME]: APP_NAME,
        [LABEL_PEER]: peerOf(tenant),
        ...(tenancy !== undefined && { [LABEL_TENANCY]: tenancy }),
      },
    };
    const spec = { leaseDurationSeconds: DURATION_SECONDS };
    // NotFound: the namespace is being deleted.
    const making = this.#options.client.create(leases, { metadata, spec }, { signal });
    await making.catch(ignoring('AlreadyExists', 'NotFound'));
  }
}

const pulseOf = ({ spec = {} }: Lease): Pulse => ({
  mark: spec.renewTime === undefined ? undefined : `${spec.renewTime} ${spec.holderIdentity ?? ''}`,
  seconds: spec.leaseDurationSeconds ?? DURATION_SECONDS,
});
