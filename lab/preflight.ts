/** What the containers workload needs of the machine, checked before anything is made. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { cniBinDirectory } from './node.ts';
import { packageProgram } from './packages.ts';

export interface Machine {
  readonly platform: string;
  readonly isRoot: boolean;
  readonly hasCgroups: boolean;
  readonly hasProgram: (name: string) => boolean;
  readonly hasCniPlugins: boolean;
}

/** One line that says what is missing and how to get it; undefined when nothing is. */
export function missing(machine: Machine): string | undefined {
  if (machine.platform !== 'linux') return 'the lab needs Linux';
  if (!machine.isRoot) {
    return 'real nodes need root: run as root, or use --workload kwok, which needs nothing';
  }
  if (!machine.hasCgroups) return 'real nodes need cgroups at /sys/fs/cgroup, or use --workload kwok';
  const packages = Object.entries(packageProgram)
    .filter(([, program]) => !machine.hasProgram(program))
    .map(([name]) => name);
  if (!machine.hasCniPlugins) packages.push('containernetworking-plugins');
  if (packages.length === 0) return undefined;
  return `Debian packages are missing: apt-get install ${packages.join(' ')}`;
}

/** This machine. */
export function thisMachine(): Machine {
  return {
    platform: process.platform,
    isRoot: process.getuid?.() === 0,
    hasCgroups: existsSync('/sys/fs/cgroup'),
    hasProgram: (name) => isOnPath(name),
    hasCniPlugins: cniBinDirectory() !== undefined,
  };
}

function isOnPath(name: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
