/** A cgroup per node, in every hierarchy of version 1 or in the only one of version 2. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { processAt, signalProcess, type ProcessId } from './process.ts';

const ROOT = '/sys/fs/cgroup';
const REMOVE_TIMEOUT_MS = 5_000;
/** What the kubelet manages; enabled for children of the root on version 2, where they are not yet. */
const V2_CONTROLLERS = ['cpu', 'cpuset', 'io', 'memory', 'pids'];

export const isUnified = (): boolean => existsSync(join(ROOT, 'cgroup.controllers'));

/** Mount points of file systems of the given types, from /proc/mounts. */
export function hierarchies(mounts: string, types: readonly string[]): string[] {
  const points = mounts
    .split('\n')
    .map((line) => line.split(' '))
    .filter((fields) => types.includes(fields[2] ?? ''))
    .map((fields) => fields[1] ?? '');
  return [...new Set(points)];
}

/** Where the kubelet expects its root. */
function usedHierarchies(): string[] {
  return hierarchies(readFileSync('/proc/mounts', 'utf8'), [isUnified() ? 'cgroup2' : 'cgroup']);
}

/** Where processes can be: besides version 1, runc also uses a version 2 without controllers if there is one. */
function allHierarchies(): string[] {
  return hierarchies(readFileSync('/proc/mounts', 'utf8'), ['cgroup', 'cgroup2']);
}

/** Makes the cgroup `name` below the root of each hierarchy. The kubelet refuses a root that lacks one. */
export function createCgroup(name: string): void {
  if (isUnified()) {
    const available = readFileSync(join(ROOT, 'cgroup.controllers'), 'utf8').trim().split(' ');
    for (const controller of V2_CONTROLLERS.filter((wanted) => available.includes(wanted))) {
      writeFileSync(join(ROOT, 'cgroup.subtree_control'), `+${controller}`);
    }
  }
  for (const hierarchy of usedHierarchies()) {
    const path = join(hierarchy, name);
    mkdirSync(path, { recursive: true });
    // Version 1 makes a cpuset empty, and no process may enter an empty one.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if (!isUnified() && existsSync(join(path, file))) {
        writeFileSync(join(path, file), readFileSync(join(hierarchy, file)));
      }
    }
  }
}

/** Kills what still runs in the cgroup and removes it. */
export async function removeCgroup(name: string): Promise<void> {
  const paths = allHierarchies()
    .map((hierarchy) => join(hierarchy, name))
    .filter((path) => existsSync(path));
  const deadline = performance.now() + REMOVE_TIMEOUT_MS;
  for (;;) {
    for (const process of cgroupProcesses(name)) signalProcess(process, 'SIGKILL');
    if (paths.map(removeTree).every(Boolean)) return;
    if (performance.now() > deadline) throw new Error(`cgroup ${name} cannot be removed`);
    await sleep(20);
  }
}

/** Everything that runs in the cgroup or below it. */
export function cgroupProcesses(name: string): ProcessId[] {
  const pids = allHierarchies()
    .flatMap((hierarchy) => tree(join(hierarchy, name)))
    .flatMap((path) => readProcs(path));
  return [...new Set(pids)].map((pid) => processAt(pid)).filter((found) => found !== undefined);
}

function readProcs(path: string): number[] {
  try {
    return readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** The folder and all below it, deepest first. */
function tree(path: string): string[] {
  try {
    const below = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...below.flatMap((entry) => tree(join(path, entry.name))), path];
  } catch {
    return [];
  }
}

function removeTree(path: string): boolean {
  for (const folder of tree(path)) {
    try {
      rmdirSync(folder);
    } catch {
      return false;
    }
  }
  return true;
}
