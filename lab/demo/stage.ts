/** Shows commands and what they print, measures each thing shown, and closes with a table. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Ended, Program } from './program.ts';
import type { ShellOptions, Workbench } from './workbench.ts';

export interface ShowOptions extends ShellOptions {
  /** Exit code that is expected; default 0. */
  readonly code?: number;
  /** What it must print, on either stream. */
  readonly expect?: RegExp;
  /** Print no more than this many lines. */
  readonly lines?: number;
}

interface Shown {
  readonly what: string;
  readonly seconds: number;
  readonly ok: boolean;
}

const LINES = 12;
const DIFFERENCES = 60;
const COLUMNS = 160;
const POLL_MS = 100;
const MAX_POLL_MS = 1000;

/** Something was not as expected; the message says everything that is needed. */
export class Mismatch extends Error {}

export class Stage {
  readonly #say: (line: string) => void;
  readonly #shown: Shown[] = [];

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** One line of the closing table. */
  async step<T>(what: string, action: () => Promise<T>): Promise<T> {
    this.#say(`\n== ${what}`);
    const began = performance.now();
    let ok = false;
    try {
      const result = await action();
      ok = true;
      return result;
    } finally {
      this.#shown.push({ what, seconds: (performance.now() - began) / 1000, ok });
    }
  }

  /** Shows and runs a command; throws if its exit code or output is not as expected. */
  async show(bench: Workbench, command: string, options: ShowOptions = {}): Promise<Ended> {
    this.say(`$ ${command}`);
    const ended = await bench.run(command, options);
    this.quote(ended.stdout, options.lines);
    this.quote(ended.stderr, options.lines);
    const { code = 0, expect } = options;
    if (ended.code !== code) throw new Mismatch(`exit code ${ended.code} instead of ${code}: ${command}`);
    check(
      expect === undefined || expect.test(ended.stdout + ended.stderr),
      `printed nothing like ${expect}: ${command}`,
    );
    return ended;
  }

  /** Repeats a command until it prints what is expected; shown once, with what it printed last. */
  async until(bench: Workbench, command: string, expect: RegExp, timeoutMs = 60_000): Promise<Ended> {
    this.say(`$ ${command}   # until ${expect.source}`);
    const began = performance.now();
    const deadline = began + timeoutMs;
    for (;;) {
      const ended = await bench.run(command);
      const met = ended.code === 0 && expect.test(ended.stdout);
      if (met || performance.now() > deadline) this.quote(met ? ended.stdout : ended.stdout + ended.stderr);
      if (met) return ended;
      check(performance.now() <= deadline, `printed nothing like ${expect}: ${command}`);
      // Each look starts a process, so the pauses grow with the time that has passed.
      await sleep(Math.min(MAX_POLL_MS, Math.max(POLL_MS, (performance.now() - began) / 20)));
    }
  }

  /** Waits for something that no single command shows. */
  async wait(what: string, isSo: () => Promise<boolean>, timeoutMs = 30_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!(await isSo())) {
      check(performance.now() <= deadline, `not within ${timeoutMs / 1000} s: ${what}`);
      await sleep(POLL_MS);
    }
    this.say(what);
  }

  /** Waits until there are no differences any more; shows those that stay. */
  async same(what: string, differences: () => Promise<readonly string[]>, timeoutMs: number): Promise<void> {
    let last: readonly string[] = [];
    try {
      await this.wait(what, async () => (last = await differences()).length === 0, timeoutMs);
    } finally {
      this.quote(last.join('\n'), DIFFERENCES);
    }
  }

  /** Starts a command that runs in the background, shown with `&`. */
  begin(bench: Workbench, command: string, options: ShellOptions = {}): Program {
    this.say(`$ ${command} &`);
    return bench.start(command, options);
  }

  say(line: string): void {
    this.#say(`  ${line}`);
  }

  quote(output: string, most: number = LINES): void {
    const lines = output.replaceAll('\r', '').trimEnd().split('\n');
    if (lines.join('') === '') return;
    for (const line of lines.slice(0, most)) this.#say(`    ${shorten(line)}`);
    if (lines.length > most) this.#say(`    ... ${lines.length - most} more lines`);
  }

  /** What was shown, how long each took, and whether it was right. */
  table(): string {
    const width = Math.max(...this.#shown.map(({ what }) => what.length), 0);
    const rows = this.#shown.map(
      ({ what, seconds, ok }) =>
        `${what.padEnd(width)}  ${seconds.toFixed(1).padStart(6)} s  ${ok ? 'ok' : 'FAILED'}`,
    );
    return ['shown'.padEnd(width) + '      took', ...rows].join('\n');
  }
}

const shorten = (line: string): string => (line.length > COLUMNS ? `${line.slice(0, COLUMNS)}...` : line);

export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Mismatch(message);
}
