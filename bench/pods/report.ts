/** The figures of several contenders' bursts, side by side. */
import { writes } from './api-requests.ts';
import type { Burst } from './burst.ts';
import type { Contender } from './contender.ts';
import { median, shown, spread, table } from '../frame/statistics.ts';

export type Results = ReadonlyMap<string, readonly Burst[]>;

type Figure = (burst: Burst) => number | undefined;

const perPod =
  (amount: Figure): Figure =>
  (burst) => {
    const total = amount(burst);
    return total === undefined ? undefined : total / burst.pods;
  };

/** Undefined where no program of ours takes part. */
export const ownCpuMs: Figure = ({ before, ready }) =>
  before === undefined || ready === undefined ? undefined : ready.cpuMs - before.cpuMs;

/** From a pod's creation until it is gone on both sides. */
export const lifeRequestsOf = ({ lifeRequests }: Burst): number =>
  [...lifeRequests.values()].reduce((sum, count) => sum + count, 0);

const FIGURES: readonly (readonly [title: string, figure: Figure, digits: number])[] = [
  ['pods/s until all Ready', (burst) => burst.readyPerSecond, 1],
  ['pods/s until all gone', (burst) => burst.gonePerSecond, 1],
  ['API writes per pod, controllers’ included', perPod((burst) => writes(burst.requests)), 2],
  ['control planes’ CPU ms per pod', perPod((burst) => burst.controlPlaneCpuMs), 1],
  ['own CPU ms per pod', perPod(ownCpuMs), 2],
  ['RSS MiB before', ({ before }) => before?.rssMiB, 0],
  ['RSS MiB with all pods', ({ ready }) => ready?.rssMiB, 0],
  ['peak RSS MiB', ({ ready }) => ready?.peakMiB, 0],
  ['sockets', ({ ready }) => ready?.sockets, 0],
  ['file descriptors', ({ ready }) => ready?.fds, 0],
];

/** One column a contender. */
export function comparison(results: Results): string {
  const cell = (bursts: readonly Burst[], figure: Figure, digits: number): string => {
    const known = bursts.map(figure).filter((value) => value !== undefined);
    return known.length === 0 ? '' : shown(spread(known), digits);
  };
  const rows = FIGURES.map(([title, figure, digits]) => [
    title,
    ...[...results.values()].map((bursts) => cell(bursts, figure, digits)),
  ]);
  return table([['', ...results.keys()], ...rows]);
}

/** What the contest is about, a line each. */
export function ratios(results: Results): string {
  return [
    ratio(results, 'null mirror', (burst) => burst.readyPerSecond, 'Ready'),
    ratio(results, 'null mirror', (burst) => burst.gonePerSecond, 'gone'),
    ratio(results, 'native', (burst) => burst.readyPerSecond, 'Ready'),
  ]
    .filter((line) => line !== undefined)
    .join('\n');
}

function ratio(
  results: Results,
  to: Contender['name'],
  value: (burst: Burst) => number,
  what: string,
): string | undefined {
  const [ours = [], theirs = []] = [results.get('agent'), results.get(to)];
  if (ours.length === 0 || theirs.length === 0) return undefined;
  // Round by round: what else the machine does meets both.
  const pairs = ours.map((burst, index) => value(burst) / value(theirs[index] ?? burst));
  const medians = median(ours.map(value)) / median(theirs.map(value));
  return `agent / ${to}, ${what}: ${medians.toFixed(2)} of medians, ${shown(spread(pairs), 2)} by round`;
}

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
