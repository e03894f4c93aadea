/**
 * LAN discovery as a program of its own, for tests in network namespaces: options as JSON in the first argument, one
 * line of JSON on standard output for each change. SIGTERM says goodbye; lines on standard input announce anew.
 */
import { createInterface } from 'node:readline';
import { LanSource } from '../../../src/discovery/lan/lan-source.ts';
import type { Announcement } from '../../../src/discovery/candidates.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';

export interface LanAgentOptions {
  announcement: Announcement;
  /** IP addresses announced instead of the host's own. */
  hosts?: string[];
  interfaces?: string[];
  ttlSeconds?: number;
  level?: 'debug' | 'info' | 'warn' | 'error';
}

/** A line of the program. `at` is milliseconds since the epoch. */
export type LanAgentLine =
  | { event: 'started' | 'stopped'; at: number }
  | { event: 'label'; label: string | undefined }
  | {
      event: 'seen';
      at: number;
      id: string;
      name?: string;
      endpoints: readonly string[];
      protocols: readonly number[];
    }
  | { event: 'gone'; at: number; id: string };

const {
  announcement,
  hosts,
  level = 'info',
  ...options
} = JSON.parse(process.argv[2] ?? '{}') as LanAgentOptions;
const print = (line: LanAgentLine): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);
const log = createLogger({
  level,
  now: () => systemClock.now(),
  write: (line) => process.stderr.write(line),
});
const source = new LanSource({ clock: systemClock, log, ...options });
source.onChange((id) => {
  const candidate = source.candidate(id);
  const at = systemClock.now();
  if (candidate === undefined) {
    print({ event: 'gone', at, id });
    return;
  }
  const { clusterName, endpoints, protocols } = candidate;
  print({
    event: 'seen',
    at,
    id,
    ...(clusterName !== undefined && { name: clusterName }),
    endpoints,
    protocols,
  });
});

// Timers of the clock do not keep a process alive; open sockets do.
const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  if (line === 'label') print({ event: 'label', label: source.label });
  else void source.announce(JSON.parse(line) as Announcement, hosts);
});
process.once('SIGTERM', () => {
  input.close();
  void source.stop().then(() => print({ event: 'stopped', at: systemClock.now() }));
});
await source.announce(announcement, hosts);
await source.start();
print({ event: 'started', at: systemClock.now() });
