/**
 * One long-running program of the lab: started in a session of its own so that it outlives this process, with its
 * output in a log file, and written to the journal before and after it starts.
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  endedProcess,
  isAlive,
  MARK,
  processAt,
  signalProcess,
  waitGone,
  type ProcessId,
} from './process.ts';

/** How to start a daemon; enough to start it again from another process. */
export interface DaemonSpec {
  /** Unique in its lab: `home/kube-apiserver`, `home-1/kubelet`. */
  readonly name: string;
  /** Program and arguments. */
  readonly command: readonly [string, ...string[]];
  readonly logFile: string;
  /** Name of the network namespace to run in; absent: the one of the caller. */
  readonly netns?: string | undefined;
  /** Path of a mount namespace to run in; absent: the one of the caller. */
  readonly mountNamespace?: string | undefined;
  /** Added to the environment of the lab program. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** How late its timers, and those of its children, may be, so that those of one moment wake it once; absent: as the kernel has it, 50 µs. */
  readonly timerSlackMs?: number | undefined;
}

/**
 * Where daemons are recorded, for example the journal of a lab. Daemons that need not survive this process are not
 * recorded.
 */
export interface DaemonRecord {
  /** The lab's run directory, the mark of its processes. */
  readonly runDirectory: string;
  /** Called before the process exists. */
  starting(spec: DaemonSpec): void;
  /** Called as soon as it does. */
  started(name: string, id: ProcessId): void;
}

/**
 * For programs in Go that come in numbers and rest most of the time. Their heaps are small at first, so they would collect garbage all
 * the time: that is a sixth of the CPU time of an API server's start. A control plane at rest has a thousand wake-ups a second for timers
 * that find nothing (queues, caches, etcd's clock), and where ten of them share two cores that is most of what they cost.
 */
export const FRUGAL: Pick<DaemonSpec, 'env' | 'timerSlackMs'> = { env: { GOGC: '400' }, timerSlackMs: 20 };

const LOG_LINES_QUOTED = 12;
const POLL_MS = 50;
const TERM_MS = 3_000;
const KILL_MS = 5_000;

export class Daemon {
  readonly spec: DaemonSpec;
  readonly #record: DaemonRecord;
  #id: ProcessId | undefined;

  constructor(spec: DaemonSpec, record: DaemonRecord, id?: ProcessId) {
    this.spec = spec;
    this.#record = record;
    this.#id = id;
  }

  /** A new daemon, already started. */
  static start(spec: DaemonSpec, record: DaemonRecord): Daemon {
    const daemon = new Daemon(spec, record);
    daemon.start();
    return daemon;
  }

  get name(): string {
    return this.spec.name;
  }

  /** The process, while it runs. */
  get id(): ProcessId | undefined {
    return this.#id && isAlive(this.#id) ? this.#id : undefined;
  }

  /**
   * Starts the process; does nothing if it runs already. `waitFor` reports if it ends early. `more`: arguments for this one run,
   * after those of the command.
   */
  start(more: readonly string[] = []): void {
    if (this.id) return;
    const { command, logFile, env } = this.spec;
    const [program, ...args] = inNamespaces([...command, ...more], this.spec);
    mkdirSync(dirname(logFile), { recursive: true });
    this.#record.starting(this.spec);
    const log = openSync(logFile, 'a');
    try {
      const child = spawn(program, args, {
        detached: true,
        stdio: ['ignore', log, log],
        env: { ...process.env, ...env, [MARK]: this.#record.runDirectory },
      });
      // Without a listener a missing program would end this process; the check of the pid below reports it better.
      child.on('error', () => undefined);
      child.unref();
      if (child.pid === undefined) throw new Error(`${this.name}: cannot run ${program}`);
      this.#id = processAt(child.pid) ?? endedProcess(child.pid);
      if (this.spec.timerSlackMs !== undefined) allowTimerSlack(child.pid, this.spec.timerSlackMs);
    } finally {
      closeSync(log);
    }
    this.#record.started(this.name, this.#id);
  }

  /** SIGTERM, SIGKILL after `graceMs`; resolves when the process is gone. */
  async terminate(graceMs: number = TERM_MS): Promise<void> {
    const id = this.id;
    if (!id) return;
    signalProcess(id, 'SIGTERM');
    // A stopped process acts on SIGTERM only once it runs again.
    signalProcess(id, 'SIGCONT');
    if (!(await waitGone([id], graceMs))) await this.kill();
  }

  /** SIGKILL; resolves when the process is gone. */
  async kill(): Promise<void> {
    const id = this.id;
    if (!id) return;
    signalProcess(id, 'SIGKILL');
    if (!(await waitGone([id], KILL_MS))) throw this.failure(`pid ${id.pid} outlived SIGKILL`);
  }

  /** SIGSTOP: the process hangs with its sockets open, as behind a network that drops everything. */
  stop(): void {
    if (this.id) signalProcess(this.id, 'SIGSTOP');
  }

  /** SIGCONT: the end of `stop`. */
  cont(): void {
    if (this.id) signalProcess(this.id, 'SIGCONT');
  }

  /** SIGKILL and start again, with the same command; `more`: as for `start`. */
  async restart(more: readonly string[] = []): Promise<void> {
    await this.kill();
    this.start(more);
  }

  /**
   * Polls `ready` until it returns true. If the process dies or the time is up, it throws an error with the end of
   * the log.
   */
  async waitFor(
    what: string,
    ready: () => Promise<boolean> | boolean,
    options: { timeoutMs: number; signal?: AbortSignal | undefined },
  ): Promise<void> {
    const deadline = performance.now() + options.timeoutMs;
    for (;;) {
      options.signal?.throwIfAborted();
      if (await ready()) return;
      if (!this.id) throw this.failure(`ended before ${what}`);
      if (performance.now() > deadline) {
        throw this.failure(`no ${what} after ${Math.round(options.timeoutMs / 1000)} s`);
      }
      await sleep(POLL_MS, undefined, { signal: options.signal });
    }
  }

  /** The last lines of the log. */
  tail(lines: number = LOG_LINES_QUOTED): string {
    try {
      return readFileSync(this.spec.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
    } catch {
      return '(no log)';
    }
  }

  /** An error about this daemon that quotes its log. */
  failure(what: string): Error {
    return new Error(`${this.name} ${what}; the end of ${this.spec.logFile}:\n${this.tail()}`);
  }
}

/**
 * The command, entered into namespaces. nsenter(1) and not `ip netns exec`: the latter mounts a /sys of its own,
 * without the cgroups. nsenter becomes the program, so the pid is the program's.
 */
export function inNamespaces(
  command: readonly [string, ...string[]],
  where: Pick<DaemonSpec, 'netns' | 'mountNamespace'>,
): [string, ...string[]] {
  const { netns, mountNamespace } = where;
  if (netns === undefined && mountNamespace === undefined) return [...command];
  return [
    'nsenter',
    ...(netns === undefined ? [] : [`--net=/run/netns/${netns}`]),
    ...(mountNamespace === undefined ? [] : [`--mount=${mountNamespace}`]),
    '--',
    ...command,
  ];
}

/** Threads and children inherit it. Only root may say it of another process; it changes no behaviour, so others go without. */
function allowTimerSlack(pid: number, ms: number): void {
  try {
    writeFileSync(`/proc/${pid}/timerslack_ns`, `${ms * 1_000_000}`);
  } catch {
    // Not root, or the process has already ended, which `waitFor` reports.
  }
}
