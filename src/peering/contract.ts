import { amountOf, firstAbove, formatAmount, parseAmounts } from '../api/amounts.ts';
import { timestamp } from '../api/conditions.ts';
import { MAX_CONTRACT_LENGTH } from '../api/limits.ts';
import type { Contract, Offer } from '../api/offer.ts';
import type { ResourceList } from '../api/wire.ts';
import { canonicalText } from '../lib/canonical-json.ts';
import { deepEqual } from '../lib/equality.ts';
import { anyObject, type Check, opaque, quoted, record, refuse } from '../lib/untrusted.ts';
import { verifySignature } from './identity/identity.ts';
import * as terms from './offer/terms.ts';
import type { OwnIdentity, PeerIdentity } from './ports.ts';

/**
 * What the consumer proposes: the terms of the offer, with as much of its resources as it wants, and pods kept no longer than it
 * wants. Of a resource that it does not name it takes nothing.
 */
export function draftContract(
  offer: Offer,
  resources: ResourceList,
  nowMs: number,
  maxKeepForSeconds: number = offer.keepForSeconds,
): Contract {
  const { provider, consumer, generation, namespaces, podSecurity, prices } = offer;
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
    keepForSeconds: Math.min(offer.keepForSeconds, maxKeepForSeconds),
    prices,
  };
}

/** The text that both sign. */
export const contractText = (contract: Contract): string => canonicalText(contract);

export const signContract = (identity: OwnIdentity, text: string): string => identity.sign('contract', text);

/** Never throws; false for anything malformed. */
export const isSignedBy = (peer: PeerIdentity, text: string, signature: string): boolean =>
  verifySignature(peer.publicKey, 'contract', text, signature);

const FIELDS: { [Field in keyof Contract]: Check<Contract[Field]> } = {
  provider: terms.clusterID,
  consumer: terms.clusterID,
  generation: terms.generation,
  issued: terms.time,
  resources: terms.resources,
  namespaces: terms.namespaces,
  podSecurity: terms.podSecurity,
  keepForSeconds: terms.keepForSeconds,
  prices: terms.prices,
};
const boundedText = opaque(MAX_CONTRACT_LENGTH);

/**
 * Reads a contract that a peer has sent: canonical JSON of a Contract and of nothing else, that takes no more than
 * this offer gives and changes none of its other terms. Throws Invalid with one line that names the field.
 */
export function checkContract(text: string, offer: Offer): Contract {
  const json = anyObject(parsed(text), 'contract');
  // Both sign it, so it must hold no clause that one of them does not know.
  const unknown = Object.keys(json).find((key) => !Object.hasOwn(FIELDS, key));
  if (unknown !== undefined) refuse(`contract[${quoted(unknown)}]`, 'is no field of a contract');
  const contract: Contract = record(FIELDS)(json, 'contract');
  if (canonicalText(contract) !== text) refuse('contract', 'is not in canonical form (RFC 8785)');
  for (const field of ['provider', 'consumer', 'generation', 'podSecurity', 'keepForSeconds'] as const) {
    // To keep pods for less long asks less of us.
    const isLess = field === 'keepForSeconds' && contract[field] < offer[field];
    if (contract[field] === offer[field] || isLess) continue;
    refuse(`contract.${field}`, `is ${contract[field]}, but ${offer[field]} was offered`);
  }
  for (const field of ['namespaces', 'prices'] as const) {
    if (!deepEqual(contract[field], offer[field])) refuse(`contract.${field}`, 'are not as offered');
  }
  refuseExcess(contract.resources, offer.resources);
  return contract;
}

function parsed(text: unknown): unknown {
  const checked = boundedText(text, 'contract');
  try {
    return JSON.parse(checked);
  } catch {
    return refuse('contract', 'is not JSON');
  }
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
    refuse(`contract.resources[${quoted(above)}]`, `is ${wanted}, but ${there} was offered`);
  }
  // Also with zero: whatever is named may be asked for, and its taint be tolerated.
  const strange = Object.keys(taken).find((resource) => !Object.hasOwn(offered, resource));
  if (strange !== undefined) refuse(`contract.resources[${quoted(strange)}]`, 'was not offered');
  const missing = Object.keys(offered).find((resource) => !amounts.has(resource));
  if (missing !== undefined) {
    refuse(`contract.resources[${quoted(missing)}]`, 'is missing; write 0 to take none of it');
  }
}
