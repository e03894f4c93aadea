/** The auditor as a process, and its caller's end of the conversation. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface Verdict {
  readonly did: string;
  readonly run: string;
  readonly seconds: number;
  readonly pods: { readonly home: number; readonly remote: number };
  readonly violations: readonly { readonly invariant: string; readonly what: string }[];
  readonly unjudged: readonly { readonly invariant: string; readonly why: string }[];
}

export class AuditorProcess {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  /** @param config path of its configuration */
  constructor(config: string) {
    this.#child = spawn(process.execPath, ['faults/auditor/main.ts', config], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.#child.stdout === null) throw new Error('no output');
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** One command at a time; throws what the auditor says of itself. */
  async ask(command: object): Promise<unknown> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`the auditor has ended with ${this.#child.exitCode}`);
    const answer = JSON.parse(value) as { error?: string };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }

  async settle(): Promise<Verdict> {
    return (await this.ask({ do: 'settle' })) as Verdict;
  }

  /** Its exit status, after the end of its input. */
  async end(): Promise<number | null> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
    return this.#child.exitCode;
  }
}
