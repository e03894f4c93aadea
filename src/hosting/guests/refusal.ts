import { amountOf, formatAmount, type Amounts } from '../../api/amounts.ts';

export interface Account {
  peer: string;
  /** More than there is now. */
  requested: Amounts;
  used: Amounts;
  granted: Amounts;
}

/**
 * Pure: why it is too much, in the manner of a ResourceQuota: by the words "exceeded quota" the home side knows it. Undefined: it
 * is not. What the grant does not name is bounded by the namespaces' own quotas, or by nothing.
 */
export function refusalOf({ peer, requested, used, granted }: Account): string | undefined {
  const exceeded = [...granted]
    .filter(([resource, most]) => {
      const more = amountOf(requested, resource);
      return more > 0n && amountOf(used, resource) + more > most;
    })
    .map(([resource]) => resource)
    .toSorted();
  if (exceeded.length === 0) return undefined;
  const told = (amounts: Amounts): string =>
    exceeded
      .map((resource) => `${resource}=${formatAmount(resource, amountOf(amounts, resource))}`)
      .join(',');
  return (
    `exceeded quota of peer ${peer} over all its namespaces: ` +
    `requested ${told(requested)}, used ${told(used)}, granted ${told(granted)}`
  );
}
