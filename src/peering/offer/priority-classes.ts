/**
 * Which PriorityClasses a policy may lend (decision 77). Of peers' pods, those without a class have `maxPriority` at most, and may push
 * out pods below; those of a class that is lent push out nobody, and are not below, so that no peer pushes out another one. Pure.
 */
import { OFFER_LIMITS } from '../../api/limits.ts';
import type { priorityClasses } from '../../api/resources.ts';
import type { SharingPolicySpec } from '../../api/sharing-policy.ts';
import { className, onlyValid } from './terms.ts';

export type PriorityClass = NonNullable<(typeof priorityClasses)['__object']>;

/** What counts of one. */
export interface StockPriority {
  name: string;
  value: number;
  preempts: boolean;
}

export const stockPriority = ({ metadata, value = 0, preemptionPolicy }: PriorityClass): StockPriority => ({
  name: metadata.name,
  value,
  preempts: preemptionPolicy !== 'Never',
});

type Terms = Pick<SharingPolicySpec, 'priorityClasses' | 'maxPriority'>;

/** Those that peers are told of. */
export const lentPriorities = (stock: readonly StockPriority[], terms: Terms): string[] =>
  onlyValid(new Set(terms.priorityClasses ?? []), className)
    .filter((name) => whyNotLent(name, stock, terms) === undefined)
    .toSorted()
    .slice(0, OFFER_LIMITS.priorityClasses);

/** Undefined: it is lent, where the policy names it. */
export function whyNotLent(
  name: string,
  stock: readonly StockPriority[],
  { maxPriority = 0 }: Terms,
): string | undefined {
  const found = stock.find((one) => one.name === name);
  if (found === undefined) return `there is no PriorityClass ${name}`;
  if (found.preempts)
    return `pods of PriorityClass ${name} would push out others: it needs preemptionPolicy: Never`;
  return found.value < maxPriority
    ? `pods of PriorityClass ${name} could be pushed out by other peers: its value ${found.value} is below maxPriority ${maxPriority}`
    : undefined;
}
