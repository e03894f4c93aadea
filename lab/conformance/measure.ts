/** Runs the chosen specs on both sides of a bed, and compares. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { binaries } from '../binaries.ts';
import { moduleDir, modules, pinnedVersion } from '../binary-table.ts';
import type { Stage } from '../demo/stage.ts';
import type { Workbench } from '../demo/workbench.ts';
import { FOREIGN, HOME, makeBed } from './bed.ts';
import { choose } from './choice.ts';
import { DIFFERENCES, LAB_FAILURES } from './reasons.ts';
import { compare, withSecondRun, type Result } from './score.ts';
import type { Spec } from './specs.ts';
import { listSpecs, runSpecs, type SuiteOptions } from './suite.ts';

export interface MeasureOptions {
  readonly lab: string;
  readonly processes: number;
  /** Only specs whose name matches. */
  readonly focus: RegExp | undefined;
  /** What runs directly: all specs, or those that have failed through the virtual node. */
  readonly directly: Result['directly'];
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** A run that hangs ends, also where other programs use the machine. */
const RUN_MINUTES = 60;
/** What failed without a known reason runs again with few beside it. */
const SECOND = { processes: 4, timeoutMinutes: 20 } as const;

const minutesSince = (began: number): number => Math.round((performance.now() - began) / 6_000) / 10;

export async function measure(stage: Stage, options: MeasureOptions): Promise<Result> {
  const began = performance.now();
  const { lab, focus, processes, directly, signal } = options;
  const bench = await makeBed(lab, stage, signal);
  const all = choose(await listSpecs(await side(bench, HOME, options)));
  const chosen = focus === undefined ? all.chosen : all.chosen.filter((name) => focus.test(name));
  const skip = all.leftOut.map(({ name }) => name);
  stage.say(`${chosen.length} specs, ${skip.length} left out`);
  const here = await stage.step('through the virtual node', async () =>
    runSide(await side(bench, HOME, options), {
      processes,
      skip,
      ...(focus !== undefined && { focus: chosen }),
    }),
  );
  const passed = here.specs.filter(({ state }) => state === 'passed');
  const there = await stage.step('directly on the foreign cluster', async () => {
    const names = new Set(passed.map(({ name }) => name));
    const rest = directly === 'all' ? chosen : chosen.filter((name) => !names.has(name));
    const isWhole = focus === undefined && directly === 'all';
    return runSide(await side(bench, FOREIGN, options), {
      processes,
      skip,
      ...(!isWhole && { focus: rest }),
    });
  });
  return {
    kubernetes: suiteVersion(),
    processes,
    cores: availableParallelism(),
    directly,
    minutes: { through: here.minutes, direct: there.minutes, total: minutesSince(began) },
    ...compare(chosen, directly === 'all' ? there.specs : [...there.specs, ...passed], here.specs),
    again: [...there.again, ...here.again].toSorted(),
    leftOut: skip,
  };
}

async function side(
  bench: Workbench,
  city: typeof HOME | typeof FOREIGN,
  { signal, say }: MeasureOptions,
): Promise<SuiteOptions> {
  const programs = await binaries(say, ['e2e', 'ginkgo', 'kubectl']);
  const directory = join(bench.directory, city);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const { kubeconfig } = bench.lab.cluster(city);
  return { programs, directory, kubeconfig, signal, progress: (line) => say(`  ${city}: ${line}`) };
}

interface Side {
  readonly specs: readonly Spec[];
  /** Failed at first, and passed in the second run. */
  readonly again: readonly string[];
  readonly minutes: number;
}

interface Plan {
  readonly processes: number;
  readonly skip: readonly string[];
  /** These and no others. */
  readonly focus?: readonly string[];
}

/** The specs on one side, and once more what failed of them for no known reason. */
async function runSide(options: SuiteOptions, plan: Plan): Promise<Side> {
  const began = performance.now();
  if (plan.focus?.length === 0) return { specs: [], again: [], minutes: 0 };
  const first = await runFirst(options, plan);
  const failed = failures(first);
  for (const [name, message] of failed) options.progress(`failed: ${name}\n    ${message}`);
  const unknown = [...failed.keys()].filter((name) => !KNOWN.includes(name));
  if (unknown.length === 0) return { specs: first, again: [], minutes: minutesSince(began) };
  const second = await runSpecs(options, { ...SECOND, title: 'second', focus: unknown });
  const specs = withSecondRun(first, second);
  const still = failures(specs);
  for (const name of unknown) {
    const message = still.get(name);
    options.progress(
      message === undefined ? `passed then: ${name}` : `failed again: ${name}\n    ${message}`,
    );
  }
  return { specs, again: unknown.filter((name) => !still.has(name)), minutes: minutesSince(began) };
}

/** What is expected to fail. */
const KNOWN = [DIFFERENCES, LAB_FAILURES].flatMap((table) => Object.keys(table));

/**
 * What is expected to fail waits up to a quarter of an hour before it does, and computes nothing: it runs beside the others,
 * each in a process of its own.
 */
async function runFirst(options: SuiteOptions, plan: Plan): Promise<Spec[]> {
  const isWanted = (name: string): boolean => plan.focus?.includes(name) ?? true;
  const apart = KNOWN.filter(isWanted);
  const others = plan.focus?.filter((name) => !apart.includes(name));
  const common = { timeoutMinutes: RUN_MINUTES };
  const [many, few] = await Promise.all([
    others?.length === 0
      ? []
      : runSpecs(options, {
          ...common,
          title: 'first',
          processes: plan.processes,
          skip: [...plan.skip, ...apart],
          ...(others !== undefined && { focus: others }),
        }),
    apart.length === 0
      ? []
      : runSpecs(options, { ...common, title: 'apart', processes: apart.length, focus: apart }),
  ]);
  return many.length === 0 ? few : withSecondRun(many, few);
}

const LONGEST_MESSAGE = 1_500;

const failures = (specs: readonly Spec[]): ReadonlyMap<string, string> =>
  new Map(
    specs
      .filter(({ state }) => state === 'failed')
      .map(({ name, message }) => [name, message.slice(0, LONGEST_MESSAGE)]),
  );

function suiteVersion(): string {
  const module = modules.find(({ name }) => name === 'conformance');
  if (module === undefined) throw new Error('the table of programs has no module conformance');
  return pinnedVersion(readFileSync(join(moduleDir(module), 'go.mod'), 'utf8'), 'k8s.io/kubernetes');
}
