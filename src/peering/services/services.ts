import { namespaces } from '../../api/resources.ts';
import type { Namespace } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { together } from '../../lib/listeners.ts';
import type { PeerIdentity, ServicesSide } from '../ports.ts';
import type { DocumentChanges, Documents } from '../protocol/documents.ts';
import { OfferedServices, type OfferedServicesOptions } from './offered.ts';
import type { OpenPlaces, ProviderNetworks } from './ports.ts';
import { UsedServices, type UsedServicesOptions } from './used.ts';

export interface ServicesOptions
  extends Omit<OfferedServicesOptions, 'namespaces'>, Omit<UsedServicesOptions, 'namespaces'> {
  networks: ProviderNetworks & Component;
}

/**
 * Services of one cluster that another uses as its own:
 *
 *     SharingPolicy, Services, EndpointSlices ──▶ document ──▶ peers        (`places`: what their packets may reach)
 *     peers ──▶ received, AcceptancePolicy ──▶ home Service, EndpointSlices, Advertisement.status.services
 */
export class Services implements ServicesSide {
  readonly #namespaces: Cache<Namespace>;
  readonly #networks: Component;
  readonly #offered: OfferedServices;
  readonly #used: UsedServices;

  constructor(options: ServicesOptions) {
    this.#networks = options.networks;
    this.#namespaces = options.caches.of(namespaces);
    const common = { ...options, namespaces: this.#namespaces };
    this.#offered = new OfferedServices(common);
    this.#used = new UsedServices(common);
  }

  /** After the caches of lending, borrowing and the network, before the links. */
  components(): Component[] {
    return [this.#namespaces, this.#networks, ...this.#offered.components(), ...this.#used.components()];
  }

  documents(clusterID: string): Pick<Documents, 'services'> {
    return this.#offered.documents(clusterID);
  }

  async received(
    { clusterID }: PeerIdentity,
    { services }: Pick<DocumentChanges, 'services'>,
  ): Promise<void> {
    await Promise.resolve();
    if (services !== undefined) this.#used.received(clusterID, services);
  }

  /** What gateways have to let through, from caches. */
  places(clusterID: string): OpenPlaces {
    return { offered: this.#offered.open(clusterID), used: this.#used.used(clusterID) };
  }

  /** Calls back when what that peer is to be told may have changed; the returned function ends that. */
  onOffer(listener: (clusterID: string) => void): () => void {
    return this.#offered.onChange(listener);
  }

  /** Calls back when the places have changed; the returned function ends that. */
  onPlaces(listener: (clusterID: string) => void): () => void {
    return together(this.#offered.onChange(listener), this.#used.onChange(listener));
  }
}
