import { cpus, loadavg, release, totalmem } from 'node:os';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { pinnedVersion } from '../../lab/binary-table.ts';

/** What figures depend on, without a name by which somebody could find the machine. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  /** Of the lab. */
  readonly kubernetes: string;
}

export function describeMachine(): Machine {
  const all = cpus();
  const goMod = join(import.meta.dirname, '..', '..', 'lab', 'binaries', 'programs', 'go.mod');
  return {
    cpu: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release().split('-')[0] ?? '',
    node: process.version,
    kubernetes: pinnedVersion(readFileSync(goMod, 'utf8'), 'k8s.io/kubernetes'),
  };
}

/** Load average of the last minute. */
export const loadNow = (): number => Number((loadavg()[0] ?? 0).toFixed(1));

/** Why so much memory (MiB) is not to be had now. */
export function freeMemoryProblem(
  wantedMiB: number,
  meminfo: string = readFileSync('/proc/meminfo', 'utf8'),
): string | undefined {
  const available = Number(/^MemAvailable:\s+(\d+) kB$/mu.exec(meminfo)?.[1] ?? Number.NaN) / 1024;
  if (available >= wantedMiB) return undefined;
  return `about ${Math.round(wantedMiB)} MiB are needed, and ${Math.round(available)} MiB are available`;
}
