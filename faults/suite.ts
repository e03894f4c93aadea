/** Both beds, beside each other: a peering waits most of the time, and leaves the processors to the pods. */
import { campaign, type CampaignOptions } from './campaign.ts';
import { PeersBed, peerPlans } from './peers/bed.ts';
import { OPERATIONS as PEER_OPERATIONS } from './peers/pair.ts';
import { listed, type RunPlan } from './plan.ts';
import { PodsBed } from './pods/bed.ts';
import { podPlans, podWorkers } from './pods/work.ts';
import type { Edit } from '../lab/compiled-program.ts';

export interface SuiteOptions {
  /** Beginning of the names of its labs. */
  readonly lab: string;
  /** At most so many. */
  readonly podRuns: number;
  readonly peerRuns: number;
  readonly seed: number;
  /** These and no others, unless there are none. */
  readonly only: readonly RunPlan[];
  /** Runs of pods beside each other. */
  readonly lanes: number;
  /** Each n-th write is a point to kill at. */
  readonly podStride: number;
  readonly peerStride: number;
  readonly checkout: string | undefined;
  readonly edits: readonly Edit[];
  /** How long everything may take to come to rest after a fault. */
  readonly patienceSeconds: number;
  readonly progress: (line: string) => void;
  readonly onResult: CampaignOptions['onResult'];
  readonly isOver: () => boolean;
}

/** Resolves with what ended a part early: a fault suite that could not go on has shown nothing. */
export async function suite(options: SuiteOptions): Promise<string[]> {
  const isOfPeers = (plan: RunPlan): boolean =>
    plan.kind === 'kill' && (PEER_OPERATIONS as readonly string[]).includes(plan.operation);
  const { only } = options;
  const [peers, pods] = [only.filter(isOfPeers), only.filter((plan) => !isOfPeers(plan))];
  const isAll = only.length === 0;
  const parts = [
    ...((isAll && options.podRuns > 0) || pods.length > 0 ? [podPart(options, pods)] : []),
    ...((isAll && options.peerRuns > 0) || peers.length > 0 ? [peerPart(options, peers)] : []),
  ];
  const ended = await Promise.allSettled(parts);
  return ended.flatMap((part) => (part.status === 'rejected' ? [String(part.reason)] : []));
}

async function podPart(options: SuiteOptions, only: readonly RunPlan[]): Promise<void> {
  const { lab, podRuns, seed, podStride, checkout, edits, patienceSeconds, progress, onResult, isOver } =
    options;
  const lanes = only.length > 0 ? Math.min(only.length, options.lanes) : options.lanes;
  const bed = await PodsBed.up({ name: lab, lanes, checkout, edits, patienceSeconds, progress });
  try {
    const some = listed(only);
    await campaign({
      workers: await podWorkers(bed),
      lists: only.length > 0 ? bed.lanes.map(() => some) : podPlans({ seed, lanes, stride: podStride }),
      runs: only.length > 0 ? only.length : podRuns,
      onResult,
      isOver,
    });
  } finally {
    await bed.down();
  }
}

async function peerPart(options: SuiteOptions, only: readonly RunPlan[]): Promise<void> {
  const { lab, peerRuns, seed, peerStride, checkout, edits, progress, onResult, isOver } = options;
  const bed = await PeersBed.up({ name: `${lab}-peers`, checkout, edits, progress });
  try {
    await campaign({
      workers: [bed.worker],
      lists: only.length > 0 ? [listed(only)] : peerPlans({ seed, stride: peerStride }),
      runs: only.length > 0 ? only.length : peerRuns,
      onResult,
      isOver,
    });
  } finally {
    await bed.down();
  }
}
