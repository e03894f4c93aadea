/**
 * Everything that `make test` runs: the checks and each suite, going on whatever fails. The last line is the sum,
 * `N passed, N failed, N skipped`; the exit status is non-zero when anything failed.
 *
 * Usage: node tools/test.ts [check|unit|integration|e2e ...]
 * TRIBUTARY_TEST_MINUTES: no part is begun after so many, and counts as skipped; what hangs is ended (decision 38).
 */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

import { missing, thisMachine } from '../lab/preflight.ts';
import { BackgroundSetup, type SetupStage } from './background-setup.ts';
import { say, secondsSince, step } from './step.ts';
import { addTally, closingLine, failedFiles, readTallies, suiteResult, sumOf, type Tally } from './tally.ts';

const STAGES = ['check', 'unit', 'integration', 'e2e'] as const;
type Stage = (typeof STAGES)[number];
type Suite = Exclude<Stage, 'check'>;

const began = performance.now();
const scratch = mkdtempSync(join(tmpdir(), 'tributary-test-'));

const minutes = Number(process.env['TRIBUTARY_TEST_MINUTES'] ?? Number.NaN);
const isLate = (): boolean => performance.now() - began > minutes * 60_000;
/** A part that was begun in time may take this long beyond it. */
const GRACE_MINUTES = 15;
const limit = Number.isNaN(minutes) ? {} : { until: Date.now() + (minutes + GRACE_MINUTES) * 60_000 };

/** What is no test: passing it counts nothing, failing it counts as one failure. */
const counted = (ok: boolean): Tally => ({ passed: 0, failed: ok ? 0 : 1, skipped: 0 });
const NOTHING = counted(true);

const check = async (): Promise<Tally> =>
  counted(
    await step('check (format, lint, types, generated files)', 'npm', ['run', '--silent', 'check'], limit),
  );

/** Some files of a suite, which run as one. */
interface Part {
  readonly name: string;
  readonly files: readonly string[];
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Lanes run beside each other, the parts of a lane one after another. */
interface Round {
  readonly needs?: SetupStage;
  readonly lanes: readonly (readonly Part[])[];
}

/**
 * Integration files that measure times or have networks and many processes run one at a time; the others, each with a lab of its
 * own, by twos, while programs that they do not use are still built.
 */
const ALONE =
  /\/integration\/(home-return|lan-|network-|offered-services-plane|peering-|scale|slices|versions|wan-)/;

const filesOf = (suite: Suite): string[] => globSync(`test/${suite}/**/*.test.ts`).toSorted();

function endToEndRounds(): readonly Round[] {
  // The files of a folder share a lab (test/support/e2e-lab.ts).
  const folder = (name: string): Part => ({
    name: `end-to-end tests, ${name}`,
    files: filesOf('e2e').filter((path) => basename(dirname(path)) === name),
    args: [],
    env: { TRIBUTARY_E2E_FOLDER: name },
  });
  // Those of peers wait most of the time, for nodes that are lost and drains that are held up. Those of networks measure.
  const besides = [[folder('peers')], [folder('kubelet'), folder('namespaces')]];
  const known = new Set(['peers', 'kubelet', 'namespaces']);
  const others = new Set(filesOf('e2e').map((path) => basename(dirname(path)))).difference(known);
  return [besides, ...[...others].map((name) => [[folder(name)]])].map((lanes) => ({
    lanes,
    needs: 'everything',
  }));
}

const ROUNDS: Readonly<Record<Suite, () => readonly Round[]>> = {
  unit: () => [{ lanes: [[{ name: 'unit tests', files: filesOf('unit'), args: [] }]] }],
  integration: () => {
    const files = filesOf('integration');
    const others = files.filter((path) => !ALONE.test(path));
    const alone = files.filter((path) => ALONE.test(path));
    return [
      {
        lanes: [[{ name: 'integration tests, by twos', files: others, args: ['--maxWorkers=2'] }]],
        needs: 'clusters',
      },
      {
        lanes: [[{ name: 'integration tests, one at a time', files: alone, args: ['--runInBand'] }]],
        needs: 'everything',
      },
    ];
  },
  e2e: endToEndRounds,
};

/**
 * So many files of a suite on real clusters may have a second try, each once and after all others. On a machine that others
 * use, too, a deadline can pass by no fault of ours; what was tried twice is named before the closing line (decision 38).
 */
const SECOND_TRIES: Readonly<Record<Suite, number>> = { unit: 0, integration: 2, e2e: 2 };
const unsteady: string[] = [];
const late: string[] = [];

async function run(suite: Suite, setup?: BackgroundSetup): Promise<Tally> {
  const file = join(scratch, suite);
  writeFileSync(file, '');
  const read = (): Map<string, Tally> => readTallies(readFileSync(file, 'utf8'));
  const jest = async ({ name, args, files, env }: Part): Promise<boolean> =>
    step(name, process.execPath, ['tools/jest.ts', suite, ...args, '--runTestsByPath', ...files], {
      env: { ...env, TRIBUTARY_TEST_TALLY: file },
      ...limit,
    });
  let skipped = 0;
  let crashed = false;
  const runPart = async (part: Part): Promise<void> => {
    const { name, files } = part;
    if (isLate()) {
      say(`${name}: ${files.length} files skipped: ${minutes} minutes have passed`);
      late.push(...files);
      skipped += files.length;
      return;
    }
    const ok = await jest(part);
    // Jest itself has failed, or was ended: no file stands for it.
    const ran = read();
    if (!ok && !files.some((path) => (ran.get(path)?.failed ?? 0) > 0)) crashed = true;
  };
  const runLane = async (parts: readonly Part[]): Promise<void> => {
    for (const part of parts) await runPart(part);
  };
  for (const { lanes, needs } of ROUNDS[suite]()) {
    if (needs !== undefined) await setup?.ready(needs);
    await Promise.all(lanes.map(runLane));
  }
  const failed = failedFiles(read());
  let ok = failed.length === 0;
  // Late or not: without it all that has run was for nothing.
  if (!ok && failed.length <= SECOND_TRIES[suite]) {
    ok = await jest({ name: `${suite} tests, second try`, files: failed, args: [] });
    if (ok) unsteady.push(...failed);
  }
  return addTally(suiteResult(sumOf(read()), ok && !crashed), { passed: 0, failed: 0, skipped });
}

/** End-to-end tests need real nodes. Where those cannot be had, each file counts as skipped, with the reason. */
async function endToEnd(setup?: BackgroundSetup): Promise<Tally> {
  const reason = missing(thisMachine());
  if (reason === undefined) return run('e2e', setup);
  const files = globSync('test/e2e/**/*.test.ts');
  say(`e2e tests: ${files.length} files skipped: ${reason}`);
  return { passed: 0, failed: 0, skipped: files.length };
}

const named = process.argv.slice(2);
const stages = new Set(STAGES.filter((stage) => named.length === 0 || named.includes(stage)));
try {
  if (stages.size < named.length) throw new Error(`usage: node tools/test.ts [${STAGES.join('|')} ...]`);
  const needsPrograms = stages.has('integration') || stages.has('e2e');
  const setup = needsPrograms ? new BackgroundSetup(scratch) : undefined;
  const tallies = [
    stages.has('check') ? await check() : NOTHING,
    stages.has('unit') ? await run('unit') : NOTHING,
    stages.has('integration') ? await run('integration', setup) : NOTHING,
    stages.has('e2e') ? await endToEnd(setup) : NOTHING,
  ];
  const sum = [...tallies, counted(setup?.hasFailed !== true)].reduce((all, one) => addTally(one, all));
  const line = closingLine(sum);
  const summary = process.env['TRIBUTARY_TEST_SUMMARY'];
  if (summary) writeFileSync(summary, `${line}\n`);
  say(`tests ended after ${secondsSince(began)} s`);
  if (late.length > 0) console.log(`not begun within ${minutes} minutes: ${late.join(', ')}`);
  if (unsteady.length > 0) console.log(`unsteady, passed at a second try: ${unsteady.join(', ')}`);
  console.log(line);
  process.exitCode = sum.failed === 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
