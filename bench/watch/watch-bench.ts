/** P10: what it costs to read the events of a watch, beside the public client library. */
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { Bench } from '../frame/bench.ts';
import { ratios } from '../frame/goals.ts';
import { scratchFolder } from '../frame/scratch.ts';
import { servePodEvents } from './pod-events.ts';
import type { Cost } from './reader.ts';

const READERS = ['ours', 'client-node'] as const;
const run = promisify(execFile);

export const watchBench: Bench<{ events: number }> = {
  name: 'watch',
  title: 'reading the events of a watch',
  what:
    'A server of our own sends events of pods of 4.7 KB over TLS as fast as they are taken; our client and `@kubernetes/client-node` read ' +
    'them, each in a process of its own. CPU is that of the reader, from its request to the last event.',
  parameters: { events: 50_000 },
  run: async ({ parameters: { events }, rounds, signal }) => {
    const directory = scratchFolder('watch');
    const server = await servePodEvents(events);
    try {
      const kubeconfig = join(directory, 'kubeconfig');
      writeFileSync(kubeconfig, server.kubeconfig);
      const costs = new Map(READERS.map((name): [string, Cost[]] => [name, []]));
      for (let round = 1; round <= rounds; round++) {
        for (const [name, found] of costs) found.push(await read({ name, kubeconfig, events, signal }));
      }
      const of = (name: string, figure: (cost: Cost) => number): number[] =>
        (costs.get(name) ?? []).map(figure);
      const perSecond = ({ cpuMs }: Cost): number => events / (cpuMs / 1000);
      const rows = [
        ['events per CPU second', perSecond, 0],
        ['peak RSS MiB', ({ peakMiB }: Cost) => peakMiB, 0],
        ['longest stall of the event loop, ms', ({ stallMs }: Cost) => stallMs, 1],
      ] as const;
      return {
        measured: rows.flatMap(([figure, value, digits]) =>
          READERS.map((contender) => ({ contender, figure, values: of(contender, value), digits })),
        ),
        goals: [
          {
            id: 'P10',
            what: 'events per CPU second, of client-node’s',
            values: ratios(of('ours', perSecond), of('client-node', perSecond)),
            atLeast: 1,
          },
        ],
      };
    } finally {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  },
};

async function read({
  name,
  kubeconfig,
  events,
  signal,
}: {
  name: string;
  kubeconfig: string;
  events: number;
  signal: AbortSignal;
}): Promise<Cost> {
  const script = join(import.meta.dirname, 'reader.ts');
  const { stdout } = await run(process.execPath, [script, name, kubeconfig, String(events)], { signal });
  return JSON.parse(stdout) as Cost;
}
