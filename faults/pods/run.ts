/** One run in one lane: somebody does something, something goes wrong meanwhile, and everything comes right again. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Violation } from '../auditor-process.ts';
import type { RunResult } from '../campaign.ts';
import { type Chance, chanceOf, seedOf } from '../chance.ts';
import { type KillPlan, nameOf, type RunPlan } from '../plan.ts';
import type { Fault } from '../proxy/fault.ts';
import { killAtWrite } from '../proxy/kill-at-write.ts';
import type { FaultProxy } from '../proxy/proxy.ts';
import { type Lane, sideOf } from './lane.ts';
import { type RandomFault, randomRun } from './random.ts';
import { NEEDS, operationOf, type Workload } from './workload.ts';

export async function run(lane: Lane, workload: Workload, plan: RunPlan): Promise<RunResult> {
  const began = performance.now();
  const name = nameOf(plan);
  const operation = plan.kind === 'kill' ? operationOf(plan.operation) : randomRun(plan.seed).operation;
  await workload.bring(NEEDS[operation]);
  await lane.auditor.begin(name);
  const before = countsOf(lane);
  let violations: readonly Violation[];
  let happened: Happened = { kills: 0, reached: true };
  try {
    happened =
      plan.kind === 'kill' ? await killed(lane, workload, plan) : await disturbed(lane, workload, plan.seed);
    violations = await lane.auditor.settle();
    if (happened.wrong !== undefined) violations = [...violations, happened.wrong];
  } finally {
    lane.calm();
  }
  const untidy = await doneOrWrong(lane, async () => workload.tidy());
  if (untidy !== undefined) violations = [...violations, untidy];
  const faults = new Map(
    [...countsOf(lane)].map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const),
  );
  for (const kind of happened.others ?? []) faults.set(kind, (faults.get(kind) ?? 0) + 1);
  faults.set('kill', happened.kills);
  const seconds = (performance.now() - began) / 1000;
  return { name, violations, kills: happened.kills, faults, reached: happened.reached, seconds };
}

interface Happened {
  readonly kills: number;
  readonly reached: boolean;
  /** Faults that no proxy has counted. */
  readonly others?: readonly string[];
  /** It never came to what was asked for. */
  readonly wrong?: Violation;
}

/** Kills the agent at its k-th write to one side, before or after the API server has carried it out, and starts it again. */
async function killed(lane: Lane, workload: Workload, plan: KillPlan): Promise<Happened> {
  const operation = operationOf(plan.operation);
  const restarted = killAtWrite(lane.proxies[sideOf(plan.side)], plan, async () => lane.restarted());
  const wrong = await doneOrWrong(lane, async () => {
    await workload.begin(operation);
    await workload.done(operation);
  });
  const reached = await restarted();
  lane.calm();
  return { kills: reached ? 1 : 0, reached, ...(wrong !== undefined && { wrong }) };
}

/** Undefined when it is done. That it never was counts against I7: everything converges. */
async function doneOrWrong(lane: Lane, work: () => Promise<void>): Promise<Violation | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return { invariant: 'I7', what: `${String(error)}\nthe end of the agent's log:\n${lane.agent.tail()}` };
  }
}

async function disturbed(lane: Lane, workload: Workload, seed: number): Promise<Happened> {
  const { operation, fault, lastsMs } = randomRun(seed);
  const ending = begin(lane, fault, chanceOf(seedOf(seed, 'moments')));
  const asked = workload.begin(operation);
  asked.catch(() => undefined);
  await sleep(lastsMs);
  const { kills, others } = await ending();
  lane.calm();
  const wrong = await doneOrWrong(lane, async () => {
    await asked;
    await workload.done(operation);
  });
  return { kills, reached: true, others, ...(wrong !== undefined && { wrong }) };
}

type Ending = () => Promise<{ kills: number; others: readonly string[] }>;
const NOTHING: Ending = async () => Promise.resolve({ kills: 0, others: [] });

/** Begins the fault; what is returned ends it. */
function begin(lane: Lane, fault: RandomFault, chance: Chance): Ending {
  const proxies = fault.sides.map((side) => lane.proxies[side]);
  switch (fault.kind) {
    case 'requests':
      for (const proxy of proxies)
        proxy.judge((asked) => {
          const isMeant = fault.of === 'all' || (fault.of === 'writes' ? asked.isWrite : asked.isList);
          return isMeant && !asked.isWatch && chance.below(100) < fault.percent ? fault.fault : undefined;
        });
      return NOTHING;
    case 'watches':
      for (const proxy of proxies) proxy.disturbWatches(fault.fault);
      return NOTHING;
    case 'cold':
      return startedCold(lane, proxies, fault.fault);
    case 'away':
      for (const proxy of proxies) {
        proxy.judge(() => ({ kind: 'silence' }));
        proxy.disturbWatches({ kind: 'silence' });
      }
      return async () => Promise.resolve({ kills: 0, others: ['partition'] });
    case 'cut':
      return async () => {
        for (const proxy of proxies) proxy.cutAll();
        return Promise.resolve({ kills: 0, others: [] });
      };
    case 'stop':
      lane.agent.signal('SIGSTOP');
      return async () => {
        lane.agent.signal('SIGCONT');
        return Promise.resolve({ kills: 0, others: ['stop'] });
      };
    default:
      return killedAgain(lane, chance);
  }
}

/** How long a program may take to its first list, and what comes after it has the fault as well. */
const FIRST_LIST_MS = 30_000;
const LISTS_MS = 500;

/** Lists have the fault from the start of a program on, however long it takes to come to the first one. */
function startedCold(lane: Lane, proxies: readonly FaultProxy[], fault: Fault): Ending {
  const met = Promise.withResolvers<void>();
  for (const proxy of proxies)
    proxy.judge(({ isList }) => {
      if (!isList) return undefined;
      met.resolve();
      return fault;
    });
  const restarted = lane.restarted();
  restarted.catch(() => undefined);
  return async () => {
    await restarted;
    await Promise.race([met.promise, sleep(FIRST_LIST_MS)]);
    await sleep(LISTS_MS);
    return { kills: 1, others: [] };
  };
}

/** Kills the agent again and again at random moments, until it is told to end. */
function killedAgain(lane: Lane, chance: Chance): Ending {
  const over = new AbortController();
  let kills = 0;
  const killing = (async (): Promise<void> => {
    while (!over.signal.aborted) {
      await sleep(chance.between(200, 1_800));
      await lane.restarted();
      kills++;
    }
  })();
  killing.catch(() => undefined);
  return async () => {
    over.abort();
    await killing;
    return { kills, others: [] };
  };
}

function countsOf(lane: Lane): Map<string, number> {
  const sum = new Map<string, number>();
  for (const { counts } of Object.values(lane.proxies))
    for (const [kind, count] of counts) sum.set(kind, (sum.get(kind) ?? 0) + count);
  return sum;
}
