/** Removes everything a journal names. It needs no memory of its own and may be run again after it was killed. */
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';

import { removeCgroup } from './cgroups.ts';
import { leaveHost } from './host.ts';
import type { Journal, LabState } from './journal.ts';
import { isAlive, markedProcesses, signalProcess, waitGone, type ProcessId } from './process.ts';
import { run } from './run.ts';
import { linkNames } from './underlay.ts';

const KILL_MS = 10_000;
const ROUNDS = 3;

/** Takes a lab down, whatever state it is in. The journal goes last. */
export async function cleanUp(journal: Journal): Promise<void> {
  const state = journal.read();
  await killProcesses(state, journal.runDirectory);
  for (const name of state.cgroups) await removeCgroup(name);
  // Starting a container takes several processes, so one may have started between two rounds.
  await killProcesses(state, journal.runDirectory);
  for (const directory of [...state.directories, journal.runDirectory]) await unmountBelow(directory);
  await removeNetwork(state);
  for (const directory of state.directories) await removeDirectory(directory);
  // The state of the machine belongs to root, and only real nodes change it.
  if (state.spec?.workload === 'containers') await leaveHost(journal.runDirectory);
  await removeDirectory(journal.runDirectory);
}

/** SIGKILL at once: nothing that these processes could still write is needed after the lab. */
async function killProcesses(state: LabState, runDirectory: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const alive: ProcessId[] = [...state.processes.filter(isAlive), ...markedProcesses(runDirectory)];
    if (alive.length === 0) return;
    for (const process of alive) signalProcess(process, 'SIGKILL');
    if (!(await waitGone(alive, KILL_MS))) {
      throw new Error(
        `processes outlived SIGKILL: ${alive
          .filter(isAlive)
          .map(({ pid }) => pid)
          .join(' ')}`,
      );
    }
  }
}

async function removeNetwork(state: LabState): Promise<void> {
  for (const name of state.links) {
    if (linkNames(await run(['ip', '-o', 'link', 'show'])).includes(name))
      await run(['ip', 'link', 'del', name]);
  }
  if (state.netns.length === 0) return;
  const existing = new Set(
    (await run(['ip', 'netns', 'list'])).split('\n').map((line) => line.split(' ')[0]),
  );
  for (const name of state.netns) if (existing.has(name)) await run(['ip', 'netns', 'del', name]);
}

/** Deepest first, so that no mount hides another. */
async function unmountBelow(directory: string): Promise<void> {
  const points = mountsBelow(readFileSync('/proc/self/mountinfo', 'utf8'), directory);
  for (const point of points) await run(['umount', '-l', point]);
}

/** Mount points at or below a directory, newest first, from /proc/self/mountinfo. */
export function mountsBelow(mountinfo: string, directory: string): string[] {
  return mountinfo
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll(String.raw`\040`, ' '))
    .filter((point) => point === directory || point.startsWith(`${directory}/`))
    .toReversed();
}

/** With whatever is mounted below it. */
export async function removeDirectory(directory: string): Promise<void> {
  await unmountBelow(directory);
  await rm(directory, { recursive: true, force: true, maxRetries: 3 });
}
