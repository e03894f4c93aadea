/** One step: with so many pods of each node, all agents begin anew, rest, and carry single changes. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Program } from '../frame/program.ts';
import { type Stall, stallOf } from '../frame/stall.ts';
import { median } from '../frame/statistics.ts';
import { idleRate, idleSample } from '../idle/figures.ts';
import { type RequestCounts, writes } from '../pods/api-requests.ts';
import { begin, requestsBetween, REST_MS, stallFile } from '../pods/restart.ts';
import { type Place, podsOf, type ScaleBed } from './bed.ts';
import { timedDeletion, timedStatus } from './changes.ts';

export interface Step {
  /** Of all nodes together, when it began. */
  readonly pods: number;
  /** One agent after another, each alone at its start: of all of them. */
  readonly oneByOneMs: number;
  readonly oneByOneCpuMs: number;
  /** Of both control planes meanwhile. */
  readonly serversCpuMs: number;
  /** From the start of the first until the last is done. */
  readonly atOnceMs: number;
  /** Of all agents in both restarts and the rest after them. */
  readonly writes: number;
  readonly requests: RequestCounts;
  /** The worst of all agents, in the restart one by one. */
  readonly stall: Stall;
  /** The worst, when all start at once: they share the cores. */
  readonly stallAtOnce: Stall;
  /** Of one agent, at rest. */
  readonly privateMiB: number;
  readonly restCpuPercent: number;
  /** Medians of some changes. */
  readonly statusMs: number;
  readonly deletionMs: number;
  /** By agents, for each change. */
  readonly statusRequests: number;
  readonly deletionRequests: number;
}

export const CHANGES = 10;
/** Ten agents that are asked twenty times a second would be busy with that. */
const AT_ONCE_POLL_MS = 500;
/** What a change brings about is asked for within this time. */
const AFTER_MS = 3_000;
/** Not the list by which an agent probes the API server, nor watches that end. */
const OF_SINGLE_PODS = /^(?!LIST|WATCH)\S+ pods/u;

interface Running {
  readonly place: Place;
  readonly program: Program;
}

export async function measureStep(bed: ScaleBed, restMs: number, say: (line: string) => void): Promise<Step> {
  const { places } = bed;
  const count = places.reduce((sum, place) => sum + podsOf(place), 0);
  const fromMs = Date.now();
  const serversBefore = bed.bed.controlPlaneCpuMs;
  const oneByOne = await startOneByOne(bed, say);
  const serversCpuMs = bed.bed.controlPlaneCpuMs - serversBefore;
  await sleep(REST_MS);
  await stopAll(oneByOne.running);
  await bed.bed.quiet();
  const atOnce = await startAtOnce(bed);
  say(`${count} pods: all agents at once in ${(atOnce.ms / 1000).toFixed(1)} s`);
  await sleep(REST_MS);
  const requests = requestsBetween(bed.bed, fromMs, Date.now());
  const restCpuPercent = await resting(atOnce.running, restMs);
  const privateMiB = mean(atOnce.running.map(({ program }) => program.figures.privateMiB));
  const statuses = await changes(bed, async (place, index) => timedStatus(bed, place, index + 1));
  const deletions = await changes(bed, async (place) => timedDeletion(bed, place));
  await stopAll(atOnce.running);
  return {
    pods: count,
    oneByOneMs: oneByOne.ms,
    oneByOneCpuMs: oneByOne.cpuMs,
    serversCpuMs,
    atOnceMs: atOnce.ms,
    writes: writes(requests),
    requests,
    stall: oneByOne.stall,
    stallAtOnce: atOnce.stall,
    privateMiB,
    restCpuPercent,
    statusMs: statuses.ms,
    statusRequests: statuses.requests,
    deletionMs: deletions.ms,
    deletionRequests: deletions.requests,
  };
}

interface Started {
  readonly running: readonly Running[];
  readonly ms: number;
  readonly cpuMs: number;
  readonly stall: Stall;
}

async function startOneByOne(bed: ScaleBed, say: (line: string) => void): Promise<Started> {
  const running: Running[] = [];
  const each: Omit<Started, 'running'>[] = [];
  for (const place of bed.places) {
    const { program, ms, cpuMs } = await begin(place.agent, podsOf(place));
    running.push({ place, program });
    const stall = await stallOf(program.pid, stallFile(bed.bed, place.name));
    each.push({ ms, cpuMs, stall });
    say(
      `${place.name}: ${podsOf(place)} pods in ${ms.toFixed(0)} ms, longest stall ${stall.longestMs.toFixed(0)} ms`,
    );
  }
  const sum = (of: (one: Omit<Started, 'running'>) => number): number =>
    each.reduce((total, one) => total + of(one), 0);
  return { running, ms: sum(({ ms }) => ms), cpuMs: sum(({ cpuMs }) => cpuMs), stall: worst(each) };
}

async function startAtOnce(bed: ScaleBed): Promise<Started> {
  const began = performance.now();
  const running = await Promise.all(
    bed.places.map(async (place) => ({
      place,
      ...(await begin(place.agent, podsOf(place), AT_ONCE_POLL_MS)),
    })),
  );
  const ms = performance.now() - began;
  const each: { stall: Stall }[] = [];
  for (const { place, program } of running)
    each.push({ stall: await stallOf(program.pid, stallFile(bed.bed, place.name)) });
  return { running, ms, cpuMs: running.reduce((sum, { cpuMs }) => sum + cpuMs, 0), stall: worst(each) };
}

const worst = (each: readonly { stall: Stall }[]): Stall => ({
  startMs: Math.max(...each.map(({ stall }) => stall.startMs)),
  p999Ms: Math.max(...each.map(({ stall }) => stall.p999Ms)),
  longestMs: Math.max(...each.map(({ stall }) => stall.longestMs)),
});

async function stopAll(running: readonly Running[]): Promise<void> {
  await Promise.all(running.map(async ({ program }) => program.stop()));
}

/** Of one agent, in percent of a core. */
async function resting(running: readonly Running[], restMs: number): Promise<number> {
  const before = running.map(({ program: { pid } }) => ({ pid, sample: idleSample(pid) }));
  await sleep(restMs);
  return mean(before.map(({ pid, sample }) => idleRate(sample, idleSample(pid)).cpuPercent));
}

/** One after the other, each on the next node. */
async function changes(
  { bed, places }: ScaleBed,
  change: (place: Place, index: number) => Promise<number>,
): Promise<{ ms: number; requests: number }> {
  const fromMs = Date.now();
  const times: number[] = [];
  for (let index = 0; index < CHANGES; index++) {
    const place = places[index % places.length];
    if (place !== undefined) times.push(await change(place, index));
  }
  await sleep(AFTER_MS);
  const requests = [...requestsBetween(bed, fromMs, Date.now())]
    .filter(([key]) => OF_SINGLE_PODS.test(key))
    .reduce((sum, [, one]) => sum + one, 0);
  return { ms: median(times), requests: requests / CHANGES };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
