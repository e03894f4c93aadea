import { amountOf, firstAbove, formatAmount, parseAmounts } from '../api/amounts.ts';
import { timestamp } from '../api/conditions.ts';
import { MAX_CONTRACT_LENGTH } from '../api/limits.ts';
import type { Contract, Offer } from '../api/offer.ts';
import type { ResourceList } from '../api/wire.ts';
import { canonicalText } from '../lib/canonical-json.ts';
import { deepEqual } from '../lib/equality.ts';
import * as read from '../lib/untrusted.ts';
import { verifySignature } from './identity/identity.ts';
import * as terms from './offer/terms.ts';
import type { OwnIdentity, PeerIdentity } from './ports.ts';

/**
 * What the consumer proposes: the terms of the offer, with as much of its resources as it wants. Of a resource that it
 * does not name it takes nothing.
 */
export function draftContract(offer: Offer, resources: ResourceList, nowMs: number): Contract {
  const { provider, consumer, generation, namespaces, podSecurity, keepForSeconds, prices } = offer;
  return {
    provider,
    consumer,
    generation,
    issued: timestamp(nowMs),
    resources: {
      ...Object.fromEntries(Object.keys(offer.resources).map((name) => [name, '0'])),
      ...resources,
    },
    namespaces,
    podSecurity,
    keepForSeconds,
    prices,
  };
}

/** The text that both sign. */
export const contractText = (contract: Contract): string => canonicalText(contract);

export const signContract = (identity: OwnIdentity, text: string): string => identity.sign('contract', text);

/** Never throws; false for anything malformed. */
export const isSignedBy = (peer: PeerIdentity, text: string, signature: string): boolean =>
  verifySignature(peer.publicKey, 'contract', text, signature);

const FIELDS: readonly (keyof Contract)[] = [
  'provider',
  'consumer',
  'generation',
  'issued',
  'resources',
  'namespaces',
  'podSecurity',
  'keepForSeconds',
  'prices',
];

/**
 * Reads a contract that a peer has sent: canonical JSON of a Contract and of nothing else, that takes no more than
 * this offer gives and changes none of its terms. Throws Invalid with one line that names the field.
 */
export function checkContract(text: string, offer: Offer): Contract {
  const json = read.objectAt('contract', parsed(text));
  // Both sign it, so it must hold no clause that one of them does not know.
  const unknown = Object.keys(json).find((key) => !(FIELDS as readonly string[]).includes(key));
  if (unknown !== undefined) read.refuse(`contract: ${read.quoted(unknown)}`, 'is no field of a contract');
  const contract = contractOf(json);
  if (canonicalText(contract) !== text) read.refuse('contract', 'is not in canonical form (RFC 8785)');
  for (const field of ['provider', 'consumer', 'generation', 'podSecurity', 'keepForSeconds'] as const) {
    if (contract[field] === offer[field]) continue;
    read.refuse(`contract: ${field}`, `is ${contract[field]}, but ${offer[field]} was offered`);
  }
  for (const field of ['namespaces', 'prices'] as const) {
    if (!deepEqual(contract[field], offer[field])) read.refuse(`contract: ${field}`, 'are not as offered');
  }
  refuseExcess(contract.resources, offer.resources);
  return contract;
}

function parsed(text: unknown): unknown {
  const checked = read.textAt('contract', text, MAX_CONTRACT_LENGTH);
  try {
    return JSON.parse(checked);
  } catch {
    return read.refuse('contract', 'is not JSON');
  }
}

function contractOf(json: read.Json): Contract {
  const [provider, consumer] = ['provider', 'consumer'].map((key) =>
    read.textAt(`contract: ${key}`, read.own(json, key), 26),
  );
  return {
    provider: provider ?? '',
    consumer: consumer ?? '',
    generation: terms.generationAt('contract: generation', read.own(json, 'generation')),
    issued: terms.timeAt('contract: issued', read.own(json, 'issued')),
    resources: terms.resourcesAt('contract: resources', read.own(json, 'resources')),
    namespaces: terms.namespacesAt('contract: namespaces', read.own(json, 'namespaces')),
    podSecurity: terms.podSecurityAt('contract: podSecurity', read.own(json, 'podSecurity')),
    keepForSeconds: terms.keepForSecondsAt('contract: keepForSeconds', read.own(json, 'keepForSeconds')),
    prices: terms.pricesAt('contract: prices', read.own(json, 'prices')),
  };
}

/**
 * Every resource of the offer has to be named, even with zero: the quota is made from the contract's list, and a quota
 * does not bound what it does not name.
 */
function refuseExcess(taken: ResourceList, offered: ResourceList): void {
  const [amounts, most] = [parseAmounts(taken), parseAmounts(offered)];
  const above = firstAbove(amounts, most);
  if (above !== undefined) {
    const [wanted, there] = [amountOf(amounts, above), amountOf(most, above)].map((milli) =>
      formatAmount(above, milli),
    );
    read.refuse(`contract: resources[${read.quoted(above)}]`, `is ${wanted}, but ${there} was offered`);
  }
  const missing = Object.keys(offered).find((resource) => !amounts.has(resource));
  if (missing !== undefined) {
    read.refuse(`contract: resources[${read.quoted(missing)}]`, 'is missing; write 0 to take none of it');
  }
}
