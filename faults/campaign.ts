/** Many runs: workers take them from lists, beside each other. */
import type { Violation } from './auditor-process.ts';
import { nameOf, type Plans, type RunPlan } from './plan.ts';

export interface RunResult {
  readonly name: string;
  readonly violations: readonly Violation[];
  readonly kills: number;
  /** Faults by kind, kills included. */
  readonly faults: ReadonlyMap<string, number>;
  /** False: the write at which to kill was never made, so that no fault was tried. */
  readonly reached: boolean;
  readonly seconds: number;
}

export type Worker = (plan: RunPlan) => Promise<RunResult>;

export interface CampaignOptions {
  /** Each carries out one run at a time. */
  readonly workers: readonly Worker[];
  /** A worker takes one list after another; the same one may be in it several times, for several workers. */
  readonly lists: readonly Plans[];
  /** At most so many runs. */
  readonly runs: number;
  readonly onResult: (result: RunResult) => void;
  /** Asked before each run. */
  readonly isOver?: () => boolean;
}

/**
 * A run that was not reached does not count, unless something is wrong even so.
 *
 * @throws what a worker could not do, when the runs of the others have ended; no more are begun
 */
export async function campaign(options: CampaignOptions): Promise<void> {
  const { workers, runs, onResult, isOver = () => false } = options;
  const lists = [...options.lists];
  let begun = 0;
  let hasFailed = false;
  const next = (list: Plans, reached: boolean): RunPlan | undefined => {
    if (begun >= runs || hasFailed || isOver()) return undefined;
    const { value } = list.next(reached);
    if (value !== undefined) begun++;
    return value ?? undefined;
  };
  const work = async (worker: Worker): Promise<void> => {
    for (let list = lists.shift(); list !== undefined; list = lists.shift()) {
      let reached = true;
      for (let plan = next(list, reached); plan !== undefined; plan = next(list, reached)) {
        const result = await runOrFail(worker, plan);
        ({ reached } = result);
        if (reached || result.violations.length > 0) onResult(result);
        else begun--;
      }
    }
  };
  const ended = await Promise.allSettled(
    workers.map(async (worker) =>
      work(worker).catch((error: unknown) => {
        hasFailed = true;
        throw error;
      }),
    ),
  );
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function runOrFail(worker: Worker, plan: RunPlan): Promise<RunResult> {
  try {
    return await worker(plan);
  } catch (error) {
    throw new Error(`${nameOf(plan)}: ${String(error)}`, { cause: error });
  }
}
