/**
 * Everything that `make test` runs: the checks and each suite, going on whatever fails. The last line is the sum,
 * `N passed, N failed, N skipped`; the exit status is non-zero when anything failed.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { missing, thisMachine } from '../lab/preflight.ts';
import { addTally, closingLine, readTally, suiteResult, type Tally } from './tally.ts';

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

/** Programs and images, so that no test waits for a compiler. Without them some suites can still run. */
const setup = (): Tally =>
  counted(step('programs and images', process.execPath, ['tools/setup.ts', 'tests']));

function suite(name: string): Tally {
  const file = join(scratch, name);
  writeFileSync(file, '');
  const args = ['tools/jest.ts', name, '--passWithNoTests'];
  const ok = step(`${name} tests`, process.execPath, args, { TRIBUTARY_TEST_TALLY: file });
  return suiteResult(readTally(readFileSync(file, 'utf8')), ok);
}

/** End-to-end tests need real nodes. Where those cannot be had, each file counts as skipped, with the reason. */
function endToEnd(): Tally {
  const reason = missing(thisMachine());
  if (reason === undefined) return suite('e2e');
  const files = globSync('test/e2e/**/*.test.ts');
  say(`e2e tests: ${files.length} files skipped: ${reason}`);
  return { passed: 0, failed: 0, skipped: files.length };
}

try {
  const sum = [check, () => suite('unit'), setup, () => suite('integration'), endToEnd]
    .map((part) => part())
    .reduce(addTally);
  const line = closingLine(sum);
  const summary = process.env['TRIBUTARY_TEST_SUMMARY'];
  if (summary) writeFileSync(summary, `${line}\n`);
  say(`tests ended after ${((performance.now() - began) / 1000).toFixed(0)} s`);
  console.log(line);
  process.exitCode = sum.failed === 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
