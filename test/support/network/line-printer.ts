/** Programs of tests that print lines of JSON. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { eventually } from '../eventually.ts';
import type { LanAgentLine } from './lan-agent.ts';

/** For programs of the lab, also on a machine that is busy with other tests. */
export const SOON_MS = 60_000;

/** A program that prints lines of JSON. */
export class LinePrinter<Line extends { event: string }> {
  readonly lines: Line[] = [];
  readonly child: ChildProcess;
  #log = '';

  constructor(child: ChildProcess) {
    this.child = child;
    if (child.stdout === null) throw new Error('the agent has no standard output');
    createInterface({ input: child.stdout }).on('line', (line) => this.lines.push(JSON.parse(line) as Line));
    child.stderr?.on('data', (bytes: Buffer) => (this.#log += bytes.toString()));
  }

  get log(): string {
    return this.#log;
  }

  async until(what: string, test: (line: Line) => boolean, deadlineMs: number = SOON_MS): Promise<Line> {
    let found: Line | undefined;
    const look = (): boolean => (found = this.lines.findLast(test)) !== undefined;
    try {
      await eventually(what, look, deadlineMs);
    } catch (cause) {
      throw new Error(`${what}: not seen in ${JSON.stringify(this.lines)}\n${this.#log}`, { cause });
    }
    return found as Line;
  }

  /** Its memory. */
  get rssMib(): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  /** Writes a line to its standard input. */
  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  async terminate(): Promise<void> {
    await endChild(this.child, 'SIGTERM');
  }

  async kill(): Promise<void> {
    await endChild(this.child, 'SIGKILL');
  }
}

/** A process of lan-agent.ts. */
export class LanAgent extends LinePrinter<LanAgentLine> {
  /** What it last said about a cluster; undefined if it has not seen the cluster, or if the cluster is gone. */
  sees(id: string): Extract<LanAgentLine, { event: 'seen' }> | undefined {
    const last = this.lines.findLast((line) => 'id' in line && line.id === id);
    return last?.event === 'seen' ? last : undefined;
  }
}

/** The line by which a LanAgent says that it sees this cluster. */
export const isSeen =
  (id: string) =>
  (line: LanAgentLine): boolean =>
    line.event === 'seen' && line.id === id;

/** Resolves when it has ended. */
export async function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('exit', () => resolve());
  child.kill(signal);
  await promise;
}
