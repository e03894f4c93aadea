import type { Contract, SignedContract } from '../../api/offer.ts';

/** Our contract, from the Advertisement's status; undefined where somebody has damaged it. */
export const readContract = (contract: SignedContract | undefined): Contract | undefined =>
  contract?.consumerSignature === undefined ? undefined : readText(contract.text);

/** Undefined for what is no contract. */
export function readText(text: string): Contract | undefined {
  try {
    const terms = JSON.parse(text) as Contract | null;
    return Array.isArray(terms?.namespaces) && typeof terms?.resources === 'object' ? terms : undefined;
  } catch {
    return undefined;
  }
}
