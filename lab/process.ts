/**
 * Processes told apart by pid AND start time, because the kernel hands pids out again. Everything the lab starts
 * also carries a mark in its environment, which children inherit: what a killed lab could not write down any more
 * is still found.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ProcessId {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks since boot. A string, since it is only ever compared. */
  readonly startTime: string;
}

/** The environment variable whose value is the run directory of the lab that owns a process. */
export const MARK = 'TRIBUTARY_LAB_RUN_DIRECTORY';

/**
 * The process now at `pid`; undefined when there is none, or only a zombie that nobody has buried yet. A zombie with threads is none
 * yet: of a process that was killed, the first thread may have ended while others still hold its ports.
 */
export function processAt(pid: number): ProcessId | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  return parseStat(pid, stat);
}

/** Reads one line of /proc/PID/stat. The command may hold spaces and brackets, so fields count from its end. */
export function parseStat(pid: number, stat: string): ProcessId | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, threads, startTime] = [fields[0], Number(fields[17]), fields[19]];
  const isGone = state === 'X' || (state === 'Z' && threads <= 1);
  if (startTime === undefined || isGone) return undefined;
  return { pid, startTime };
}

/** The process that started it, or took it over; undefined when there is none. */
export function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

/** Its command line, as a list of words. */
export const commandOf = (pid: number): string[] =>
  readNulls(`/proc/${pid}/cmdline`).filter((word) => word !== '');

/** Identifies a child that may have ended at once: it had a pid, and does not run any more. */
export const endedProcess = (pid: number): ProcessId => ({ pid, startTime: 'ended' });

/** Whether this very process still runs. */
export function isAlive(process: ProcessId): boolean {
  return processAt(process.pid)?.startTime === process.startTime;
}

/** Sends a signal, unless the pid now belongs to another process. Returns whether it was sent. */
export function signalProcess(target: ProcessId, signal: NodeJS.Signals): boolean {
  if (!isAlive(target)) return false;
  try {
    return process.kill(target.pid, signal);
  } catch {
    return false;
  }
}

/** Waits until none of them runs; false when the time is up first. */
export async function waitGone(processes: readonly ProcessId[], timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (processes.some(isAlive)) {
    if (performance.now() > deadline) return false;
    await sleep(20);
  }
  return true;
}

/**
 * SIGKILL for everything that `find` finds, until it finds nothing: a process that starts another may have done so
 * between being found and being killed.
 */
export async function killAll(find: () => readonly ProcessId[], timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const alive = find();
    if (alive.length === 0) return;
    if (performance.now() > deadline) {
      throw new Error(`processes outlived SIGKILL: ${alive.map(({ pid }) => pid).join(' ')}`);
    }
    for (const process of alive) signalProcess(process, 'SIGKILL');
    await waitGone(alive, timeoutMs);
  }
}

/** Every process whose environment marks it as the lab's, shims and other grandchildren included. */
export function markedProcesses(runDirectory: string): ProcessId[] {
  const mark = `${MARK}=${runDirectory}`;
  return allPids()
    .filter((pid) => environmentOf(pid).includes(mark))
    .map(processAt)
    .filter((found) => found !== undefined);
}

/** Every process whose command line satisfies `matches`. */
export function processesWith(matches: (command: readonly string[]) => boolean): ProcessId[] {
  return allPids()
    .filter((pid) => matches(readNulls(`/proc/${pid}/cmdline`)))
    .map(processAt)
    .filter((found) => found !== undefined);
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

function environmentOf(pid: number): string[] {
  return readNulls(`/proc/${pid}/environ`);
}

function readNulls(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\0');
  } catch {
    return [];
  }
}
