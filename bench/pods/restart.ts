/** One restart of the agent, until it has looked at every pod and has nothing left to do. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { imageFlags, runToEnd } from '../../lab/compiled-program.ts';
import { CONTROLLER_METRICS } from '../../src/kube/controller-metrics.ts';
import { auditOf } from '../frame/audit.ts';
import type { Program } from '../frame/program.ts';
import { probeModule, type Stall, stallOf } from '../frame/stall.ts';
import { type RequestCounts, writes } from './api-requests.ts';
import type { Bed, Restartable } from './bed.ts';
import type { Mirror } from './contender.ts';

export interface Restart {
  /** From the start of the process until it has reconciled every pod and its queues are empty. */
  readonly ms: number;
  /** Until /readyz says so. */
  readonly readyMs: number;
  /** Since it was started and until some seconds after; without Leases, questions about rights, and what says that the Node is Ready. */
  readonly writes: number;
  readonly requests: RequestCounts;
  readonly stall: Stall;
  /** Of a process that does nothing, in the same time. */
  readonly idle: Stall;
  readonly cpuMs: number;
  readonly privateMiB: number;
}

const TIMEOUT_MS = 900_000;
/** The program renders all its metrics for each look. What is told is late by a half of this. */
const POLL_MS = 100;
/** What is written late is written, too; and V8 gives back what the start took only after it has rested. */
export const REST_MS = 30_000;
const PROBED = 'agent';
export const IDLE = 'idle';
/** Of what goes on anyway: heartbeats, and what is asked but not stored. */
const SURROUNDINGS = /(?: leases| (?:virtual)?nodes(?:\/status)?|reviews)$/u;

/** To be given to Node.js, so that its stalls are known. @param name of the program, where several run at a time */
export const probeFlags = (bed: Bed, name: string = PROBED): string[] => [
  '--import',
  probeModule(stallFile(bed, name)),
];

export const stallFile = (bed: Bed, name: string = PROBED): string =>
  join(bed.lab.spec.dataDirectory, `stall-${name}.json`);

/** Starts the program, which is not running, with so many pods on its node. It runs on. @param idle of `startIdle` */
export async function restart(
  bed: Bed,
  { agent, idle }: { agent: Restartable; idle: Program },
  pods: number,
): Promise<Restart & { program: Program }> {
  await bed.quiet();
  const idleFile = stallFile(bed, IDLE);
  await stallOf(idle.pid, idleFile);
  const fromMs = Date.now();
  const begun = await begin(agent, pods);
  const { program } = begun;
  const [stall, idleStall] = [await stallOf(program.pid, stallFile(bed)), await stallOf(idle.pid, idleFile)];
  await sleep(REST_MS);
  const requests = requestsBetween(bed, fromMs, Date.now());
  const { privateMiB } = program.figures;
  return { ...begun, writes: writes(requests), requests, stall, idle: idleStall, privateMiB };
}

/** The same, no longer than until it has reconciled them. @param pollMs asking costs the program CPU, too */
export async function begin(
  agent: Restartable,
  pods: number,
  pollMs: number = POLL_MS,
): Promise<Pick<Restart, 'ms' | 'readyMs' | 'cpuMs'> & { program: Program }> {
  const began = performance.now();
  const program = agent.start();
  const readyMs = await passed(began, { url: `${agent.opsUrl}/readyz`, pollMs }, () => true);
  const ms = await passed(began, { url: `${agent.opsUrl}/metrics`, pollMs }, (metrics) =>
    hasLookedAt(metrics, pods),
  );
  return { ms, readyMs, cpuMs: program.figures.cpuMs, program };
}

/** Milliseconds that the raw list takes, in a process of its own. */
export function rawList(bed: Bed, { node, tenant }: Pick<Mirror, 'node' | 'tenant'>): number {
  const script = join(import.meta.dirname, 'raw-list.ts');
  const files = [bed.cluster('home').kubeconfig, bed.cluster('foreign').kubeconfig];
  return Number(runToEnd(process.execPath, [...imageFlags(), script, ...files, node, tenant]));
}

/** Until a page is served that is as it should be. */
async function passed(
  began: number,
  { url, pollMs }: { url: string; pollMs: number },
  isDone: (text: string) => boolean,
): Promise<number> {
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    const at = performance.now() - began;
    if (answer?.ok === true && isDone(await answer.text())) return at;
    await answer?.body?.cancel().catch(() => undefined);
    if (at > TIMEOUT_MS) throw new Error(`${url} is not as it should be after ${TIMEOUT_MS / 1000} s`);
    await sleep(pollMs);
  }
}

/** Whether it has reconciled so many pods, and no key waits. Reads Prometheus' text format. */
export function hasLookedAt(metrics: string, pods: number): boolean {
  const sum = (name: string, labels = ''): number =>
    metrics
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && line.includes(labels))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  const { reconciles, depth } = CONTROLLER_METRICS;
  return sum(reconciles.name, 'controller="pods"') >= pods && sum(depth.name) === 0;
}

const VERBS: Readonly<Record<string, string>> = {
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

/**
 * What the agents have asked for, their heartbeats aside: at home as the administrator, who else only reads, and over there with the
 * account of their tenants.
 */
export function requestsBetween(bed: Bed, fromMs: number, toMs: number): RequestCounts {
  const sums = new Map<string, number>();
  for (const side of ['home', 'foreign'] as const) {
    for (const [user, counts] of auditOf(bed.lab.spec.name, side).between(fromMs, toMs)) {
      const isAccount = user.startsWith('system:serviceaccount:') && !user.includes(':kube-system:');
      if (side === 'home' ? user.startsWith('system:') : !isAccount) continue;
      for (const [what, count] of [...counts].filter(([what]) => !SURROUNDINGS.test(what))) {
        const [verb = '', resource] = what.split(' ');
        const key = `${VERBS[verb] ?? verb.toUpperCase()} ${resource} (${side})`;
        sums.set(key, (sums.get(key) ?? 0) + count);
      }
    }
  }
  return sums;
}
