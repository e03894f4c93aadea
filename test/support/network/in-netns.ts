/** A network namespace of a test's own, and a process in it that runs the drivers of src/network/host. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { run } from '../../../lab/run.ts';

export interface NetnsCall {
  /** Below src. */
  module: string;
  name: string;
  /** JSON. */
  args: readonly unknown[];
}

export interface NetnsAnswer {
  /** JSON; a Map comes as an object. */
  result?: unknown;
  error?: string;
  /** Of a TributaryError. */
  code?: string;
  ms: number;
}

/** Why these tests cannot run here; undefined when they can. */
export const netnsProblem = (): string | undefined =>
  process.getuid?.() === 0 ? undefined : 'network namespaces need root';

export class Netns {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  /** Of the last call, in milliseconds, without the way there and back. */
  lastMs = 0;

  private constructor(name: string) {
    this.name = name;
    const child = fileURLToPath(new URL('in-netns-child.ts', import.meta.url));
    this.#child = spawn('nsenter', [`--net=/run/netns/${name}`, process.execPath, child], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const output = this.#child.stdout;
    if (output === null) throw new Error('no output');
    this.#answers = createInterface({ input: output })[Symbol.asyncIterator]();
  }

  static async up(name: string): Promise<Netns> {
    await run(['ip', 'netns', 'add', name]);
    await run(['ip', '-n', name, 'link', 'set', 'lo', 'up']);
    return new Netns(name);
  }

  /** One more process in a namespace that is there; `leave` ends it. */
  static enter(name: string): Netns {
    return new Netns(name);
  }

  /** One call at a time; throws what the call threw, with its code. */
  async call<T>(module: string, name: string, ...args: readonly unknown[]): Promise<T> {
    const call: NetnsCall = { module, name, args };
    this.#child.stdin?.write(`${JSON.stringify(call)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`the process in ${this.name} has ended`);
    const { result, error, code, ms } = JSON.parse(value) as NetnsAnswer;
    this.lastMs = ms;
    if (error !== undefined) throw Object.assign(new Error(error), { code });
    return result as T;
  }

  /** Standard output of a command in the namespace. */
  async run(command: readonly [string, ...string[]], stdin = ''): Promise<string> {
    return run(command, { netns: this.name, stdin });
  }

  async leave(): Promise<void> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
  }

  async down(): Promise<void> {
    await this.leave();
    await run(['ip', 'netns', 'del', this.name]);
  }
}
