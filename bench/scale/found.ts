/** What has been measured in all steps, and whether it grows faster than the pods. */
import type { Curve, Found, Goal } from '../frame/bench.ts';
import { bend } from '../frame/statistics.ts';
import type { Step } from './measure.ts';

/** What a pod of the last step may cost, in what one of the first costs: more would be faster than linear. */
const MOST_GROWTH = 1.25;

const FIGURES: readonly (readonly [figure: string, of: (step: Step) => number, digits: number])[] = [
  ['s until all agents have begun anew, one after the other', ({ oneByOneMs }) => oneByOneMs / 1000, 1],
  ['CPU s of all agents for that', ({ oneByOneCpuMs }) => oneByOneCpuMs / 1000, 1],
  ['CPU s of both control planes for that', ({ serversCpuMs }) => serversCpuMs / 1000, 1],
  ['s until all agents have begun anew, all at once', ({ atOnceMs }) => atOnceMs / 1000, 1],
  ['writes of all that', ({ writes }) => writes, 0],
  ['event loop ms, p99.9', ({ stall }) => stall.p999Ms, 1],
  ['event loop ms, longest', ({ stall }) => stall.longestMs, 1],
  ['event loop ms, p99.9, all at once', ({ stallAtOnce }) => stallAtOnce.p999Ms, 1],
  ['event loop ms, longest, all at once', ({ stallAtOnce }) => stallAtOnce.longestMs, 1],
  ['private MiB of an agent', ({ privateMiB }) => privateMiB, 1],
  ['CPU of an agent at rest, % of a core', ({ restCpuPercent }) => restCpuPercent, 2],
  ['ms until a status is shown at home', ({ statusMs }) => statusMs, 1],
  ['requests for it', ({ statusRequests }) => statusRequests, 1],
  ['ms until a deleted pod is gone', ({ deletionMs }) => deletionMs, 1],
  ['requests for that', ({ deletionRequests }) => deletionRequests, 1],
];

export const stepText = (step: Step): string =>
  `${step.pods} pods: ${FIGURES.map(([figure, of, digits]) => `${of(step).toFixed(digits)} ${figure}`).join(', ')}`;

export function found(runs: readonly (readonly Step[])[]): Found {
  const counts = runs[0]?.map(({ pods }) => pods) ?? [];
  const at = (index: number, of: (step: Step) => number): number[] =>
    runs.flatMap((steps) => steps.slice(index, index + 1).map(of));
  return {
    measured: FIGURES.flatMap(([figure, of, digits]) =>
      counts.map((_count, index) => ({
        contender: `${labelOf(counts[index] ?? 0)} pods`,
        figure,
        values: at(index, of),
        digits,
      })),
    ),
    goals: goalsOf(runs),
    curves: curvesOf(runs[0] ?? []),
    remarks: [requestsText(runs.at(-1)?.at(-1))],
  };
}

/** Pods are deleted in each step, so the number is not round. */
const labelOf = (count: number): string => count.toLocaleString('en');

/** Of a pod. */
const shareOf = (steps: readonly Step[], of: (step: Step) => number): number => {
  const [first, last] = [steps[0], steps.at(-1)];
  if (first === undefined || last === undefined) return Number.NaN;
  return of(last) / last.pods / (of(first) / first.pods);
};

function goalsOf(runs: readonly (readonly Step[])[]): Goal[] {
  const all = (value: (steps: readonly Step[]) => number): number[] => runs.map(value);
  const ofLast =
    (of: (step: Step) => number) =>
    (steps: readonly Step[]): number => {
      const [first, last] = [steps[0], steps.at(-1)];
      return first === undefined || last === undefined ? Number.NaN : of(last) / of(first);
    };
  return [
    {
      id: 'scale-pods-writes',
      what: 'writes of all agents that begin anew',
      values: runs.map((steps) => Math.max(...steps.map(({ writes }) => writes))),
      atMost: 0,
      digits: 0,
    },
    {
      id: 'scale-pods-time',
      what: 'time of a restart for each pod, all agents at once, of that with a tenth of the pods',
      values: all((steps) => shareOf(steps, ({ atOnceMs }) => atOnceMs)),
      atMost: MOST_GROWTH,
    },
    {
      id: 'scale-pods-cpu',
      what: 'CPU of a restart for a further pod, from the second step on, of that before',
      values: all((steps) => bend(steps.map(({ pods, oneByOneCpuMs }) => [pods, oneByOneCpuMs]))),
      atMost: MOST_GROWTH,
    },
    {
      id: 'scale-pods-servers',
      what: 'CPU of the control planes in a restart for a further pod, from the second step on, of that before',
      values: all((steps) => bend(steps.map(({ pods, serversCpuMs }) => [pods, serversCpuMs]))),
      atMost: MOST_GROWTH,
    },
    {
      id: 'scale-pods-memory',
      what: 'private memory for a further pod, from the second step on, of that before',
      values: all((steps) => bend(steps.map(({ pods, privateMiB }) => [pods, privateMiB]))),
      atMost: MOST_GROWTH,
    },
    {
      id: 'scale-pods-requests',
      what: 'requests for a change, of those with a tenth of the pods',
      values: all(ofLast(({ statusRequests, deletionRequests }) => statusRequests + deletionRequests)),
      atMost: MOST_GROWTH,
    },
    {
      id: 'scale-pods-change',
      what: 'ms until a status is shown at home, of those with a tenth of the pods',
      values: all(ofLast(({ statusMs }) => statusMs)),
      atMost: 2,
    },
  ];
}

function curvesOf(steps: readonly Step[]): Curve[] {
  const line = (name: string, of: (step: Step) => number): Curve['lines'][number] => ({
    name,
    points: steps.map((step) => [step.pods, of(step)]),
  });
  return [
    {
      title: 'Restarts',
      x: 'pods of all virtual nodes',
      y: 's until all are reconciled',
      lines: [
        line('one by one', ({ oneByOneMs }) => oneByOneMs / 1000),
        line('all at once', ({ atOnceMs }) => atOnceMs / 1000),
      ],
    },
  ];
}

function requestsText(step: Step | undefined): string {
  const rows = [...(step?.requests ?? [])].toSorted(([, a], [, b]) => b - a);
  return `Requests of both restarts of the last step, Leases and the Nodes aside: ${rows.map(([key, count]) => `${key} ${count}`).join(', ')}.`;
}
