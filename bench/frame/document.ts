/** docs/benchmarks.md and its plots, from a run. Pure. */
import type { Goal, Parameters } from './bench.ts';
import { isReached } from './goals.ts';
import type { Machine } from './machine.ts';
import { curvePlot, goalPlot } from './plot.ts';
import { durationText, hasBefore, repeatCommand, roundsText, sizesNote } from './repeat.ts';
import type { Done, Run } from './run.ts';
import { figureRows, goalRows } from './text.ts';

export interface DocumentParts {
  readonly run: Run;
  /** The parameters of all benchmarks as they are today, by name. */
  readonly defaults: ReadonlyMap<string, Parameters>;
  /** Written by hand: how to read it, how to repeat it. Markdown. */
  readonly introduction: string;
  /** What bounds a goal that is missed, by its id; Markdown, written by hand. */
  readonly bounds: ReadonlyMap<string, string>;
}

export interface Documents {
  readonly markdown: string;
  /** SVG by name of its file. */
  readonly plots: ReadonlyMap<string, string>;
}

/** Beside docs/benchmarks.md. */
export const PLOT_FOLDER = 'benchmarks';

/** @throws if a goal is missed and nobody has written what bounds it */
export function documentsOf(given: DocumentParts): Documents {
  const { run, introduction, bounds } = given;
  const goals = run.benches.flatMap(({ found }) => found.goals);
  const unexplained = goals.filter((goal) => !isReached(goal) && !bounds.has(goal.id));
  if (unexplained.length > 0) {
    const ids = unexplained.map(({ id }) => id).join(', ');
    throw new Error(`${ids} missed: write what bounds it, and what shows that, into bench/bounds/ID.md`);
  }
  const plots = new Map<string, string>([['goals.svg', goalPlot(goals)]]);
  const sections = run.benches.map((done) => section(done, given, plots));
  const parts = [
    '<!-- Made by tools/generate.ts from bench/result.json (written by bench/store.ts), bench/introduction.md and bench/bounds. Do not edit. -->',
    '# Benchmarks',
    introduction.trim(),
    machineText(run),
    timeText(run.benches),
    `## Goals\n\n${reachedText(goals)}\n\n![All goals](${PLOT_FOLDER}/goals.svg)`,
    ...sections,
  ];
  return { markdown: `${parts.join('\n\n')}\n`, plots };
}

function section(done: Done, { defaults, bounds }: DocumentParts, plots: Map<string, string>): string {
  const { name, title, what, found } = done;
  const own = defaults.get(name);
  if (own === undefined)
    throw new Error(
      `bench/result.json has a benchmark ${name}, and bench/benches.ts does not: store without it`,
    );
  const curves = (found.curves ?? []).map((curve, index) => {
    const file = `${name}-${index + 1}.svg`;
    plots.set(file, curvePlot(curve));
    return `![${curve.title}](${PLOT_FOLDER}/${file})`;
  });
  const missed = found.goals
    .filter((goal) => !isReached(goal))
    .map((goal) => `**What bounds ${goal.id}.** ${bounds.get(goal.id)?.trim() ?? ''}`);
  const parts = [
    `## ${name}: ${title}`,
    what,
    repeatText(done, own),
    `${factsText(done)} Median (least–most):`,
    found.measured.length === 0 ? '' : markdownTable(figureRows(found), 1),
    found.goals.length === 0 ? '' : markdownTable(goalRows(found), 2),
    sizesNote(done, own),
    ...curves,
    ...(found.remarks ?? []),
    ...missed,
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function repeatText(done: Done, defaults: Parameters): string {
  const command = `Repeat it: \`${repeatCommand(done, defaults)}\`.`;
  if (!hasBefore(done.found)) return command;
  return `${command} Here \`before\` is ${done.before === undefined ? 'an older version' : `commit ${done.before}`}.`;
}

function factsText({ parameters, rounds, date, seconds, machine, load }: Done): string {
  const chosen = Object.entries(parameters).map(([key, value]) => `${key} ${value}`);
  const facts = [
    date,
    machine.cpu,
    roundsText(rounds),
    ...chosen,
    durationText(seconds),
    `load ${load} before`,
  ];
  return `${facts.join(', ')}.`;
}

function timeText(benches: readonly Done[]): string {
  const seconds = benches.reduce((sum, one) => sum + one.seconds, 0);
  return `The ${benches.length} benchmarks below took ${durationText(seconds)} together; each says how long it took.`;
}

function machineText({ version, benches, date }: Run): string {
  const dates = benches.length === 0 ? [date] : benches.map((one) => one.date).toSorted();
  const machines = [...new Set(benches.map(({ machine }) => machineName(machine)))];
  const several = `${machines.length} machines, of which each section names its own: on `;
  const where = `${machines.length > 1 ? several : ''}${machines.join('; and on ')}`;
  return `Measured ${daysText(dates)} with Tributary ${version} on ${where}.`;
}

const machineName = ({ cpu, cores, memoryGiB, kernel, node, kubernetes }: Machine): string =>
  `${cores} cores (${cpu}), ${memoryGiB} GiB, Linux ${kernel}, Node.js ${node}, Kubernetes ${kubernetes}`;

function daysText(dates: readonly string[]): string {
  const [first, last] = [dates.at(0), dates.at(-1)];
  return first === last ? `on ${first}` : `from ${first} to ${last}`;
}

function reachedText(goals: readonly Goal[]): string {
  const missed = goals.filter((goal) => !isReached(goal)).map(({ id }) => id);
  const reached = goals.length - missed.length;
  return `${reached} of ${goals.length} are reached${missed.length === 0 ? '' : `; missed: ${missed.join(', ')}`}.`;
}

/** The first columns are words, the others figures. */
const markdownTable = ([head = [], ...rows]: readonly (readonly string[])[], words: number): string =>
  [head, head.map((_, column) => (column < words ? '---' : '--:')), ...rows]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
