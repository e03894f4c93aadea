import { ANNOTATION_HOME_NAMESPACE } from '../../api/names.ts';
import { contractOf, type Offer, readableContractOf, type WithheldNamespace } from '../../api/offer.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { chooseTenantNames, type TenantPlace } from '../../hosting/tenants/tenant-names.ts';
import type { Tenants } from '../../hosting/tenants/tenants.ts';
import type { Cache } from '../../kube/cache.ts';
import { parseMilli } from '../../lib/quantity.ts';
import type { Promises } from '../offer/free.ts';
import { computeOffer } from '../offer/compute.ts';
import { nextOffer } from '../offer/next-offer.ts';
import type { StockWatcher } from '../offer/stock-watcher.ts';
import type { OwnIdentity } from '../ports.ts';
import { offerDocumentOf } from './grant.ts';

interface OffersOptions {
  identity: OwnIdentity;
  stock: Pick<StockWatcher, 'stock'>;
  policies: Pick<Cache<SharingPolicy>, 'list'>;
  tenants: Pick<Tenants, 'isTaken' | 'namespacesOf'>;
  /** What each pod costs besides, under that runtime class. */
  overheadOf: (runtimeClass: string) => ResourceList | undefined;
  /** Of all peers. */
  requests: Pick<Cache<PeeringRequest>, 'list'>;
}

/** What a peer is offered today. */
interface OfferMade {
  offer: Offer;
  /** Home namespaces for which no name is free. */
  taken: readonly string[];
  withheld: WithheldNamespace[];
}

/** Offers, and the names of tenants in them. */
export class Offers {
  readonly #options: OffersOptions;
  /** The offers that were made last, by peer: the cache learns of them later. */
  readonly #made = new Map<string, Offer>();

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** What every peer was promised. */
  promised(): Promises {
    const { requests, policies } = this.#options;
    return promisesOf(requests.list(), policies.list(), (peer) => this.#made.get(peer));
  }

  forget(clusterID: string): void {
    this.#made.delete(clusterID);
  }

  /** Works synchronously, and every later call knows the result: so no name is promised to two peers. */
  make(request: PeeringRequest, policy: SharingPolicy, nowMs: number): OfferMade {
    const { identity, stock, tenants, overheadOf } = this.#options;
    const { status = {}, spec, metadata } = request;
    const consumer = metadata.name;
    const before = offerDocumentOf(request, identity)?.offer;
    const { namespaces, taken, withheld } = chooseTenantNames(spec.namespaces, {
      consumer,
      before: [...(before?.namespaces ?? []), ...(contractOf(status.contract)?.namespaces ?? [])],
      asked: spec.tenantNames ?? [],
      naming: policy.spec.namespaceNaming,
      open: policy.spec.namespaceNames ?? [],
      isTaken: (name) => tenants.isTaken(name, consumer),
      isPromised: this.#promisedToOthers(consumer),
      places: this.#places(request),
    });
    const { runtimeClassName } = policy.spec;
    const terms = computeOffer(stock.stock(), policy, {
      consumer,
      promised: this.promised(),
      podOverhead: runtimeClassName === undefined ? undefined : overheadOf(runtimeClassName),
    });
    const draft = { provider: identity.clusterID, consumer, namespaces, ...terms };
    const { name, generation } = policy.metadata;
    const policyChanged =
      status.policy !== name ||
      (status.policyGeneration !== undefined && status.policyGeneration !== generation);
    const offer = nextOffer({ before, draft, policy, policyChanged, nowMs });
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
    for (const { metadata, status = {} } of this.#options.requests.list()) {
      if (metadata.name === consumer) continue;
      // If somebody has spoilt the status of another peer, that is no reason to refuse this one.
      const agreed = readableContractOf(status.contract);
      for (const offer of [status.offer, this.#made.get(metadata.name), agreed]) {
        for (const { tenantNamespace } of offer?.namespaces ?? []) yield tenantNamespace;
      }
    }
  }

  /** Under a contract, a namespace that ends is made again; without a contract yet, we wait until it has ended. */
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

/**
 * What counts as taken by every peer when we work out what is left for the others: what the peer was promised and, if
 * it has a contract and has not answered a newer offer yet, what it may take by that offer. Otherwise all peers would be
 * offered the same free room at once, would all take it, and would all be cut back: with four peers at half share that
 * never ends. `latest` returns the offer that was just made, which the cache does not know yet.
 */
export function promisesOf(
  requests: Iterable<PeeringRequest>,
  policies: Iterable<SharingPolicy>,
  latest: (clusterID: string) => Offer | undefined,
): Promises {
  const selectors = new Map([...policies].map(({ metadata, spec }) => [metadata.name, spec.nodeSelector]));
  return new Map(
    [...requests].flatMap(({ metadata: { name }, status = {} }) => {
      // If somebody has spoilt a contract, that concerns only its own peer.
      const contract = readableContractOf(status.contract);
      const { offer: stored, promised = contract?.resources } = status;
      if (status.contract === undefined || promised === undefined) return [];
      const offer = newerOf(stored, latest(name));
      const isAnswered = offer === undefined || !(offer.generation > (contract?.generation ?? Infinity));
      const nodeSelector = selectors.get(status.policy ?? '');
      const resources = isAnswered ? promised : largerOf(promised, offer.resources);
      return [[name, { resources, ...(nodeSelector && { nodeSelector }) }]];
    }),
  );
}

const newerOf = (a: Offer | undefined, b: Offer | undefined): Offer | undefined =>
  a === undefined || (b !== undefined && b.generation > a.generation) ? b : a;

function largerOf(a: ResourceList, b: ResourceList): ResourceList {
  return Object.fromEntries(
    [...new Set([...Object.keys(a), ...Object.keys(b)])].map((resource) => {
      const [one = '0', other = '0'] = [a[resource], b[resource]];
      return [resource, parseMilli(one) >= parseMilli(other) ? one : other];
    }),
  );
}
