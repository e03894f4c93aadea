/** P1, P3 and P11: a Deployment of many pods from nothing to Ready, and back to nothing. */
import { type Bench, type Found, type Goal, inTurn } from '../frame/bench.ts';
import { differences, ratios } from '../frame/goals.ts';
import { writes } from './api-requests.ts';
import { Bed } from './bed.ts';
import { burst, type Burst } from './burst.ts';
import { mirrors, native, type Contender } from './contender.ts';
import {
  type Figure,
  lifeRequestsOf,
  ownCpuMs,
  ownEndingCpuMs,
  perPod,
  requestTable,
  type Results,
} from './report.ts';

const FIGURES: readonly (readonly [figure: string, of: Figure, digits: number])[] = [
  ['pods/s until all are Ready', ({ readyPerSecond }) => readyPerSecond, 1],
  ['pods/s until all are gone', ({ gonePerSecond }) => gonePerSecond, 1],
  ['requests per pod life, controllers’ included', perPod(lifeRequestsOf), 2],
  ['writes of these', perPod((one) => writes(one.lifeRequests)), 2],
  ['control planes’ CPU ms per pod', perPod(({ controlPlaneCpuMs }) => controlPlaneCpuMs), 1],
  ['own CPU ms per pod', perPod(ownCpuMs), 2],
  ['cores’ ms per pod without work', perPod(({ idleMs }) => idleMs[0]), 1],
  ['control planes’ CPU ms per pod, its end', perPod(({ endingCpuMs }) => endingCpuMs), 1],
  ['own CPU ms per pod, its end', perPod(ownEndingCpuMs), 2],
  ['cores’ ms per pod without work, its end', perPod(({ idleMs }) => idleMs[1]), 1],
  ['private MiB before', ({ before }) => before?.privateMiB, 0],
  ['private MiB with all pods', ({ ready }) => ready?.privateMiB, 0],
  ['RSS MiB with all pods', ({ ready }) => ready?.rssMiB, 0],
  ['PSS MiB with all pods', ({ ready }) => ready?.pssMiB, 0],
  ['sockets', ({ ready }) => ready?.sockets, 0],
];

export const burstBench: Bench<{ pods: number; warmUp: number }> = {
  name: 'burst',
  title: 'a Deployment from nothing to all pods Ready, and back',
  what:
    'Two control planes, ten nodes of kwok in the foreign one. The **null mirror** is the least that a virtual node can do: one creation ' +
    'over there, one status at home, no checks, no retries (`bench/pods/null-mirror.ts`). **Native** is the same Deployment in the foreign ' +
    'cluster alone. Own CPU is that of the process: up to the last Ready pod, and from the Deployment’s deletion on.',
  parameters: { pods: 1_000, warmUp: 100 },
  limits: { warmUp: { least: 0 } },
  run: async ({ parameters, rounds, say, ...given }) => {
    const bed = await Bed.up({ name: 'bench-burst', progress: say, ...given });
    try {
      const contenders: Contender[] = [...(await mirrors(bed, given)), native];
      await bed.quiet();
      // Warms up compilers and caches of every program; not counted.
      for (const contender of contenders) await burst(bed, contender, parameters.warmUp);
      const results = new Map<string, Burst[]>(contenders.map(({ name }) => [name, []]));
      for (let round = 1; round <= rounds; round++) {
        for (const contender of inTurn(contenders, round)) {
          const result = await burst(bed, contender, parameters.pods);
          results.get(contender.name)?.push(result);
          say(`round ${round}, ${contender.name}: ${result.readyPerSecond.toFixed(1)} pods/s`);
        }
      }
      say(`\n${requestTable(results, ['agent', 'null mirror'])}`);
      return burstFound(results);
    } finally {
      await bed.down();
    }
  },
};

/** The figures of several contenders' bursts, side by side. */
export function burstFound(results: Results): Found {
  const measured = FIGURES.flatMap(([figure, of, digits]) =>
    [...results].flatMap(([contender, bursts]) => {
      const values = bursts.map(of).filter((value) => value !== undefined);
      return values.length === 0 ? [] : [{ contender, figure, values, digits }];
    }),
  );
  return { measured, goals: goalsOf(results) };
}

function goalsOf(results: Results): Goal[] {
  const of = (contender: string, figure: Figure): number[] =>
    (results.get(contender) ?? []).map((one) => figure(one) ?? Number.NaN);
  const ready: Figure = ({ readyPerSecond }) => readyPerSecond;
  const gone: Figure = ({ gonePerSecond }) => gonePerSecond;
  const requests = perPod(lifeRequestsOf);
  return [
    {
      id: 'P1',
      what: 'pods/s until all are Ready, of the null mirror’s',
      values: ratios(of('agent', ready), of('null mirror', ready)),
      atLeast: 0.95,
    },
    {
      id: 'P3',
      what: 'pods/s until all are gone, of the null mirror’s',
      values: ratios(of('agent', gone), of('null mirror', gone)),
      atLeast: 0.95,
    },
    {
      id: 'P11',
      what: 'requests per pod, from creation to removal, above the null mirror’s',
      values: differences(of('agent', requests), of('null mirror', requests)),
      atMost: 1,
    },
  ];
}
