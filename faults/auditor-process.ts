/** The auditor, a program of its own, as a child: commands and answers are lines of JSON (faults/auditor/README.md). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { MARK } from '../lab/process.ts';
import type { LabSpec } from '../lab/spec.ts';

export interface AuditedProvider {
  readonly name: string;
  /** Path. */
  readonly kubeconfig: string;
  /** Name of the virtual node. */
  readonly node: string;
  readonly namespaces: readonly { readonly home: string; readonly tenant: string }[];
}

export interface AuditConfig {
  readonly home: { readonly kubeconfig: string };
  readonly providers: readonly AuditedProvider[];
  /** Values that must not occur in logs, events and arguments. */
  readonly canaries: readonly string[];
  /** Paths of logs. */
  readonly logs: readonly string[];
  /** Names of network namespaces. */
  readonly hosts: readonly string[];
  readonly bounds: { readonly settleSeconds: number; readonly quietSeconds: number };
  /** What other runs do beside this one. */
  readonly ignoreNamespaces?: readonly string[];
  readonly ignoreNodes?: readonly string[];
}

export interface Violation {
  /** I1 to I10. */
  readonly invariant: string;
  readonly what: string;
}

export interface Verdict {
  readonly seconds: number;
  readonly pods: { readonly home: number; readonly remote: number };
  readonly violations: readonly Violation[];
  /** What could not be read, so that nobody knows whether it held. */
  readonly unjudged: readonly { readonly invariant: string; readonly why: string }[];
}

type Command =
  | { do: 'begin'; run: string }
  | { do: 'watch-process' | 'killed'; pid: number }
  | { do: 'lost'; cluster: string; uid: string }
  | { do: 'restored'; cluster: string }
  | { do: 'settle' }
  | { do: 'end' };

const ANSWER_MS = 300_000;

export class AuditorProcess {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #errors: string[] = [];
  /** One command at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(child: ChildProcess) {
    this.#child = child;
    if (child.stdout === null || child.stderr === null) throw new Error('the auditor has no output');
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on('data', (data: Buffer) => this.#errors.push(data.toString()));
    child.stdin?.on('error', () => undefined);
  }

  /** `file`: where its configuration is written to. */
  static start(config: AuditConfig, file: string, lab: LabSpec): AuditorProcess {
    writeFileSync(file, JSON.stringify(config));
    const main = join(import.meta.dirname, 'auditor/main.ts');
    // oxlint-disable-next-line node/no-process-env -- a child needs the PATH and the like
    const env = { ...process.env, [MARK]: lab.runDirectory };
    return new AuditorProcess(
      spawn(process.execPath, [main, file], { stdio: ['pipe', 'pipe', 'pipe'], env }),
    );
  }

  async begin(run: string): Promise<void> {
    await this.#ask({ do: 'begin', run });
  }

  async watchProcess(pid: number): Promise<void> {
    await this.#ask({ do: 'watch-process', pid });
  }

  /** It was the caller who killed it. */
  async killed(pid: number): Promise<void> {
    await this.#ask({ do: 'killed', pid });
  }

  /** A body is about to be lost at the provider, by the caller's hand. */
  async lost(cluster: string, uid: string): Promise<void> {
    await this.#ask({ do: 'lost', cluster, uid });
  }

  /** Waits until everything is at rest, and judges the run. What is not known to have held counts as violated. */
  async settle(): Promise<readonly Violation[]> {
    const { violations, unjudged } = (await this.#ask({ do: 'settle' })) as unknown as Verdict;
    return [
      ...violations,
      ...unjudged.map(({ invariant, why }) => ({ invariant, what: `cannot be judged: ${why}` })),
    ];
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  async #ask(command: Command): Promise<Record<string, unknown>> {
    const mine = this.#turn.then(async () => this.#exchange(command));
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  async #exchange(command: Command): Promise<Record<string, unknown>> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`the auditor has not answered ${command.do} within ${ANSWER_MS / 1000} s`)),
      ANSWER_MS,
    );
    try {
      const { done, value } = await Promise.race([this.#answers.next(), late.promise]);
      if (done === true) throw new Error(`the auditor has ended: ${this.#errors.join('').slice(-2_000)}`);
      const answer = JSON.parse(value) as Record<string, unknown>;
      if (answer['did'] !== command.do) throw new Error(`the auditor answers ${command.do}: ${value}`);
      return answer;
    } finally {
      clearTimeout(timer);
    }
  }
}
