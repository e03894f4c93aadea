import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';

import { campaign, type CampaignOptions, type RunResult, type Worker } from '../../../faults/campaign.ts';
import { listed, nameOf, planOf, type Plans, type RunPlan } from '../../../faults/plan.ts';

const VIOLATION = { invariant: 'I7', what: 'no rest' };

const resultOf = (plan: RunPlan, more: Partial<RunResult> = {}): RunResult => ({
  name: nameOf(plan),
  violations: [],
  kills: 0,
  faults: new Map(),
  reached: true,
  seconds: 0,
  ...more,
});

/** Of random runs with these seeds. */
const list = (...seeds: readonly number[]): Plans => listed(seeds.map((seed) => ({ kind: 'random', seed })));
const seedsOf = (names: readonly string[]): number[] => names.map((name) => Number(name.split(':')[1]));

/** What was reported, and what each worker has carried out. */
async function carriedOut(
  options: Pick<CampaignOptions, 'lists' | 'runs' | 'isOver'>,
  does: readonly Worker[],
): Promise<{ reported: number[]; done: number[][] }> {
  const reported: string[] = [];
  const done: string[][] = does.map(() => []);
  const workers = does.map<Worker>((worker, index) => async (plan) => {
    done[index]?.push(nameOf(plan));
    return worker(plan);
  });
  await campaign({ ...options, workers, onResult: ({ name }) => void reported.push(name) });
  return { reported: seedsOf(reported), done: done.map(seedsOf) };
}

const good: Worker = async (plan) => resultOf(plan);

test('one worker takes one list after another', async () => {
  const { reported } = await carriedOut({ lists: [list(1, 2), list(3), list(), list(4)], runs: 99 }, [good]);
  expect(reported).toEqual([1, 2, 3, 4]);
});

test('workers have a list each; one that is done takes the next', async () => {
  const gate = Promise.withResolvers<void>();
  const slow: Worker = async (plan) => {
    await gate.promise;
    return resultOf(plan);
  };
  const quick: Worker = async (plan) => {
    if (nameOf(plan) === 'random:4') gate.resolve();
    return resultOf(plan);
  };
  const { done } = await carriedOut({ lists: [list(1, 2), list(3), list(4)], runs: 99 }, [slow, quick]);
  expect(done).toEqual([
    [1, 2],
    [3, 4],
  ]);
});

test('a list that is there several times is shared, and no run of it is carried out twice', async () => {
  const both = list(1, 2, 3, 4, 5);
  const { reported, done } = await carriedOut({ lists: [both, both], runs: 99 }, [good, good]);
  expect(reported.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
  expect(done.map(({ length }) => length > 0)).toEqual([true, true]);
});

test.each([0, 1, 3])('at most %i runs, also of several workers', async (runs) => {
  const { reported } = await carriedOut({ lists: [list(1, 2, 3), list(4, 5, 6)], runs }, [good, good]);
  expect(reported).toHaveLength(runs);
});

test('a run that was not reached does not count', async () => {
  const even: Worker = async (plan) =>
    resultOf(plan, { reached: plan.kind === 'random' && plan.seed % 2 === 0 });
  const { reported, done } = await carriedOut({ lists: [list(1, 2, 3, 4, 5, 6)], runs: 2 }, [even]);
  expect([reported, done]).toEqual([[2, 4], [[1, 2, 3, 4]]]);
});

test('but what went wrong in it is reported, and counts', async () => {
  const wrong: Worker = async (plan) => resultOf(plan, { reached: false, violations: [VIOLATION] });
  expect((await carriedOut({ lists: [list(1, 2, 3)], runs: 2 }, [wrong])).reported).toEqual([1, 2]);
});

test('a list learns whether its run was reached', async () => {
  const told: boolean[] = [];
  const asking = function* (): Plans {
    for (const name of ['random:1', 'random:2', 'random:3']) told.push(yield planOf(name) as RunPlan);
  };
  const first: Worker = async (plan) => resultOf(plan, { reached: nameOf(plan) === 'random:1' });
  await carriedOut({ lists: [asking()], runs: 99 }, [first]);
  expect(told).toEqual([true, false, false]);
});

test('when it is over, no run begins', async () => {
  let runs = 0;
  const counting: Worker = async (plan) => {
    runs++;
    return resultOf(plan);
  };
  const options = { lists: [list(1, 2, 3), list(4)], runs: 99, isOver: () => runs === 2 };
  expect((await carriedOut(options, [counting])).reported).toEqual([1, 2]);
});

test('a worker that fails ends it with the name of the run, when the runs of the others have ended', async () => {
  const gate = Promise.withResolvers<void>();
  const ended: number[] = [];
  const slow: Worker = async (plan) => {
    await gate.promise;
    // Until the failure is known.
    await setImmediate();
    ended.push(1);
    return resultOf(plan);
  };
  const failing: Worker = async () => {
    gate.resolve();
    throw new Error('the lab has gone');
  };
  const all = carriedOut({ lists: [list(1, 2, 3), list(4, 5)], runs: 99 }, [slow, failing]);
  await expect(all).rejects.toThrow('random:4: Error: the lab has gone');
  expect(ended).toEqual([1]);
});
