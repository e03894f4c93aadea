/** A provider with so many nodes, at rest but for its kubelets. */
import { setTimeout as sleep } from 'node:timers/promises';

import { processFigures } from '../frame/process-figures.ts';
import { type Stall, stallOf } from '../frame/stall.ts';
import { idleSample } from '../idle/figures.ts';
import type { ShapeBed } from './bed.ts';
import { addMachines, kubelets } from './nodes.ts';

/** With heartbeats only, or with nodes that come and go besides. */
export interface Phase {
  readonly heartbeats: number;
  readonly flaps: number;
  readonly cpuMsPerMinute: number;
  readonly requestsPerMinute: number;
  /** Of the object that holds milan's offer and what has become of it. */
  readonly writes: number;
  /** New ones, as rome's watch of offers brings them, and all that it brings. */
  readonly offers: number;
  readonly watchedBytes: number;
  readonly stall: Stall;
}

export interface Step {
  readonly nodes: number;
  /** From the first of the further nodes until the offer has all of them. */
  readonly growMs: number;
  readonly growOffers: number;
  readonly privateMiB: number;
  readonly rest: Phase;
  readonly flapping: Phase;
}

export interface Kubelets {
  /** Between two heartbeats of a node. */
  readonly heartbeatMs: number;
  /** Between two changes of a node that flaps. */
  readonly flapMs: number;
  /** Of each phase. */
  readonly forMs: number;
}

const SETTLE_MS = 20_000;
const OFFER_WRITE = /^(?:update|patch) peeringrequests\/status$/u;

/** @param from nodes that there are already */
export async function measureStep(bed: ShapeBed, from: number, to: number, how: Kubelets): Promise<Step> {
  const fromOffers = bed.watched.offers;
  const began = performance.now();
  await addMachines(bed.client, from, to);
  await bed.nodesOffered(to);
  const growMs = performance.now() - began;
  await sleep(SETTLE_MS);
  const growOffers = bed.watched.offers - fromOffers;
  const rest = await phase(bed, to, { ...how, flapMs: Infinity });
  const flapping = await phase(bed, to, how);
  // The last of those that flapped has just come back.
  await sleep(SETTLE_MS);
  const { privateMiB } = processFigures(bed.pid);
  return { nodes: to, growMs, growOffers, privateMiB, rest, flapping };
}

async function phase(bed: ShapeBed, count: number, how: Kubelets): Promise<Phase> {
  await stallOf(bed.pid, bed.stallFile);
  const fromMs = Date.now();
  const { bytes, offers } = bed.watched;
  const before = idleSample(bed.pid);
  const written = await kubelets(bed.client, { count, ...how });
  const after = idleSample(bed.pid);
  const minutes = (after.atMs - before.atMs) / 60_000;
  const requests = bed.requestsBetween(fromMs, Date.now());
  return {
    ...written,
    cpuMsPerMinute: (after.cpuNs - before.cpuNs) / 1e6 / minutes,
    requestsPerMinute: [...requests.values()].reduce((sum, one) => sum + one, 0) / minutes,
    writes: writesIn(requests),
    offers: bed.watched.offers - offers,
    watchedBytes: bed.watched.bytes - bytes,
    stall: await stallOf(bed.pid, bed.stallFile),
  };
}

const writesIn = (requests: ReadonlyMap<string, number>): number =>
  [...requests].reduce((sum, [what, count]) => sum + (OFFER_WRITE.test(what) ? count : 0), 0);
