import { TributaryError } from '../lib/errors.ts';
import type { Contract, SignedContract } from './offer.ts';

/** Read once for each object of a cache: every peer's offer looks at every contract. */
const CONTRACTS = new WeakMap<SignedContract, Contract>();

/**
 * The contract of a status; what is stored was checked before it was signed. Throws Invalid where somebody has
 * spoilt it since: to take it for none would end the tenant.
 */
export function contractOf(signed: SignedContract | undefined): Contract | undefined {
  if (signed === undefined) return undefined;
  const known = CONTRACTS.get(signed);
  if (known !== undefined) return known;
  try {
    const contract = JSON.parse(signed.text) as Contract;
    CONTRACTS.set(signed, contract);
    return contract;
  } catch (error) {
    throw new TributaryError('Invalid', 'the contract in the status of the PeeringRequest cannot be read', {
      cause: error,
    });
  }
}
