/** What a process that rests costs, from what the kernel counts: plain numbers, for any process. */
import { readdirSync, readFileSync } from 'node:fs';

/** Counts since the process began. Threads that have ended are missing from `cpuNs` and `wakeUps`. */
export interface IdleSample {
  /** Monotonic, in milliseconds. */
  readonly atMs: number;
  /** Of all threads, in nanoseconds (schedstat). */
  readonly cpuNs: number;
  /** Of children that have ended and were waited for, such as `wg` and `nft`, in milliseconds. */
  readonly childrenMs: number;
  /** How often a thread went to sleep by itself. */
  readonly wakeUps: number;
}

export interface IdleRate {
  /** Of one core, of the process itself. */
  readonly cpuPercent: number;
  /** Of one core, of children that have ended. */
  readonly childrenPercent: number;
  readonly wakeUpsPerSecond: number;
}

const TICK_MS = 10;

export function idleSample(pid: number): IdleSample {
  const tasks = readdirSync(`/proc/${pid}/task`).flatMap((task) => taskFigures(`/proc/${pid}/task/${task}`));
  const sum = (of: (figures: TaskFigures) => number): number =>
    tasks.reduce((total, task) => total + of(task), 0);
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    atMs: performance.now(),
    cpuNs: sum(({ cpuNs }) => cpuNs),
    childrenMs: (Number(fields[13]) + Number(fields[14])) * TICK_MS,
    wakeUps: sum(({ wakeUps }) => wakeUps),
  };
}

interface TaskFigures {
  readonly cpuNs: number;
  readonly wakeUps: number;
}

function taskFigures(directory: string): TaskFigures[] {
  try {
    const status = readFileSync(`${directory}/status`, 'utf8');
    const wakeUps = Number(/^voluntary_ctxt_switches:\s+(\d+)$/mu.exec(status)?.[1]);
    return [{ cpuNs: Number(readFileSync(`${directory}/schedstat`, 'utf8').split(' ')[0]), wakeUps }];
  } catch {
    // Ended since it was listed.
    return [];
  }
}

export function idleRate(before: IdleSample, after: IdleSample): IdleRate {
  const ms = after.atMs - before.atMs;
  return {
    cpuPercent: ((after.cpuNs - before.cpuNs) / 1e6 / ms) * 100,
    childrenPercent: ((after.childrenMs - before.childrenMs) / ms) * 100,
    wakeUpsPerSecond: ((after.wakeUps - before.wakeUps) / ms) * 1000,
  };
}

/** Of the process itself. What a process does at rest costs about what it is woken, and that differs by machine and by hour. */
export const cpuMsPerWakeUp = ({ cpuPercent, wakeUpsPerSecond }: IdleRate): number =>
  (cpuPercent * 10) / wakeUpsPerSecond;

/** These processes and their children that run, which a role starts and keeps. */
export function familiesOf(pids: Iterable<number>): Set<number> {
  const family = new Set(pids);
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .map((name) => [Number(name), parentOf(name) ?? 0] as const);
  for (let before = -1; before !== family.size;) {
    before = family.size;
    for (const [pid, parent] of parents) if (family.has(parent)) family.add(pid);
  }
  return family;
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
