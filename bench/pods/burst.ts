/** One Deployment from nothing to all pods Ready where it was made, and back to nothing on both sides. */
import { pods } from '../../src/api/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { difference, requestCounts, type RequestCounts } from './api-requests.ts';
import type { Bed } from './bed.ts';
import { DEPLOYMENT, deployment, type Contender } from './contender.ts';
import { idleMs, type ProcessFigures } from '../frame/process-figures.ts';
import { type PodListener, PodWatch } from './pod-watch.ts';

export interface Burst {
  readonly pods: number;
  /** From the first pod seen to the last seen Ready, at the cluster of the Deployment. */
  readonly readyPerSecond: number;
  /** From the Deployment's deletion to the last pod gone on both sides. */
  readonly gonePerSecond: number;
  /** Answered by both API servers until all were Ready, controllers' requests included. */
  readonly requests: RequestCounts;
  /** The same, until all were gone on both sides. */
  readonly lifeRequests: RequestCounts;
  readonly controlPlaneCpuMs: number;
  /** The same, from the Deployment's deletion to the last pod gone. */
  readonly endingCpuMs: number;
  /** Time that cores had nothing to do: until all were Ready, and until all were gone. */
  readonly idleMs: readonly [number, number];
  /** Figures of the contender's process: before, and when all pods were Ready and it was idle. */
  readonly before?: ProcessFigures;
  readonly ready?: ProcessFigures;
  /** When all pods were gone. */
  readonly gone?: ProcessFigures;
}

const TIMEOUT_MS = 300_000;
const REST_MS = 2_000;

/** @param whenReady called while all pods are Ready */
export async function burst(
  bed: Bed,
  contender: Contender,
  count: number,
  whenReady: () => Promise<void> = async () => Promise.resolve(),
): Promise<Burst> {
  const counter = new ReadyCounter();
  const watch = await PodWatch.start(bed, contender, counter.see);
  try {
    await bed.quiet();
    const before = await snapshot(bed, contender);
    bed.apply(contender.cluster, JSON.stringify(deployment(contender, count)));
    await bed.until(`${count} pods Ready (${contender.name})`, TIMEOUT_MS, () => counter.ready >= count);
    const readyPerSecond = (count * 1000) / counter.elapsedMs;
    const controlPlaneCpuMs = bed.controlPlaneCpuMs - before.controlPlaneCpuMs;
    const readyIdleMs = idleMs() - before.idleMs;
    await systemClock.sleep(REST_MS);
    const after = await snapshot(bed, contender);
    await whenReady();
    const [began, endingFrom, idleFrom] = [performance.now(), bed.controlPlaneCpuMs, idleMs()];
    await remove(bed, contender);
    await bed.until('all pods gone', TIMEOUT_MS, () => watch.size === 0);
    await remoteGone(bed, contender);
    const gonePerSecond = (count * 1000) / (performance.now() - began);
    const endingCpuMs = bed.controlPlaneCpuMs - endingFrom;
    const goneIdleMs = idleMs() - idleFrom;
    await systemClock.sleep(REST_MS);
    const gone = await snapshot(bed, contender);
    return {
      pods: count,
      readyPerSecond,
      gonePerSecond,
      requests: difference(before.requests, after.requests),
      lifeRequests: difference(before.requests, gone.requests),
      controlPlaneCpuMs,
      endingCpuMs,
      idleMs: [readyIdleMs, goneIdleMs],
      ...(before.figures === undefined ? {} : { before: before.figures }),
      ...(after.figures === undefined ? {} : { ready: after.figures }),
      ...(gone.figures === undefined ? {} : { gone: gone.figures }),
    };
  } finally {
    await watch.stop();
  }
}

interface Snapshot {
  readonly requests: RequestCounts;
  readonly controlPlaneCpuMs: number;
  readonly idleMs: number;
  readonly figures: ProcessFigures | undefined;
}

async function snapshot(bed: Bed, { program }: Contender): Promise<Snapshot> {
  const [home, foreign] = await Promise.all([
    requestCounts(bed.cluster('home').api),
    requestCounts(bed.cluster('foreign').api),
  ]);
  const requests = new Map([
    ...[...home].map(([key, count]) => [`${key} (home)`, count] as const),
    ...[...foreign].map(([key, count]) => [`${key} (foreign)`, count] as const),
  ]);
  return {
    requests,
    controlPlaneCpuMs: bed.controlPlaneCpuMs,
    idleMs: idleMs(),
    figures: program?.figures,
  };
}

async function remove(bed: Bed, { cluster, namespace }: Contender): Promise<void> {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${DEPLOYMENT}`;
  const { status, body } = await bed.cluster(cluster).api.call('DELETE', path, {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    propagationPolicy: 'Background',
  });
  if (status > 299) throw new Error(`DELETE ${path}: ${status} ${body}`);
}

export async function remoteGone(bed: Bed, { tenant }: Contender): Promise<void> {
  if (tenant === undefined) return;
  await bed.until(`no pods left in ${tenant}`, TIMEOUT_MS, async () => {
    const { items } = await bed.clients.foreign.list(pods, { namespace: tenant, limit: 1 });
    return items.length === 0;
  });
}

/** Counts pods as they appear and turn Ready. */
class ReadyCounter {
  readonly #ready = new Set<string>();
  #first: number | undefined;
  #last = 0;

  get ready(): number {
    return this.#ready.size;
  }

  get elapsedMs(): number {
    return this.#last - (this.#first ?? this.#last);
  }

  readonly see: PodListener = (key, pod) => {
    this.#first ??= performance.now();
    if (pod?.ready !== true) {
      this.#ready.delete(key);
    } else if (!this.#ready.has(key)) {
      this.#ready.add(key);
      this.#last = performance.now();
    }
  };
}
