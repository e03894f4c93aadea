import type { Contract, SignedContract } from '../../api/offer.ts';

/** Our contract, from the Advertisement's status; undefined where somebody has damaged it. */
export const readContract = (contract: SignedContract | undefined): Contract | undefined =>
  contract?.consumerSignature === undefined ? undefined : readText(contract.text);

/** Undefined for what is no contract. */
export function readText(text: string): Contract | undefined {
  try {
    const terms = JSON.parse(text) as Contract | null;
    const isContract =
      Array.isArray(terms?.namespaces) && terms.namespaces.every(isNamespace) && isObject(terms.resources);
    return isContract ? terms : undefined;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isNamespace = (value: unknown): boolean =>
  isObject(value) &&
  ['homeNamespace', 'tenantNamespace'].every((key) => typeof value[key as keyof typeof value] === 'string');
