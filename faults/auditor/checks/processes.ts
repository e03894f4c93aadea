/** I10: processes that were named have not ended, except those that the caller has killed. Pure. */
import { timeText, type Violation } from '../violation.ts';

export interface WatchedProcess {
  readonly pid: number;
  /** Ticks since boot, from /proc/PID/stat: with it, the number cannot be another process's. */
  readonly started: string;
  readonly name: string;
  /** When it was first seen to have ended, milliseconds since 1970. */
  readonly endedAt?: number;
  /** The caller has said so. */
  readonly isKilled: boolean;
}

export const processFaults = (processes: readonly WatchedProcess[]): Violation[] =>
  processes.flatMap(({ pid, name, endedAt, isKilled }): Violation[] => {
    if (endedAt === undefined || isKilled) return [];
    const what = `process ${pid} (${name}) has ended, seen at ${timeText(endedAt)}, and nobody has announced that it is killed`;
    return [{ invariant: 'I10', what }];
  });

/** Its name and start of the text of /proc/PID/stat; undefined for a zombie. The name may contain anything. */
export function processIn(stat: string): { name: string; started: string } | undefined {
  const end = stat.lastIndexOf(')');
  const [state, ...rest] = stat.slice(end + 2).split(' ');
  const started = rest[18];
  if (state === undefined || state === 'Z' || state === 'X' || started === undefined) return undefined;
  return { name: stat.slice(stat.indexOf('(') + 1, end), started };
}
