/**
 * What each role costs while nothing happens: two clusters with one peering and no pod on the virtual node. CPU, wake-ups,
 * memory, sockets of every process, and who asks the API servers for what.
 *
 * Usage: node bench/idle.ts [--seconds 120] [--settle 90] [--lab NAME] [--keep]
 * With --keep the lab stays up, and a lab of that name that is up is measured as it is.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Lab } from '../lab/lab.ts';
import { processesOn } from '../lab/node-processes.ts';
import { auditOf, CITIES, raiseIdleBed } from './idle/bed.ts';
import {
  familiesOf,
  idleMemory,
  idleRate,
  idleSample,
  type IdleMemory,
  type IdleRate,
  type IdleSample,
} from './idle/figures.ts';
import { table } from './frame/statistics.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    settle: { type: 'string', default: '90' },
    lab: { type: 'string', default: 'bench-idle' },
    keep: { type: 'boolean', default: false },
  },
});
const [seconds, settle] = [Number(values.seconds), Number(values.settle)];

/** A process of ours, and in which cluster it runs. */
interface Resting {
  readonly city: string;
  readonly name: string;
  readonly pid: number;
}

const PROGRAMS: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [/main\.js run (?<role>[a-z]+)/u, ({ groups }) => groups?.['role'] ?? ''],
  [/watch-process\.js/u, () => 'watch-process'],
  [/^wireguard-go/u, () => 'wireguard-go'],
];

function restingIn(lab: Lab): Resting[] {
  return CITIES.flatMap((city) => {
    const pids = lab.cluster(city).nodes.flatMap((node) => processesOn(node).map(({ pid }) => pid));
    return [...familiesOf(pids)].flatMap((pid) => {
      const name = nameOf(pid);
      return name === undefined ? [] : [{ city, name, pid }];
    });
  }).toSorted((a, b) => (`${a.name} ${a.city}` < `${b.name} ${b.city}` ? -1 : 1));
}

function nameOf(pid: number): string | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    if (line.startsWith('sh ')) return undefined;
    for (const [pattern, name] of PROGRAMS) {
      const found = pattern.exec(line);
      if (found !== null) return name(found);
    }
  } catch {
    // Ended since it was listed.
  }
  return undefined;
}

function row({ name, city }: Resting, rate: IdleRate, memory: IdleMemory): string[] {
  return [
    `${name} ${city}`,
    rate.cpuPercent.toFixed(2),
    rate.childrenPercent.toFixed(2),
    rate.wakeUpsPerSecond.toFixed(1),
    memory.privateMiB.toFixed(0),
    memory.pssMiB.toFixed(0),
    memory.rssMiB.toFixed(0),
    String(memory.sockets),
  ];
}

const HEAD = [
  'at rest',
  'CPU %',
  'of children',
  'wake-ups/s',
  'private MiB',
  'PSS MiB',
  'RSS MiB',
  'sockets',
];

/** Requests of our own users in a minute, the most frequent first. */
function requestLines(fromMs: number, toMs: number): string[] {
  return CITIES.flatMap((city) =>
    [...auditOf(values.lab, city).between(fromMs, toMs)]
      .filter(([user]) => user.includes('tributary'))
      .flatMap(([user, counts]) => {
        const perMinute = (count: number): string => ((count * 60_000) / (toMs - fromMs)).toFixed(1);
        const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
        const each = [...counts].toSorted(([, a], [, b]) => b - a);
        return [
          `${city} ${user}: ${perMinute(all)} requests/min`,
          ...each.slice(0, 14).map(([what, count]) => `  ${perMinute(count).padStart(6)}  ${what}`),
        ];
      }),
  );
}

async function measure(lab: Lab): Promise<void> {
  const resting = restingIn(lab);
  const fromMs = Date.now();
  const before = new Map<number, IdleSample>(resting.map(({ pid }) => [pid, idleSample(pid)]));
  await sleep(seconds * 1000);
  const rows = resting.map((process) => {
    const { pid } = process;
    const first = before.get(pid);
    if (first === undefined) throw new Error(`no first sample of ${process.name}`);
    return row(process, idleRate(first, idleSample(pid)), idleMemory(pid));
  });
  console.log(table([HEAD, ...rows]));
  console.log(requestLines(fromMs, Date.now()).join('\n'));
}

const say = (line: string): void => console.error(line);
const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => interruption.abort(new Error(`interrupted by ${name}`)));
}
const { signal } = interruption;
const found = values.keep ? await Lab.open(values.lab).catch(() => undefined) : undefined;
const lab = found ?? (await raiseIdleBed({ name: values.lab, signal, say }));
try {
  if (found === undefined) await sleep(settle * 1000, undefined, { signal });
  await measure(lab);
} finally {
  if (!values.keep) await Lab.down(values.lab);
}
