/**
 * Everything that `make test` runs: the checks and each suite, going on whatever fails. The last line is the sum,
 * `N passed, N failed, N skipped`; the exit status is non-zero when anything failed.
 */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, globSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { missing, thisMachine } from '../lab/preflight.ts';
import { addTally, closingLine, failedFiles, readTallies, suiteResult, sumOf, type Tally } from './tally.ts';

const began = performance.now();
const scratch = mkdtempSync(join(tmpdir(), 'tributary-test-'));

function say(line: string): void {
  console.log(`\n==> ${line}`);
}

function step(name: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): boolean {
  say(name);
  const start = performance.now();
  const { status } = spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, ...env } });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`    ${name}: ${status === 0 ? 'ok' : 'FAILED'} in ${seconds} s`);
  return status === 0;
}

/** What is no test: passing it counts nothing, failing it counts as one failure. */
const counted = (ok: boolean): Tally => ({ passed: 0, failed: ok ? 0 : 1, skipped: 0 });

const check = (): Tally =>
  counted(step('check (format, lint, types, generated files)', 'npm', ['run', '--silent', 'check']));

/**
 * Programs and images, so that no test waits for a compiler. Without them some suites can still run. On a new machine this takes
 * longer than all checks and unit tests, which leave a core to it.
 */
function beginSetup(): () => Promise<Tally> {
  const name = 'programs and images';
  const start = performance.now();
  // Into a file: nobody reads a pipe while the suites run.
  const output = join(scratch, 'setup');
  const descriptor = openSync(output, 'w');
  const stdio = ['ignore', descriptor, descriptor] as const;
  const child = spawn(process.execPath, ['tools/setup.ts', 'tests'], { stdio: [...stdio] });
  closeSync(descriptor);
  const ended = new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    child.once('close', (status) => resolve(status === 0));
  });
  return async () => {
    say(`${name}, begun with the checks`);
    const ok = await ended;
    process.stdout.write(readFileSync(output));
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(`    ${name}: ${ok ? 'ok' : 'FAILED'} in ${seconds} s`);
    return counted(ok);
  };
}

/**
 * So many files of a suite on real clusters may have a second try, each once and after all others. On a machine that others
 * use, too, a deadline can pass by no fault of ours; what was tried twice is named before the closing line (decision 38).
 */
const SECOND_TRIES = 2;
const unsteady: string[] = [];

/** Integration files that measure times or have many processes run one at a time; the others, each with a lab of its own, by twos. */
const ALONE = '/integration/(home-return|lan-|network-|peering-|scale|slices|versions)';
const PARTS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  integration: [
    ['--maxWorkers=2', `--testPathIgnorePatterns=${ALONE}`],
    ['--runInBand', `--testPathPatterns=${ALONE}`],
  ],
};

function suite(name: string, secondTries = 0): Tally {
  const file = join(scratch, name);
  writeFileSync(file, '');
  const run = (title: string, args: readonly string[]): boolean =>
    step(title, process.execPath, ['tools/jest.ts', name, ...args], { TRIBUTARY_TEST_TALLY: file });
  const read = (): Map<string, Tally> => readTallies(readFileSync(file, 'utf8'));
  const parts = PARTS[name] ?? [[]];
  let ok = parts.map((args) => run(`${name} tests`, ['--passWithNoTests', ...args])).every(Boolean);
  const failed = failedFiles(read());
  if (failed.length > 0 && failed.length <= secondTries) {
    ok = run(`${name} tests, second try`, ['--runTestsByPath', ...failed]);
    if (ok) unsteady.push(...failed.map((path) => relative(process.cwd(), path)));
  }
  return suiteResult(sumOf(read()), ok);
}

/** End-to-end tests need real nodes. Where those cannot be had, each file counts as skipped, with the reason. */
function endToEnd(): Tally {
  const reason = missing(thisMachine());
  if (reason === undefined) return suite('e2e', SECOND_TRIES);
  const files = globSync('test/e2e/**/*.test.ts');
  say(`e2e tests: ${files.length} files skipped: ${reason}`);
  return { passed: 0, failed: 0, skipped: files.length };
}

try {
  const setup = beginSetup();
  const tallies = [check(), suite('unit'), await setup(), suite('integration', SECOND_TRIES), endToEnd()];
  const sum = tallies.reduce((all, one) => addTally(one, all));
  const line = closingLine(sum);
  const summary = process.env['TRIBUTARY_TEST_SUMMARY'];
  if (summary) writeFileSync(summary, `${line}\n`);
  say(`tests ended after ${((performance.now() - began) / 1000).toFixed(0)} s`);
  if (unsteady.length > 0) console.log(`unsteady, passed at a second try: ${unsteady.join(', ')}`);
  console.log(line);
  process.exitCode = sum.failed === 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
