/**
 * The holder of a lab. A program that starts a lab holds it until the lab is down or the program ends; nobody else
 * removes it meanwhile. A kernel lock beside the lab's journal decides, so a crash frees it; a file beside the lock
 * names the holder for people. A lab that was left up, on purpose or not, has no holder.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, isAbsolute, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { lockFile, tryLockFile, type FileLock } from './lock.ts';
import { runRoot } from './paths.ts';
import { commandOf, isAlive, parentOf, processAt, type ProcessId } from './process.ts';

export interface Holder extends ProcessId {
  /** In words, and in which folder. */
  readonly command: string;
  /** ISO 8601. */
  readonly since: string;
}

export interface HoldOptions {
  /** Wait for the end of the holder instead of refusing; default: whether TRIBUTARY_LAB_WAIT is 1. */
  readonly wait?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Gets a line that names the holder, at once and then each minute. */
  readonly progress?: (line: string) => void;
}

export interface Hold {
  /** Whoever comes next may have it. */
  release(): Promise<void>;
}

/** Somebody else works with that lab. */
export class LabHeldError extends Error {}

const REMIND_MS = 60_000;
/** Longest time between taking the lock and naming the holder, and between the end of a process and the end of its lock. */
const MOMENT_MS = 2_000;
const LOOK_MS = 50;
const LONGEST_COMMAND = 160;

const lockPath = (name: string): string => join(runRoot(), `${name}.hold.lock`);
const recordPath = (name: string): string => join(runRoot(), `${name}.hold.json`);

/**
 * Holds a lab for this process. If this process or an ancestor holds the lab already, it is not held twice: the test
 * files of a run, in separate processes or not, may use its lab freely.
 */
export async function holdLab(name: string, options: HoldOptions = {}): Promise<Hold> {
  mkdirSync(runRoot(), { recursive: true });
  const wait = options.wait ?? process.env['TRIBUTARY_LAB_WAIT'] === '1';
  const looked = performance.now();
  for (;;) {
    const lock = await tryLockFile(lockPath(name));
    if (lock !== undefined) return taken(name, lock);
    const holder = readHolder(name);
    if (holder !== undefined && isOurs(holder)) return { release: async () => undefined };
    const isKnown = holder !== undefined && isAlive(holder);
    if (isKnown && !wait) throw new LabHeldError(refusal(name, holder));
    if (isKnown) return taken(name, await waitedFor(name, options));
    // The new holder has not written its name yet, or has just ended.
    if (performance.now() - looked > MOMENT_MS)
      throw new LabHeldError(`lab ${name} is held, and nobody says by whom: ${lockPath(name)}`);
    await sleep(LOOK_MS, undefined, { signal: options.signal });
  }
}

/** A line for people that names another running holder. */
export function describeHolder(name: string): string | undefined {
  const holder = readHolder(name);
  return holder !== undefined && isAlive(holder) ? described(holder) : undefined;
}

async function waitedFor(name: string, options: HoldOptions): Promise<FileLock> {
  const say = (): void => {
    const holder = readHolder(name);
    options.progress?.(
      `waiting for lab ${name}${holder === undefined ? '' : `: held by ${described(holder)}`}`,
    );
  };
  say();
  const reminder = setInterval(say, REMIND_MS);
  try {
    return await lockFile(lockPath(name), options.signal);
  } finally {
    clearInterval(reminder);
  }
}

function taken(name: string, lock: FileLock): Hold {
  lock.unref();
  const self = processAt(process.pid);
  if (self === undefined) throw new Error('/proc does not know this process');
  const holder: Holder = { ...self, command: ownCommand(), since: new Date().toISOString() };
  const temporary = `${recordPath(name)}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify(holder));
  renameSync(temporary, recordPath(name));
  return {
    release: async () => {
      rmSync(recordPath(name), { force: true });
      await lock.release();
    },
  };
}

function readHolder(name: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(recordPath(name), 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

/** Whether it is this process or an ancestor. */
function isOurs(holder: ProcessId): boolean {
  for (let pid: number | undefined = process.pid; pid !== undefined && pid > 1; pid = parentOf(pid)) {
    if (pid === holder.pid) return processAt(pid)?.startTime === holder.startTime;
  }
  return false;
}

function refusal(name: string, holder: Holder): string {
  const which = name === 'lab' ? 'make lab-down' : `npm run lab -- down --name ${name}`;
  return [
    `lab ${name} is held by ${described(holder)}`,
    `wait for its end (TRIBUTARY_LAB_WAIT=1 does), or end it: kill ${holder.pid}; what it may leave: ${which}`,
  ].join('\n');
}

const described = ({ command, pid, since }: Holder): string => `${command} (pid ${pid}, since ${since})`;

/** A name that a person recognises; for a worker of Jest it is the run that it belongs to. */
function ownCommand(): string {
  const isWorker = process.argv[1]?.endsWith('processChild.js') === true;
  return inWords(isWorker ? commandOf(process.ppid) : process.argv, process.cwd());
}

/** A command as it would be typed in that folder. */
export function inWords(command: readonly string[], folder: string): string {
  const [program = '', ...args] = command;
  const words = args
    .filter((word) => !/^--(?:experimental|disable-warning)/.test(word))
    .map((word) => (isAbsolute(word) && word.startsWith(`${folder}/`) ? relative(folder, word) : word));
  const text = [basename(program), ...words].join(' ');
  return `${text.length > LONGEST_COMMAND ? `${text.slice(0, LONGEST_COMMAND)}...` : text} in ${folder}`;
}
