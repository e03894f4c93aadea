import type { Pod } from '../../api/wire.ts';
import { isFinished } from '../../api/pod.ts';
import { parseAmounts, type Sums } from '../../api/amounts.ts';
import { podRequests } from '../../api/pod-requests.ts';

/**
 * Pure: what a pod costs, as a ResourceQuota counts it (pkg/quota/v1/evaluator/core/pods.go): what the scheduler sets aside, and one of
 * `pods`; nothing when it has finished. Throws Invalid for an amount that cannot be read: what is not counted must not be let in.
 */
export function costOf(pod: Pod): Sums {
  if (isFinished(pod)) return new Map();
  return podRequests(pod, strictly);
}

const strictly = (list: Readonly<Record<string, string | number>> | undefined): Sums =>
  new Map([...parseAmounts(list ?? {})].filter(([, milli]) => milli > 0n));
