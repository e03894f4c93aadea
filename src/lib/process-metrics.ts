/** What every process of ours shows about itself. */
import type { Registry } from 'prom-client';

import { cpuSeconds } from './clock.ts';
import { gaugeOf, readCounter, readGauge } from './instruments.ts';
import { type LineCounts, LOG_LEVELS } from './log.ts';
import type { Metric } from './metric.ts';

export const PROCESS_METRICS: {
  readonly build: Metric<'gauge', 'version' | 'role'>;
  readonly memory: Metric<'gauge', never>;
  readonly cpu: Metric<'counter', never>;
  readonly start: Metric<'gauge', never>;
  readonly lines: Metric<'counter', 'level'>;
} = {
  build: {
    name: 'tributary_build_info',
    type: 'gauge',
    unit: 'count',
    help: 'Version and role of this process; always 1.',
    labels: {
      version: { each: 'version, of which a process has one' },
      role: { each: 'role, of which a process has one' },
    },
  },
  memory: {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    unit: 'bytes',
    help: 'Resident memory of this process.',
    labels: {},
  },
  cpu: {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    unit: 'seconds',
    help: 'CPU time of this process, of users and of the kernel.',
    labels: {},
  },
  start: {
    name: 'process_start_time_seconds',
    type: 'gauge',
    unit: 'seconds',
    help: 'Start of this process, in seconds since 1970; the name is the convention of all Prometheus clients.',
    labels: {},
  },
  lines: {
    name: 'tributary_log_lines_total',
    type: 'counter',
    unit: 'count',
    help: 'Lines that this process has written to its log, by level.',
    labels: { level: LOG_LEVELS },
  },
};

export interface ProcessFacts {
  version: string;
  role: string;
  lines: Readonly<LineCounts>;
  /** Milliseconds since 1970. */
  startedAt: number;
}

export function showProcess(registry: Registry, { version, role, lines, startedAt }: ProcessFacts): void {
  gaugeOf(registry, PROCESS_METRICS.build).set({ version, role }, 1);
  gaugeOf(registry, PROCESS_METRICS.start).set(startedAt / 1000);
  readGauge(registry, PROCESS_METRICS.memory, () => [[{}, process.memoryUsage.rss()]]);
  readCounter(registry, PROCESS_METRICS.cpu, () => [[{}, cpuSeconds()]]);
  readCounter(registry, PROCESS_METRICS.lines, () =>
    LOG_LEVELS.map((level) => [{ level }, lines[level]] as const),
  );
}
