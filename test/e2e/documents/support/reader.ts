/** Somebody who types all that a document says, block after block, on real clusters. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Ended, Program } from '../../../../lab/demo/program.ts';
import type { Workbench } from '../../../../lab/demo/workbench.ts';
import { until } from '../../../support/e2e/until.ts';
import { type Block, blocksOf, typedIn } from './blocks.ts';
import {
  type Act,
  type BlockAct,
  type Reading,
  replaced,
  type Replacements,
  type UntilAct,
} from './reading.ts';
import { missing } from './shape.ts';

const PATIENCE_MS = 120_000;
/** Of what a failed command has printed. */
const MOST = 2000;
const QUESTION = /\[y\/N\]/;

/** How a block with commands that do not end is cut. */
interface Piece {
  readonly text: string;
  /** What the command prints when it is there; it goes on until it is stopped. */
  readonly blocking?: RegExp;
}

type Typing = Pick<BlockAct, 'context' | 'stdin' | 'answer'>;

export class Reader {
  readonly #bench: Workbench;
  /** That hold in all documents. */
  readonly #values: Replacements;
  readonly #say: (line: string) => void;
  readonly #running: Program[] = [];
  #scripts = 0;

  constructor(bench: Workbench, values: Replacements, say: (line: string) => void) {
    this.#bench = bench;
    this.#values = values;
    this.#say = say;
  }

  async read(reading: Reading): Promise<void> {
    rmSync(this.#stateFile, { force: true });
    try {
      for (const act of reading.acts) await this.#perform(reading, act);
    } finally {
      await this.#stopAllBut(0);
    }
  }

  async #perform(reading: Reading, act: Act): Promise<void> {
    const began = performance.now();
    if ('given' in act) await this.#type(reading, act.given, act);
    else if ('until' in act) await this.#until(reading, act);
    else await this.#typeBlock(reading, act);
    const what = Object.values(act)[0] as string;
    const seconds = (performance.now() - began) / 1000;
    this.#say(`${seconds.toFixed(1).padStart(6)} s  ${reading.document}: ${what.split('\n')[0]}`);
  }

  async #until(reading: Reading, act: UntilAct): Promise<void> {
    let last: Ended | undefined;
    await until(
      `${act.until} prints ${act.prints}`,
      async () => {
        last = await this.#run(reading, act.until, act);
        return last.code === 0 && act.prints.test(last.stdout);
      },
      { seconds: PATIENCE_MS / 1000, seen: async () => Promise.resolve(last) },
    );
  }

  async #succeeds(reading: Reading, command: string, act: Typing): Promise<void> {
    let last: Ended | undefined;
    const look = async (): Promise<boolean> => (last = await this.#run(reading, command, act)).code === 0;
    const options = { seconds: PATIENCE_MS / 1000, seen: async () => Promise.resolve(last) };
    await until(`success of ${command}`, look, options);
  }

  async #typeBlock(reading: Reading, act: BlockAct): Promise<void> {
    const found = blocksOf(reading.document).find(({ text }) => text.startsWith(act.block));
    if (found === undefined) throw new Error(`${reading.document} has no block ${act.block}`);
    const where = `${found.document}:${found.line}`;
    const before = this.#running.length;
    try {
      const printed = found.isConsole
        ? await this.#typeConsole(reading, act, found)
        : await this.#typeAll(reading, act, found);
      if (act.prints !== undefined && !act.prints.test(printed))
        throw new Error(`printed nothing like ${act.prints}: ${printed}`);
      if (act.meanwhile !== undefined) await this.#succeeds(reading, act.meanwhile, act);
    } catch (cause) {
      throw new Error(`${where}: ${Error.isError(cause) ? cause.message : String(cause)}`, { cause });
    } finally {
      if (act.stay === undefined) await this.#stopAllBut(before);
    }
  }

  async #typeAll(reading: Reading, act: BlockAct, { text }: Block): Promise<string> {
    const printed: string[] = [];
    for (const { text: piece, blocking } of piecesOf(text, act.blocking)) {
      const command = replaced(piece, act.replace, reading.replace, this.#values);
      if (blocking === undefined) {
        printed.push((await this.#type(reading, command, act)).stdout);
        continue;
      }
      const program = this.#start(reading, command, act);
      this.#running.push(program);
      await program.waitFor(blocking, PATIENCE_MS);
      printed.push(program.stdout);
    }
    return printed.join('');
  }

  /** Each command by itself, with what the document says that it prints. */
  async #typeConsole(reading: Reading, act: BlockAct, { text }: Block): Promise<string> {
    let all = '';
    for (const { command, printed } of typedIn(replaced(text, act.replace, reading.replace, this.#values))) {
      const { code, stdout, stderr } = await this.#run(reading, command, act);
      const isRefusal = printed.some((line) => /^(?:Error from server|error:)/.test(line));
      const lacking = missing(printed, stdout + stderr, act.only);
      if ((code !== 0) !== isRefusal || lacking.length > 0)
        throw new Error(
          `exit code ${code}${lacking.map((line) => `\nnot printed: ${line}`).join('')}\n$ ${command}\n${stdout}${stderr}`,
        );
      all += stdout + stderr;
    }
    return all;
  }

  async #type(reading: Reading, command: string, act: Typing): Promise<Ended> {
    const ended = await this.#run(reading, command, act);
    const { code, stdout, stderr } = ended;
    if (code !== 0)
      throw new Error(`exit code ${code}\n${command}\n${stdout.slice(-MOST)}${stderr.slice(-MOST)}`);
    return ended;
  }

  async #run(reading: Reading, command: string, act: Typing): Promise<Ended> {
    const program = this.#start(reading, command, act);
    if (act.answer !== undefined) await this.#answer(program, act.answer);
    return program.ended;
  }

  /** The same to each question, until the command has ended. */
  async #answer(program: Program, answer: string): Promise<void> {
    for (let count = 1; ; count++) {
      const asked = new RegExp(`(?:${QUESTION.source}[^]*?){${count}}`);
      const isAsked = await program.waitFor(asked, PATIENCE_MS).then(
        () => true,
        () => false,
      );
      if (!isAsked) return;
      program.write(`${answer}\n`);
    }
  }

  /** Variables and functions of earlier blocks of the document are known, as in the shell of a reader. */
  #start(reading: Reading, command: string, act: Typing): Program {
    const context = act.context ?? reading.context;
    const script = [
      `[ ! -e ${this.#stateFile} ] || . ${this.#stateFile}`,
      `cd ${reading.folder ?? this.#bench.directory}`,
      ...(context === undefined ? [] : [`export KUBECONFIG=${this.#kubeconfigs(context)}`]),
      ...(act.stdin === undefined ? [] : [`exec < <(${act.stdin})`]),
      command,
      `{ export -p; declare -f; } > ${this.#stateFile}`,
    ].join('\n');
    this.#scripts += 1;
    const file = join(this.#bench.directory, `block-${this.#scripts}.sh`);
    writeFileSync(file, script);
    return this.#bench.start(`exec bash -euo pipefail ${file}`, {
      timeoutMs: 2 * PATIENCE_MS,
      ...(act.answer !== undefined && { terminal: { rows: 50, columns: 200 } }),
    });
  }

  /** All of them; the first decides which context is used where none is named. */
  #kubeconfigs(first: string): string {
    const { clusters } = this.#bench.lab;
    return clusters
      .toSorted((a, b) => Number(b.name === first) - Number(a.name === first))
      .map(({ kubeconfig }) => kubeconfig)
      .join(':');
  }

  get #stateFile(): string {
    return join(this.#bench.directory, 'shell-state');
  }

  async #stopAllBut(first: number): Promise<void> {
    for (const program of this.#running.splice(first)) await program.stop();
  }
}

/** The commands that do not end by themselves, and all between them. */
function piecesOf(text: string, blocking: Readonly<Record<string, RegExp>> = {}): Piece[] {
  const pieces: Piece[] = [];
  let pending: string[] = [];
  const flush = (): void => {
    if (pending.length > 0) pieces.push({ text: pending.join('\n') });
    pending = [];
  };
  // A line that ends in a backslash goes on in the next one.
  for (const line of text.split(/(?<!\\)\n/)) {
    const pattern = Object.entries(blocking).find(([beginning]) => line.startsWith(beginning))?.[1];
    if (pattern === undefined) {
      pending.push(line);
      continue;
    }
    flush();
    pieces.push({ text: line, blocking: pattern });
  }
  flush();
  return pieces;
}
