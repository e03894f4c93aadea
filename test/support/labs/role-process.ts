/** A role in this process, under its own account on a real API server. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { kubeconfigWith } from '../../../faults/access.ts';
import type { Agent } from '../../../src/agent/parts.ts';
import { type Role, ROLES } from '../../../src/agent/roles.ts';
import type { AccountRef } from '../../../src/api/rbac.ts';
import { parseConfig } from '../../../src/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger, type LogSink, noLines } from '../../../src/lib/log.ts';
import { awaited } from '../eventually.ts';
import type { RightsCluster } from './rights-cluster.ts';

export interface LogLine {
  level: string;
  logger: string;
  message: string;
  [field: string]: unknown;
}

interface Made {
  folder: string;
  sink: LogSink;
  lines: LogLine[];
  running: Promise<Agent>;
  abort: AbortController;
}

export class RoleProcess {
  readonly lines: readonly LogLine[];
  readonly sink: LogSink;
  readonly #made: Made;

  private constructor(made: Made) {
    this.#made = made;
    this.sink = made.sink;
    this.lines = made.lines;
  }

  /** Returns when its health can be asked. It logs at `info`. */
  static async start(
    role: Role,
    cluster: RightsCluster,
    { account, options }: { account: AccountRef; options: Readonly<Record<string, string>> },
  ): Promise<RoleProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'tributary-role-'));
    const kubeconfig = join(folder, 'kubeconfig');
    const { token } = await cluster.tokenOf(account);
    await writeFile(
      kubeconfig,
      JSON.stringify(kubeconfigWith(cluster.cluster, cluster.cluster.server, token)),
      { mode: 0o600 },
    );
    const lines: LogLine[] = [];
    const counts = noLines();
    const sink: LogSink = {
      level: 'info',
      now: () => systemClock.now(),
      write: (line) => lines.push(JSON.parse(line) as LogLine),
      count: (level) => void (counts[level] += 1),
    };
    const config = parseConfig({
      options: { kubeconfig, 'ops-port': '0', ...options },
      env: { POD_NAME: role },
      hostname: 'test',
    });
    const abort = new AbortController();
    const parts = { config, clock: systemClock, log: createLogger(sink), sink, lines: counts };
    const running = ROLES[role](parts, abort.signal);
    running.catch(() => undefined);
    const made = new RoleProcess({ folder, sink, lines, running, abort });
    await awaited(`the role ${role} listens`, () => made.port !== undefined, {
      seen: async () => Promise.race([running, Promise.resolve(JSON.stringify(lines))]),
    });
    return made;
  }

  /** Of health and metrics. */
  get port(): number | undefined {
    return this.lines.find(({ message }) => message === 'ops server listens')?.['port'] as number | undefined;
  }

  /** Also one that still starts. */
  async stop(): Promise<void> {
    const { abort, running, folder } = this.#made;
    abort.abort(new Error('the test is over'));
    const agent = await running.catch(() => undefined);
    await agent?.stop();
    await rm(folder, { recursive: true });
  }
}
