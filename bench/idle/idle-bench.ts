/** What each role costs while nothing happens: CPU, wake-ups, memory, and requests. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { Lab } from '../../lab/lab.ts';
import { processesOn } from '../../lab/node-processes.ts';
import { auditOf } from '../frame/audit.ts';
import type { Bench, Found, Goal } from '../frame/bench.ts';
import { CITIES, raiseIdleBed } from './bed.ts';
import { flagsIn } from './bare-timer.ts';
import { familiesOf } from './figures.ts';
import { CPU, PRIVATE_MIB, type Rest, REST_FIGURES, type RestFigure, restOf } from './rest.ts';

const LAB = 'bench-idle';
const BEFORE_LAB = 'bench-before';
/** Of what is measured: the program that runs in a role, and what a role starts and keeps. */
const PROGRAMS: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [/main\.js run (?<role>[a-z]+)/u, ({ groups }) => groups?.['role'] ?? ''],
  [/watch-process\.js/u, () => 'watch-process'],
  [/^wireguard-go/u, () => 'wireguard-go'],
];
const ROLES = ['peer', 'node', 'cluster', 'gateway'] as const;
/** Of a core, with one peer. */
const MOST_CPU_PERCENT = 0.3;
const MOST_MIB: Readonly<Record<(typeof ROLES)[number], number>> = {
  peer: 40,
  node: 25,
  cluster: 40,
  gateway: 40,
};

/** A version of the program, and the lab in which it rests. */
interface Version {
  /** Of the lab. */
  readonly name: string;
  readonly root?: string;
  /** Of the names of its roles. */
  readonly suffix: string;
}

interface Bed extends Version {
  readonly lab: Lab;
}

interface Look {
  readonly rests: readonly Rest[];
  /** In a minute, by program. */
  readonly requests: ReadonlyMap<string, number>;
}

export const idleBench: Bench<{ seconds: number; settle: number }> = {
  name: 'idle',
  title: 'what each role costs at rest',
  what:
    'Two clusters, installed and peered as people do it, one with two nodes; no pod is offloaded. A round is a time of rest; each figure is the ' +
    'mean of all processes of that role. CPU is that of all threads and of children that ended; requests are those in the audit logs of both API ' +
    'servers. `watch-process` is the program by which `node` and `gateway` hear of changes of the host; `wireguard-go` is a container of its own. `bare timer` is a process of ' +
    'Node.js with the flags of a role, which a timer wakes four times a second and which does nothing: what a wake-up costs on this machine at that time. ' +
    '`before` rests in clusters of its own at the same time.',
  parameters: { seconds: 40, settle: 1500 },
  limits: { settle: { least: 0 } },
  problem: () => (process.getuid?.() === 0 ? undefined : 'containers of the lab need root'),
  run: async ({ parameters: { seconds, settle }, rounds, say, before }) => {
    const { signal } = new AbortController();
    const versions: Version[] = [
      { name: LAB, suffix: '' },
      ...(before === undefined ? [] : [{ name: BEFORE_LAB, root: before, suffix: ', before' }]),
    ];
    try {
      const beds: Bed[] = [];
      for (const version of versions)
        beds.push({ ...version, lab: await raiseIdleBed({ ...version, signal, say }) });
      await sleep(settle * 1000);
      const looks: Look[] = [];
      for (let round = 1; round <= rounds; round++) {
        looks.push(await look(beds, seconds));
        say(`round ${round} of rest`);
      }
      return found(looks);
    } finally {
      for (const { name } of versions) await Lab.down(name);
    }
  },
};

/** All rest at the same time, so that what the machine does besides meets all. */
async function look(beds: readonly Bed[], seconds: number): Promise<Look> {
  const roles = beds.flatMap(restingIn);
  const role = roles.find(({ name }) => name === 'cluster');
  const flags = role === undefined ? [] : flagsIn(commandLineOf(role.pid));
  const fromMs = Date.now();
  const rests = await restOf(roles, { seconds, flags });
  return { rests, requests: requestsBetween(beds, fromMs, Date.now()) };
}

function restingIn({ lab, suffix }: Bed): { name: string; pid: number }[] {
  return CITIES.flatMap((city) => {
    const pids = lab.cluster(city).nodes.flatMap((node) => processesOn(node).map(({ pid }) => pid));
    return [...familiesOf(pids)].flatMap((pid) => {
      const name = nameOf(pid);
      return name === undefined ? [] : [{ name: `${name}${suffix}`, pid }];
    });
  });
}

function nameOf(pid: number): string | undefined {
  try {
    const line = commandLineOf(pid).join(' ');
    if (line.startsWith('sh ')) return undefined;
    for (const [pattern, name] of PROGRAMS) {
      const match = pattern.exec(line);
      if (match !== null) return name(match);
    }
  } catch {
    // Ended since it was listed.
  }
  return undefined;
}

const commandLineOf = (pid: number): string[] => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');

/** In a minute, of all clusters; accounts are named after roles. */
function requestsBetween(beds: readonly Bed[], fromMs: number, toMs: number): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { name, suffix } of beds) {
    for (const [user, counts] of CITIES.flatMap((city) => [...auditOf(name, city).between(fromMs, toMs)])) {
      const role = ROLES.find(
        (one) => user.endsWith(`:tributary-${one}`) || user.includes(`:tributary-${one}-`),
      );
      if (role === undefined) continue;
      const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const key = `${role}${suffix}`;
      sums.set(key, (sums.get(key) ?? 0) + (all * 60_000) / (toMs - fromMs));
    }
  }
  return sums;
}

const FIGURES: readonly RestFigure[] = [
  ...REST_FIGURES,
  ['PSS MiB', ({ pssMiB }) => pssMiB, 1],
  ['RSS MiB', ({ rssMiB }) => rssMiB, 1],
  ['sockets', ({ sockets }) => sockets, 0],
];

function found(looks: readonly Look[]): Found {
  const names = [...new Set(looks.flatMap(({ rests }) => rests.map(({ name }) => name)))].toSorted();
  const of = (name: string, figure: (rest: Rest) => number): number[] =>
    looks.map(({ rests }) => mean(rests.filter((rest) => rest.name === name).map(figure)));
  const measured = FIGURES.flatMap(([figure, value, digits]) =>
    names.map((contender) => ({ contender, figure, values: of(contender, value), digits })),
  );
  const asking = names.filter((name) => ROLES.some((role) => name.split(',')[0] === role));
  const requests = asking.map((contender) => ({
    contender,
    figure: 'requests per minute, of all clusters',
    values: looks.map((one) => one.requests.get(contender) ?? 0),
    digits: 0,
  }));
  const [[, cpu], [, privateMiB]] = [CPU, PRIVATE_MIB];
  const goals = ROLES.flatMap((role): Goal[] => [
    {
      id: `idle-cpu-${role}`,
      what: `CPU of \`${role}\` at rest with one peer, % of a core`,
      values: of(role, cpu),
      atMost: MOST_CPU_PERCENT,
    },
    {
      id: `idle-memory-${role}`,
      what: `private MiB of \`${role}\` at rest with one peer`,
      values: of(role, privateMiB),
      atMost: MOST_MIB[role],
      digits: 1,
    },
  ]);
  return { measured: [...measured, ...requests], goals };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
