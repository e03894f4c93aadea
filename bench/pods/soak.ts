/** Pods coming, rolling over and going for some minutes, while the agent's memory, files and sockets are watched. */
import { setTimeout as sleep } from 'node:timers/promises';

import { pods } from '../../src/api/resources.ts';
import type { Bed } from './bed.ts';
import { DEPLOYMENT, deployment, type Contender } from './contender.ts';
import type { ProcessFigures } from '../frame/process-figures.ts';
import type { Program } from '../frame/program.ts';
import { median, slope } from '../frame/statistics.ts';

export interface Sample extends ProcessFigures {
  readonly minutes: number;
}

export interface Soak {
  readonly samples: readonly Sample[];
  /** Full cycles: up, rolled over, down to nothing. */
  readonly cycles: number;
  /** Remote pods made. */
  readonly pods: number;
}

export interface SoakOptions {
  readonly minutes: number;
  readonly pods: number;
  /** Called about once a minute. */
  readonly progress?: (sample: Sample, cycles: number) => void;
}

const SAMPLE_MS = 1_000;
const STEP_TIMEOUT_MS = 180_000;

export async function soak(
  bed: Bed,
  contender: Contender & { program: Program },
  options: SoakOptions,
): Promise<Soak> {
  const began = performance.now();
  const end = began + options.minutes * 60_000;
  const samples: Sample[] = [];
  const sampling = new AbortController();
  const cycle = { count: 0 };
  const sampler = sample(contender.program, samples, {
    began,
    signal: sampling.signal,
    seen: (one) => options.progress?.(one, cycle.count),
  });
  try {
    for (; performance.now() < end; cycle.count++) await upAndDown(bed, contender, options.pods);
  } finally {
    sampling.abort();
    await sampler;
  }
  return { samples, cycles: cycle.count, pods: cycle.count * options.pods * 2 };
}

async function sample(
  program: Program,
  samples: Sample[],
  { began, signal, seen }: { began: number; signal: AbortSignal; seen: (sample: Sample) => void },
): Promise<void> {
  for (let told = 0; !signal.aborted;) {
    const one = { minutes: (performance.now() - began) / 60_000, ...program.figures };
    samples.push(one);
    if (one.minutes >= told) {
      seen(one);
      told++;
    }
    await sleep(SAMPLE_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function upAndDown(bed: Bed, contender: Contender, count: number): Promise<void> {
  bed.apply('home', JSON.stringify(deployment(contender, count)));
  await settled(bed, contender, count);
  bed.apply('home', JSON.stringify(restarted(deployment(contender, count))));
  await settled(bed, contender, count);
  bed.apply('home', JSON.stringify(deployment(contender, 0)));
  await settled(bed, contender, 0);
  await bed.until('remote pods gone', STEP_TIMEOUT_MS, async () => {
    const { items } = await bed.clients.foreign.list(pods, { namespace: contender.tenant ?? '', limit: 1 });
    return items.length === 0;
  });
}

interface DeploymentState {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
  };
}

async function settled(bed: Bed, { namespace }: Contender, count: number): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${DEPLOYMENT}`;
  await bed.until(`${count} pods of ${DEPLOYMENT}`, STEP_TIMEOUT_MS, async () => {
    const { metadata, status } = (await bed.cluster('home').api.get<DeploymentState>(path)) ?? {};
    if (status?.observedGeneration !== metadata?.generation) return false;
    return [status?.replicas, status?.updatedReplicas, status?.readyReplicas].every(
      (have = 0) => have === count,
    );
  });
}

/** As `kubectl rollout restart` does. */
function restarted(object: object): object {
  const copy = structuredClone(object) as {
    spec: { template: { metadata: { annotations: Record<string, string> } } };
  };
  copy.spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt'] = String(performance.now());
  return copy;
}

/** How one figure went: medians of the first and the last third, and its growth in an hour. */
export interface Course {
  readonly first: number;
  readonly last: number;
  readonly perHour: number;
  readonly flat: boolean;
}

/** Compilers and caches grow at first: the first fifth does not count. */
const WARM_UP_SHARE = 0.2;
/** The rule: the median of the last third is at most a tenth above that of the first third. */
const FLAT_FACTOR = 1.1;
export const FLAT_RULE =
  'flat: after the first fifth, the median of the last third is at most 10 % above that of the first third';

export function course(samples: readonly Sample[], figure: (sample: Sample) => number): Course {
  const counted = samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
  const third = Math.max(1, Math.floor(counted.length / 3));
  const first = median(counted.slice(0, third).map(figure));
  const last = median(counted.slice(-third).map(figure));
  const perHour = slope(counted.map((one) => [one.minutes / 60, figure(one)] as const));
  return { first, last, perHour, flat: last <= first * FLAT_FACTOR };
}
