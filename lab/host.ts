/**
 * What all labs of this machine share and must restore: sysctls that kubelets set for the whole kernel, and the
 * folders over which nodes mount their own. The first lab records the original state; the last one restores it.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { locked } from './cache.ts';
import { run } from './run.ts';

/** This path is fixed, wherever a lab keeps its own data, because it is about the whole machine. */
const SHARED = '/run/tributary-lab';
const FILE = join(SHARED, 'host.json');
const LOCK = join(SHARED, 'host.lock');

const INOTIFY = 'fs/inotify/max_user_instances';
const SYSCTLS = ['vm/overcommit_memory', 'kernel/panic', 'kernel/panic_on_oops', INOTIFY];
/** A node takes nine or ten, and a kubelet without one ends; the kernel's default of 128 is soon used up by two labs. */
const LEAST_INOTIFY = 1024;

/** Paths that are compiled into kubelet, containerd, runc or CNI: every node mounts its own folder over each. */
export const NODE_PATHS = [
  '/run/containerd',
  '/run/netns',
  '/var/lib/cni',
  '/var/lib/kubelet',
  '/var/log/containers',
  '/var/log/pods',
] as const;

interface HostRecord {
  readonly sysctls: Readonly<Record<string, string>>;
  /** Folders that did not exist, parents before children. */
  readonly made: readonly string[];
  /** Run directories of the labs that rely on it. */
  readonly labs: readonly string[];
}

/** Registers a lab: makes the folders of NODE_PATHS and records the state of these and of the sysctls. */
export async function enterHost(runDirectory: string): Promise<void> {
  mkdirSync(SHARED, { recursive: true, mode: 0o755 });
  await locked(LOCK, async () => {
    const record = readRecord() ?? { sysctls: readSysctls(), made: absentFolders(), labs: [] };
    const labs = [...new Set([...record.labs, runDirectory])];
    writeFileSync(FILE, JSON.stringify({ ...record, labs }));
    for (const path of NODE_PATHS) mkdirSync(path, { recursive: true });
    raiseInotify();
  });
}

/** Removes a lab from the register; the last one restores the state. Does nothing for a lab that is not registered. */
export async function leaveHost(runDirectory: string): Promise<void> {
  if (!existsSync(FILE)) return;
  await locked(LOCK, async () => {
    const record = readRecord();
    if (!record) return;
    // A lab whose journal is gone was removed by hand; it must not keep the others from restoring.
    const labs = record.labs.filter((lab) => lab !== runDirectory && existsSync(join(lab, 'journal.jsonl')));
    if (labs.length > 0) {
      writeFileSync(FILE, JSON.stringify({ ...record, labs }));
      return;
    }
    await restore(record);
    rmSync(FILE);
  });
}

function raiseInotify(): void {
  const file = `/proc/sys/${INOTIFY}`;
  if (Number(readFileSync(file, 'utf8')) >= LEAST_INOTIFY) return;
  try {
    writeFileSync(file, String(LEAST_INOTIFY));
  } catch {
    // We cannot set it here; then fewer labs can run in parallel.
  }
}

async function restore(record: HostRecord): Promise<void> {
  for (const [name, value] of Object.entries(record.sysctls)) {
    if (readFileSync(`/proc/sys/${name}`, 'utf8').trim() !== value) writeFileSync(`/proc/sys/${name}`, value);
  }
  for (const folder of record.made.toReversed()) {
    // `ip netns add` binds /run/netns to itself, and only an unmounted folder can go.
    if (isMountPoint(folder)) await run(['umount', folder]).catch(() => undefined);
    try {
      rmdirSync(folder);
    } catch {
      // Somebody else uses it now.
    }
  }
}

function readRecord(): HostRecord | undefined {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8')) as HostRecord;
  } catch {
    return undefined;
  }
}

function readSysctls(): Record<string, string> {
  return Object.fromEntries(SYSCTLS.map((name) => [name, readFileSync(`/proc/sys/${name}`, 'utf8').trim()]));
}

function absentFolders(): string[] {
  const absent = NODE_PATHS.flatMap((path) => withParents(path)).filter((path) => !existsSync(path));
  return [...new Set(absent)].sort();
}

function withParents(path: string): string[] {
  return path === '/' ? [] : [...withParents(dirname(path)), path];
}

function isMountPoint(path: string): boolean {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => line.split(' ')[4] === path);
}
