/** P12: from what `tributary peer` writes to a virtual node that is Ready. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Bench, Found, Measured } from '../frame/bench.ts';
import { cpuMs } from '../frame/process-figures.ts';
import { median } from '../frame/statistics.ts';
import { PeeringBed } from './bed.ts';
import { LAST, STEPS, Watched, type Timeline } from './timeline.ts';

interface Peered {
  readonly timeline: Timeline;
  /** Of both processes. */
  readonly cpuMs: number;
}

/** A provider gives one peer ten tokens, and then one in ten seconds; a peering and its end take two. */
const TOKEN_MS = 20_000;
const OURS = 'agent';
type Results = ReadonlyMap<string, Peered[]>;

export const peeringBench: Bench<{ peerings: number }> = {
  name: 'peering',
  title: 'from the request of a person to a Ready virtual node',
  what:
    'Two clusters that do not see each other on a LAN, with Tributary as one process in each (role `all`), and a policy that agrees ' +
    'to anyone. A ForeignCluster is made as `tributary peer` makes it; the steps are the times at which the API servers of both clusters tell of ' +
    'them. Each round peers and unpeers several times; the value of a round is the median. ' +
    'Before it all rest, since a provider bounds how many tokens a peer gets.',
  parameters: { peerings: 3 },
  problem: () => (process.getuid?.() === 0 ? undefined : 'networks of the clusters need root'),
  run: async ({ parameters, rounds, say, before, nodeFlags, signal }) => {
    const results = new Map<string, Peered[]>();
    const beds = new Map<string, PeeringBed>();
    try {
      const up = async (name: string, checkout?: string): Promise<void> => {
        const flags = checkout === undefined ? nodeFlags : [];
        beds.set(name, await PeeringBed.up(`peer-${name}`, { checkout, nodeFlags: flags, progress: say }));
        results.set(name, []);
      };
      await up(OURS);
      if (before !== undefined) await up('before', before);
      // Warms up; not counted.
      for (const bed of beds.values()) await peered(bed);
      for (let round = 1; round <= rounds; round++) {
        await sleep(parameters.peerings * TOKEN_MS, undefined, { signal });
        for (const [name, bed] of beds) {
          const all = await peerings(bed, parameters.peerings);
          results.get(name)?.push(...all);
          say(`round ${round}, ${name}: ${all.map(({ timeline }) => shownTimeline(timeline)).join('; ')}`);
        }
      }
      return found(results, parameters.peerings);
    } finally {
      for (const bed of beds.values()) await bed.down();
    }
  },
};

async function peered(bed: PeeringBed): Promise<void> {
  const watched = await Watched.start(bed);
  try {
    await watched.peer(bed);
  } finally {
    await watched.stop();
  }
}

/** Of a bed that is peered; it is so afterwards, too. */
async function peerings(bed: PeeringBed, count: number): Promise<Peered[]> {
  const all: Peered[] = [];
  const cpu = (): number => bed.pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  const watched = await Watched.start(bed);
  try {
    for (let number = 0; number < count; number++) {
      await bed.end();
      const cpuBefore = cpu();
      const timeline = await watched.peer(bed);
      all.push({ timeline: new Map(timeline), cpuMs: cpu() - cpuBefore });
    }
  } finally {
    await watched.stop();
  }
  return all;
}

const shownTimeline = (timeline: Timeline): string =>
  [...timeline]
    .toSorted(([, a], [, b]) => a - b)
    .map(([step, ms]) => `${step} ${ms.toFixed(0)}`)
    .join(', ');

function found(results: Results, perRound: number): Found {
  const measured: Measured[] = [];
  const add = (figure: string, of: (one: Peered) => number): void => {
    for (const [contender, all] of results)
      measured.push({ contender, figure, values: byRound(all.map(of), perRound), digits: 0 });
  };
  for (const [step] of STEPS) add(`ms until: ${step}`, ({ timeline }) => timeline.get(step) ?? Number.NaN);
  add('CPU ms of both processes', ({ cpuMs }) => cpuMs);
  const ready = (results.get(OURS) ?? []).map(({ timeline }) => timeline.get(LAST) ?? Number.NaN);
  const goal = {
    id: 'P12',
    what: 'ms from the request to the Ready node, p50',
    values: byRound(ready, perRound),
    atMost: 1_500,
    digits: 0,
  };
  return { measured, goals: [goal] };
}

const byRound = (values: readonly number[], perRound: number): number[] =>
  Array.from({ length: values.length / perRound }, (_, round) =>
    median(values.slice(round * perRound, (round + 1) * perRound)),
  );
