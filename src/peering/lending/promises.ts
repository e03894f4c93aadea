import { type Offer, readableContractOf } from '../../api/offer.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { parseMilli } from '../../lib/quantity.ts';
import type { Promises } from '../offer/free.ts';

/**
 * What every peer is to be counted with, when it is worked out what is left for the others: what it was promised,
 * and while an offer waits for the answer of a peer that has a contract, what it may take with that. Were it not, all
 * peers would be offered the same free room at once, all take it, and all be cut back: with four of them at half
 * share that never ends. `latest` is the offer just made, of which the cache does not know yet.
 */
export function promisesOf(
  requests: Iterable<PeeringRequest>,
  policies: Iterable<SharingPolicy>,
  latest: (clusterID: string) => Offer | undefined,
): Promises {
  const selectors = new Map([...policies].map(({ metadata, spec }) => [metadata.name, spec.nodeSelector]));
  return new Map(
    [...requests].flatMap(({ metadata: { name }, status = {} }) => {
      // A contract that somebody has spoilt concerns its own peer only.
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
