import type { NamespaceOffer, Offer } from '../../api/offer.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { computeOffer, type OfferTerms } from './compute.ts';
import { type Comparable, differsEnough } from './difference.ts';
import { freeOf, limitsOf, type Promises, unpromisedResources } from './free.ts';
import type { Stockkeeper } from './stockkeeper.ts';

export interface StockOffersOptions {
  stockkeeper: Pick<Stockkeeper, 'stock' | 'usage' | 'onChange'>;
  /** Our own ClusterID. */
  provider: string;
  /** What every peer was promised, from cached PeeringRequests. */
  promised: () => Promises;
}

/** Offers out of this cluster's stock, as lending asks for them. */
export class StockOffers {
  readonly #options: StockOffersOptions;

  constructor(options: StockOffersOptions) {
    this.#options = options;
  }

  /** Throws Invalid for quantities of the policy that cannot be read. */
  terms(
    consumer: string,
    policy: SharingPolicy,
    namespaces: readonly NamespaceOffer[],
  ): OfferTerms & Pick<Offer, 'provider' | 'consumer' | 'namespaces'> {
    const { stockkeeper, provider, promised } = this.#options;
    const terms = computeOffer(stockkeeper.stock(), policy, { consumer, promised: promised() });
    return { provider, consumer, namespaces: [...namespaces], ...terms };
  }

  differs(before: Comparable, now: Comparable, thresholdPercent: number): boolean {
    return differsEnough(before, now, thresholdPercent);
  }

  used(consumer: string): ResourceList {
    return this.#options.stockkeeper.usage(consumer);
  }

  /** For SharingPolicy.status.free. Throws Invalid where there would be no offer, since its quantities cannot be read. */
  free(policy: SharingPolicy): ResourceList {
    limitsOf(policy);
    return freeOf(this.#options.stockkeeper.stock(), policy, this.#options.promised());
  }

  /** What a quota for this promise has to set to zero: it does not bound what it does not name. */
  unpromised(promise: ResourceList): string[] {
    return unpromisedResources(this.#options.stockkeeper.stock(), promise);
  }

  onChange(listener: () => void): () => void {
    return this.#options.stockkeeper.onChange(listener);
  }
}
