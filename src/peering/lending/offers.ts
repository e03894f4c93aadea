import { ANNOTATION_HOME_NAMESPACE } from '../../api/names.ts';
import { contractOf, readableContractOf, type Offer, type WithheldNamespace } from '../../api/offer.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { chooseTenantNames, type TenantPlace } from '../../hosting/tenants/tenant-names.ts';
import type { Tenants } from '../../hosting/tenants/tenants.ts';
import type { OwnIdentity } from '../ports.ts';
import { offerDocumentOf } from './grant.ts';
import { nextOffer, type OfferSource } from './offering.ts';

export interface OffersOptions {
  identity: OwnIdentity;
  offers: OfferSource;
  tenants: Pick<Tenants, 'isTaken' | 'namespacesOf'>;
  /** Of all peers. */
  requests: () => Iterable<PeeringRequest>;
}

/** What a peer is offered today. */
export interface OfferMade {
  offer: Offer;
  /** Home namespaces for which no name is free. */
  taken: readonly string[];
  withheld: WithheldNamespace[];
}

/** Offers, and the names of tenants in them. */
export class Offers {
  readonly #options: OffersOptions;
  /** Those made last, by peer: the cache learns of them later. */
  readonly #made = new Map<string, Offer>();

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** The offer made last to that peer, whether or not it is stored yet. */
  last(clusterID: string): Offer | undefined {
    return this.#made.get(clusterID);
  }

  forget(clusterID: string): void {
    this.#made.delete(clusterID);
  }

  /** At once, and known to every later call: so no name is promised to two peers. */
  make(request: PeeringRequest, policy: SharingPolicy, nowMs: number): OfferMade {
    const { identity, offers, tenants } = this.#options;
    const { status = {}, spec, metadata } = request;
    const consumer = metadata.name;
    const before = offerDocumentOf(request, identity)?.offer;
    const { namespaces, taken, withheld } = chooseTenantNames(spec.namespaces, {
      consumer,
      before: [...(before?.namespaces ?? []), ...(contractOf(status.contract)?.namespaces ?? [])],
      asked: spec.tenantNames ?? [],
      naming: policy.spec.namespaceNaming,
      isTaken: (name) => tenants.isTaken(name, consumer),
      isPromised: this.#promisedToOthers(consumer),
      places: this.#places(request),
    });
    const draft = offers.terms(consumer, policy, namespaces);
    const { name, generation } = policy.metadata;
    const policyChanged =
      status.policy !== name ||
      (status.policyGeneration !== undefined && status.policyGeneration !== generation);
    const offer = nextOffer(offers, { before, draft, policy, policyChanged, nowMs });
    this.#made.set(consumer, offer);
    return { offer, taken, withheld };
  }

  #promisedToOthers(consumer: string): (name: string) => boolean {
    let names: ReadonlySet<string> | undefined;
    return (name) => {
      names ??= new Set(this.#namesOfOthers(consumer));
      return names.has(name);
    };
  }

  *#namesOfOthers(consumer: string): Iterable<string> {
    for (const { metadata, status = {} } of this.#options.requests()) {
      if (metadata.name === consumer) continue;
      // A spoilt status of another peer is no reason to refuse this one.
      const agreed = readableContractOf(status.contract);
      for (const offer of [status.offer, this.#made.get(metadata.name), agreed]) {
        for (const { tenantNamespace } of offer?.namespaces ?? []) yield tenantNamespace;
      }
    }
  }

  /** One that ends under a contract is made again; without a contract yet, it is waited for. */
  #places({ metadata, status = {} }: PeeringRequest): TenantPlace[] {
    const contract = contractOf(status.contract);
    const agreed = new Set(contract?.namespaces.map(({ tenantNamespace }) => tenantNamespace));
    return this.#options.tenants.namespacesOf(metadata.name).map(({ metadata: { name, ...rest } }) => ({
      homeNamespace: rest.annotations?.[ANNOTATION_HOME_NAMESPACE] ?? '',
      tenantNamespace: name,
      ending: contract !== undefined && rest.deletionTimestamp !== undefined && !agreed.has(name),
    }));
  }
}
