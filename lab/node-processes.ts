/** Processes of a node that the lab did not start itself: shims, and those of its pods. */
import { readdirSync, readFileSync, statSync } from 'node:fs';

import { cgroupProcesses } from './cgroups.ts';
import { processAt, signalProcess, type ProcessId } from './process.ts';

/** Those in that network namespace whose command line, joined by spaces, matches. */
export function processesIn(netns: string, commandLine: RegExp): ProcessId[] {
  const wanted = inode(`/run/netns/${netns}`);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && inode(`/proc/${name}/ns/net`) === wanted)
    .filter((pid) => commandLine.test(commandLineOf(pid)))
    .flatMap((pid) => processAt(Number(pid)) ?? []);
}

/** kill -9; how many there were. */
export function killIn(netns: string, commandLine: RegExp): number {
  return processesIn(netns, commandLine).filter((process) => signalProcess(process, 'SIGKILL')).length;
}

/** Everything that runs on a node: in its network or mount namespace, or in a container. */
export function processesOn(node: { readonly netns: string; readonly mountNamespace: string }): ProcessId[] {
  const namespaces = [
    ['net', inode(`/run/netns/${node.netns}`)],
    ['mnt', inode(node.mountNamespace)],
  ] as const;
  const inside = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) =>
      namespaces.some(
        ([kind, wanted]) => wanted !== undefined && inode(`/proc/${pid}/ns/${kind}`) === wanted,
      ),
    )
    .flatMap((pid) => processAt(Number(pid)) ?? []);
  const known = new Set(inside.map(({ pid }) => pid));
  return [...inside, ...cgroupProcesses(node.netns).filter(({ pid }) => !known.has(pid))];
}

function inode(path: string): number | undefined {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
