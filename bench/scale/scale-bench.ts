/** Whether what an agent costs grows with its pods, and no faster: up to 100,000 pods of ten virtual nodes. */
import { freeMemoryProblem } from '../frame/machine.ts';
import type { Bench, Found } from '../frame/bench.ts';
import { ScaleBed } from './bed.ts';
import { CHANGES, measureStep, type Step } from './measure.ts';
import { found, stepText } from './found.ts';

/** Steps by which the number grows, as shares of the largest. */
const SHARES = [0.1, 0.3, 1];
/** Control planes and this program, before there are pods. */
const BASE_MIB = 2_000;
const MIB_PER_AGENT = 60;
/** Of both API servers, both etcds and the agents; measured. */
const MIB_PER_POD = 0.15;

export const scaleBench: Bench<{ nodes: number; pods: number; seeds: number; rest: number }> = {
  name: 'scale',
  title: 'a hundred thousand pods of ten virtual nodes',
  what:
    'Ten virtual nodes of one foreign API server, each with an agent of its own. A few pods (`seeds`) of each node are made as pods are made; the ' +
    'others are copies of these and of their bodies, written into both etcds while no agent runs; that agents write nothing for them shows ' +
    'that they are as an agent would have made them. In three steps up to `pods`, all agents begin anew, first one after the other, then all at ' +
    'once; they rest (`rest`, seconds); and single pods change over there or are deleted at home. Controllers, schedulers and kubelets are off: ' +
    'the benchmark plays the kubelet of a pod that ends.',
  parameters: { nodes: 10, pods: 100_000, seeds: 50, rest: 30 },
  problem: ({ nodes, pods, seeds }) => {
    // Copies change and are deleted, one of each node in turn.
    const least = Math.ceil((nodes * (seeds + CHANGES)) / Math.min(...SHARES));
    if (pods < least)
      return `${pods} pods are too few for ${seeds} seeds of ${nodes} nodes: at least ${least}`;
    const problem = freeMemoryProblem(BASE_MIB + nodes * MIB_PER_AGENT + pods * MIB_PER_POD);
    return problem === undefined ? undefined : `${pods} pods do not fit: ${problem}`;
  },
  run: async ({ parameters: { nodes, pods, seeds, rest }, rounds, nodeFlags, say }): Promise<Found> => {
    const runs: Step[][] = [];
    for (let round = 1; round <= rounds; round++) {
      const bed = await ScaleBed.up({
        nodes,
        seeds,
        mostPods: Math.ceil(pods / nodes) + seeds,
        nodeFlags,
        say,
      });
      try {
        const steps: Step[] = [];
        for (const share of SHARES) {
          await bed.fill(Math.round((pods * share) / nodes));
          const step = await measureStep(bed, rest * 1000, say);
          say(stepText(step));
          steps.push(step);
        }
        runs.push(steps);
      } finally {
        await bed.down();
      }
    }
    return found(runs);
  },
};
