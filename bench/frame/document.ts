/** docs/benchmarks.md and its plots, from a run. Pure. */
import type { Goal } from './bench.ts';
import { isReached } from './goals.ts';
import { curvePlot, goalPlot } from './plot.ts';
import type { Done, Run } from './run.ts';
import { figureRows, goalRows } from './text.ts';

export interface DocumentParts {
  readonly run: Run;
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
export function documentsOf({ run, introduction, bounds }: DocumentParts): Documents {
  const goals = run.benches.flatMap(({ found }) => found.goals);
  const unexplained = goals.filter((goal) => !isReached(goal) && !bounds.has(goal.id));
  if (unexplained.length > 0) {
    const ids = unexplained.map(({ id }) => id).join(', ');
    throw new Error(`${ids} missed: write what bounds it, by a profile, into bench/bounds/ID.md`);
  }
  const plots = new Map<string, string>([['goals.svg', goalPlot(goals)]]);
  const sections = run.benches.map((done) => section(done, bounds, plots));
  const parts = [
    '<!-- Made by tools/generate.ts from bench/result.json (written by bench/store.ts), bench/introduction.md and bench/bounds. Do not edit. -->',
    '# Benchmarks',
    introduction.trim(),
    machineText(run),
    `## Goals\n\n${reachedText(goals)}\n\n![All goals](${PLOT_FOLDER}/goals.svg)`,
    ...sections,
  ];
  return { markdown: `${parts.join('\n\n')}\n`, plots };
}

function section(done: Done, bounds: ReadonlyMap<string, string>, plots: Map<string, string>): string {
  const { name, title, what, parameters, rounds, seconds, load, found } = done;
  const chosen = Object.entries(parameters).map(([key, value]) => `${key} ${value}`);
  const facts = [`${rounds} rounds`, ...chosen, `${seconds} s`, `load ${load} before`];
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
    `${facts.join(', ')}. Median (least–most):`,
    found.measured.length === 0 ? '' : markdownTable(figureRows(found), 1),
    found.goals.length === 0 ? '' : markdownTable(goalRows(found), 2),
    ...curves,
    ...(found.remarks ?? []),
    ...missed,
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function machineText({ machine, version, date }: Run): string {
  const { cpu, cores, memoryGiB, kernel, node, kubernetes } = machine;
  return (
    `Measured on ${date} with Tributary ${version} on ${cores} cores (${cpu}), ${memoryGiB} GiB, Linux ${kernel}, ` +
    `Node.js ${node}, Kubernetes ${kubernetes}.`
  );
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
