/** The processes that must not end (I10). */
import type { WatchedProcess } from './checks/processes.ts';
import { processOf } from './host-reader.ts';
import { now } from './violation.ts';

export class ProcessList {
  #processes: WatchedProcess[] = [];

  /** Those that still run stay watched. */
  begin(): void {
    this.look();
    this.#processes = this.#processes.filter(({ endedAt, isKilled }) => endedAt === undefined && !isKilled);
  }

  /** One that is not there any more has ended. A number that is named again is a new process. */
  watch(pid: number): void {
    const found = processOf(pid);
    const { name, started } = found ?? { name: 'unknown', started: '' };
    this.#processes = [
      ...this.#processes.filter((one) => one.pid !== pid || one.endedAt !== undefined),
      { pid, name, started, isKilled: false, ...(found === undefined && { endedAt: now() }) },
    ];
  }

  /** The caller kills it, or has killed it. */
  killed(pid: number): void {
    this.#processes = this.#processes.map((one) => (one.pid === pid ? { ...one, isKilled: true } : one));
  }

  look(): void {
    const at = now();
    this.#processes = this.#processes.map((one) => {
      if (one.endedAt !== undefined || processOf(one.pid)?.started === one.started) return one;
      return { ...one, endedAt: at };
    });
  }

  get all(): readonly WatchedProcess[] {
    return this.#processes;
  }
}
