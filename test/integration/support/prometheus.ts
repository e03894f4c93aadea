/** A real Prometheus on loopback that scrapes processes of ours every second. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

import { freePorts } from '../../../lab/free-ports.ts';
import { awaited } from '../../support/eventually.ts';

/** Whether Debian's package `prometheus` is there, with promtool. */
export const hasPrometheus = (): boolean =>
  ['prometheus', 'promtool'].every((program) =>
    (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, program))),
  );

interface Answer<T> {
  status: 'success' | 'error';
  error?: string;
  data: T;
}

export interface RuleState {
  name: string;
  health: string;
  state: string;
  lastError?: string;
}

export class Prometheus {
  readonly #program: ChildProcess;
  readonly #folder: string;
  readonly #url: string;
  readonly #targets: number;

  private constructor(made: { program: ChildProcess; folder: string; url: string; targets: number }) {
    this.#program = made.program;
    this.#folder = made.folder;
    this.#url = made.url;
    this.#targets = made.targets;
  }

  /** Returns when all targets have been scraped. */
  static async start(ports: readonly number[], ruleFile: string): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'tributary-prometheus-'));
    const [port = 0] = await freePorts(1);
    const config = join(folder, 'prometheus.yml');
    const targets = ports.map((each) => `127.0.0.1:${each}`);
    // JSON is YAML.
    await writeFile(
      config,
      JSON.stringify({
        global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
        rule_files: [ruleFile],
        scrape_configs: [{ job_name: 'tributary', static_configs: [{ targets }] }],
      }),
    );
    const program = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const made = { program, folder, url: `http://127.0.0.1:${port}`, targets: targets.length };
    const prometheus = new Prometheus(made);
    try {
      await awaited('all targets were scraped', async () => prometheus.#isScraped(), {
        // It does not listen yet.
        isLater: () => true,
      });
    } catch (error) {
      await prometheus.stop();
      throw error;
    }
    return prometheus;
  }

  /** The rules, once each was evaluated after the first scrape. */
  async rules(): Promise<RuleState[]> {
    return awaited('each rule was evaluated', async () => {
      const { data } = await this.#get<{ groups: { rules: RuleState[] }[] }>('rules');
      const rules = data.groups.flatMap((group) => group.rules);
      return rules.length > 0 && rules.every(({ health }) => health !== 'unknown') && rules;
    });
  }

  /** How many series the expression has now; throws what Prometheus says against it. */
  async count(expr: string): Promise<number> {
    const { status, error, data } = await this.#get<{ result: unknown[] }>(
      `query?query=${encodeURIComponent(expr)}`,
    );
    if (status !== 'success') throw new Error(`${expr}: ${error}`);
    return data.result.length;
  }

  async stop(): Promise<void> {
    if (this.#program.exitCode === null && this.#program.signalCode === null) {
      const ended = new Promise((resolve) => void this.#program.once('exit', resolve));
      this.#program.kill('SIGTERM');
      await ended;
    }
    await rm(this.#folder, { recursive: true });
  }

  async #isScraped(): Promise<boolean> {
    const { data } = await this.#get<{ activeTargets: { health: string; lastError: string }[] }>('targets');
    const up = data.activeTargets.filter(({ health }) => health === 'up');
    return up.length === this.#targets && (await this.count('count_over_time(up[1m]) > 2')) === this.#targets;
  }

  async #get<T>(path: string): Promise<Answer<T>> {
    const response = await fetch(`${this.#url}/api/v1/${path}`);
    return (await response.json()) as Answer<T>;
  }
}
