/** The kernel's figures of a process. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessFigures {
  readonly rssMiB: number;
  /** Memory of its own: private pages, clean and dirty. */
  readonly privateMiB: number;
  /** Its own and its share of what others map too, such as the program's text. */
  readonly pssMiB: number;
  /** Largest RSS so far. */
  readonly peakMiB: number;
  /** User and system time of all threads. */
  readonly cpuMs: number;
  readonly fds: number;
  readonly sockets: number;
}

/** Linux tells CPU time in ticks of 10 ms to every program, whatever the kernel's own clock. */
const TICK_MS = 10;

export function processFigures(pid: number): ProcessFigures {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const files = openFiles(pid);
  return {
    privateMiB: (kibibytes(rollup, 'Private_Clean') + kibibytes(rollup, 'Private_Dirty')) / 1024,
    pssMiB: kibibytes(rollup, 'Pss') / 1024,
    rssMiB: kibibytes(status, 'VmRSS') / 1024,
    peakMiB: kibibytes(status, 'VmHWM') / 1024,
    cpuMs: cpuMs(pid),
    fds: files.length,
    sockets: files.filter((target) => target.startsWith('socket:')).length,
  };
}

export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Time that all cores of the machine together had nothing to do since it started. */
export function idleMs(): number {
  const [, ...times] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/);
  // user, nice, system, idle, iowait: proc(5).
  return (Number(times[3]) + Number(times[4])) * TICK_MS;
}

function kibibytes(status: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? Number.NaN);
}

function openFiles(pid: number): string[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).flatMap((fd) => {
    try {
      return [readlinkSync(`${directory}/${fd}`)];
    } catch {
      // Closed since it was listed.
      return [];
    }
  });
}
