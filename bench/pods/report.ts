/** What is read of a contender's bursts. */
import type { Burst } from './burst.ts';
import { table } from '../frame/statistics.ts';

export type Results = ReadonlyMap<string, readonly Burst[]>;

export type Figure = (burst: Burst) => number | undefined;

export const perPod =
  (amount: Figure): Figure =>
  (burst) => {
    const total = amount(burst);
    return total === undefined ? undefined : total / burst.pods;
  };

/** Undefined where no program of ours takes part. */
export const ownCpuMs: Figure = ({ before, ready }) =>
  before === undefined || ready === undefined ? undefined : ready.cpuMs - before.cpuMs;

/** The same, from the Deployment's deletion on. */
export const ownEndingCpuMs: Figure = ({ ready, gone }) =>
  ready === undefined || gone === undefined ? undefined : gone.cpuMs - ready.cpuMs;

/** From a pod's creation until it is gone on both sides. */
export const lifeRequestsOf = ({ lifeRequests }: Burst): number =>
  [...lifeRequests.values()].reduce((sum, count) => sum + count, 0);

/** Requests that are rarer than this, per pod, are of the surroundings: leases, the Node's status. */
const RARE = 0.03;

/**
 * Requests per pod life by verb, resource and side, those of one contender beside those of another one: first what it asks
 * more than the other.
 */
export function requestTable(results: Results, [our, their]: readonly [string, string]): string {
  const [ours, theirs] = [perPodByKind(results.get(our) ?? []), perPodByKind(results.get(their) ?? [])];
  const rows = [...new Set([...ours.keys(), ...theirs.keys()])]
    .map((kind) => [kind, ours.get(kind) ?? 0, theirs.get(kind) ?? 0] as const)
    .filter(([, mine, other]) => Math.max(mine, other) > RARE)
    .toSorted(([, a, b], [, c, d]) => c - d - (a - b));
  return table([
    ['requests per pod life', our, their, 'more'],
    ...rows.map(([kind, mine, other]) => [
      kind,
      ...[mine, other, mine - other].map((count) => count.toFixed(2)),
    ]),
  ]);
}

function perPodByKind(bursts: readonly Burst[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const { lifeRequests, pods } of bursts) {
    for (const [kind, count] of lifeRequests) {
      sum.set(kind, (sum.get(kind) ?? 0) + count / bursts.length / pods);
    }
  }
  return sum;
}
