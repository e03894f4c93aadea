/** Which process something was written by, and whether that one still lives. */
import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';

/** As found in the identity: where process ids mean the same as here, and which process it is. */
interface Process {
  /** Of the running kernel and of the namespace of process ids. */
  place: string;
  pid: number;
  /** When it started, in ticks since the kernel did: ids are given again. */
  started: string;
}

const FORM = /_([0-9a-f]{32}\.\d+)\.(\d+)\.(\d+)$/u;

/** `name`, followed by what no other process has. Off Linux nobody can tell from it whether the process lives. */
export function processIdentity(name: string): string {
  const place = placeHere();
  const started = startedAt(process.pid);
  return place === undefined || started === undefined
    ? `${name}_${randomUUID()}`
    : `${name}_${place}.${process.pid}.${started}`;
}

/** `name` of such an identity. */
export const nameIn = (identity: string): string => identity.replace(/_[-.0-9a-f]+$/u, '');

/**
 * Whether the process that has this identity has certainly ended. False where it cannot be known: on another machine, after
 * another start of this one, in another container that has process ids of its own.
 */
export function hasEnded(identity: string): boolean {
  const found = parse(identity);
  if (found === undefined || found.place !== placeHere()) return false;
  if (!exists(found.pid)) return true;
  const started = startedAt(found.pid);
  return started !== undefined && started !== found.started;
}

function parse(identity: string): Process | undefined {
  const [, place, pid, started] = FORM.exec(identity) ?? [];
  return place === undefined || pid === undefined || started === undefined
    ? undefined
    : { place, pid: Number(pid), started };
}

function placeHere(): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replaceAll(/[^0-9a-f]/gu, '');
    const namespace = /\d+/u.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    return namespace === undefined ? undefined : `${boot}.${namespace}`;
  } catch {
    return undefined;
  }
}

/** Unlike /proc, this also sees processes of other accounts where those are hidden. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** `ended` for one that nobody has waited for yet; undefined: unknown. */
function startedAt(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may contain anything: the state, and 19 fields later the time of start (proc_pid_stat(5)).
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19];
  } catch {
    return undefined;
  }
}
