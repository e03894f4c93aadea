/** One run of some benchmarks, and its place in a file. */
import { readFileSync } from 'node:fs';

import { VERSION } from '../../src/version.ts';
import type { Bench, Found, OtherProgram, Parameters } from './bench.ts';
import { mistake } from './arguments.ts';
import { describeMachine, loadNow, type Machine } from './machine.ts';
import { commitOf } from './places.ts';
import { hasBefore } from './repeat.ts';

export interface Done {
  readonly name: string;
  readonly title: string;
  readonly what: string;
  readonly parameters: Parameters;
  readonly rounds: number;
  /** Day, as in ISO 8601. */
  readonly date: string;
  readonly seconds: number;
  readonly machine: Machine;
  /** The commit of the version before that took part, if one did and it was a checkout of git. */
  readonly before?: string | undefined;
  /** Load average of the last minute when it began. */
  readonly load: number;
  readonly found: Found;
}

export interface Run {
  readonly version: string;
  /** Of its last benchmark. */
  readonly date: string;
  readonly benches: readonly Done[];
}

export interface Wanted {
  readonly benches: readonly Bench[];
  /** Of `--set`. */
  readonly changed: Parameters;
  readonly rounds: number;
  readonly before?: string | undefined;
  readonly others: readonly OtherProgram[];
  readonly nodeFlags: readonly string[];
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  /** Called after each, so that one that fails later takes nothing away. */
  readonly done: (run: Run) => void;
}

/** @throws if one of them cannot run here, so that nobody learns of the last one after hours */
export function checkPossible(benches: readonly Bench[], changed: Parameters): void {
  for (const bench of benches) {
    const why = bench.problem?.(chosen(bench.parameters, changed));
    if (why !== undefined) throw mistake(`benchmark ${bench.name} cannot run here: ${why}`);
  }
}

/** One after the other; one that fails ends the run. */
export async function runAll(wanted: Wanted): Promise<Run> {
  const { benches, changed, rounds, before, others, nodeFlags, signal, say } = wanted;
  const machine = describeMachine();
  let run: Run = { version: VERSION, date: today(), benches: [] };
  for (const bench of benches) {
    const { name, title, what } = bench;
    say(`\n${name}: ${title}`);
    const parameters = chosen(bench.parameters, changed);
    const began = performance.now();
    const load = loadNow();
    const found = await bench.run({ parameters, rounds, before, others, nodeFlags, say, signal });
    signal.throwIfAborted();
    const seconds = Math.round((performance.now() - began) / 1000);
    const commit = before !== undefined && hasBefore(found) ? commitOf(before) : undefined;
    const facts = { name, title, what, parameters, rounds, date: today(), seconds, machine, load };
    const done: Done = { ...facts, ...(commit !== undefined && { before: commit }), found };
    run = { ...run, date: done.date, benches: [...run.benches, done] };
    wanted.done(run);
  }
  return run;
}

const today = (): string => new Date().toISOString().slice(0, 10);

/** Those of a benchmark, changed where it has one of that name. */
export const chosen = (own: Parameters, changed: Parameters): Parameters =>
  Object.fromEntries(Object.entries(own).map(([name, value]) => [name, changed[name] ?? value]));

/** Those of the later files take the place of earlier ones. */
export function readRuns(files: readonly string[]): Run {
  const [first, ...rest] = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Run);
  if (first === undefined) throw mistake('name the file of a run');
  return rest.reduce(joined, first);
}

/** Figures side by side are of one benchmark, and so of one machine. */
export function joined(run: Run, later: Run): Run {
  const fresh = new Map(later.benches.map((bench) => [bench.name, bench]));
  const kept = run.benches.map((bench) => fresh.get(bench.name) ?? bench);
  const known = new Set(run.benches.map(({ name }) => name));
  return { ...later, benches: [...kept, ...later.benches.filter(({ name }) => !known.has(name))] };
}
