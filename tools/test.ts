/**
 * Everything that `make test` runs: the checks and each suite. It goes on if something fails. At the end it prints the
 * tests of each folder, the slowest files, and each failed test again. The last line is the sum, `N passed, N failed,
 * N skipped`. The exit status is non-zero if anything failed.
 *
 * Usage: node tools/test.ts [check|unit|integration|e2e ...]
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { missing, thisMachine } from '../lab/preflight.ts';
import { BackgroundSetup } from './background-setup.ts';
import { say, secondsSince, step } from './step.ts';
import {
  addTally,
  byFolder,
  closingLine,
  failuresOf,
  readTallies,
  slowest,
  suiteResult,
  sumOf,
  type FileTally,
  type Tally,
} from './tally.ts';
import { filesOf, isOverwhelmed, partsOf, STAGES, type Part, type Stage } from './test-plan.ts';

/** A part that takes longer than this hangs: it is ended and counts as failed. */
const PART_MS = 40 * 60_000;
const SLOWEST = 15;
const LANES = 4;
/** Between two looks at how busy the machine is. */
const LOOK_MS = 5_000;

const began = performance.now();
const scratch = mkdtempSync(join(tmpdir(), 'tributary-test-'));
/** Why parts on real clusters cannot run here. */
const lack = missing(thisMachine());

/** A check is not a test: success counts nothing, failure counts as one failed test. */
const counted = (ok: boolean): Tally => ({ passed: 0, failed: ok ? 0 : 1, skipped: 0 });

interface Ran {
  readonly tally: Tally;
  readonly files: readonly FileTally[];
}

async function runPart(part: Part, setup: BackgroundSetup | undefined): Promise<Ran> {
  const { name, stage, files, args, env = {}, needs } = part;
  const until = (): number => Date.now() + PART_MS;
  if (stage === 'check') {
    const ok = await step(name, 'npm', ['run', '--silent', 'check:all'], { until: until() });
    return { tally: counted(ok), files: [] };
  }
  if (stage === 'e2e' && lack !== undefined) {
    say(`${name}: ${files.length} files skipped: ${lack}`);
    return { tally: { passed: 0, failed: 0, skipped: files.length }, files: [] };
  }
  if (needs !== undefined) await setup?.ready(needs);
  const tallies = join(scratch, name.replaceAll(/\W+/g, '-'));
  writeFileSync(tallies, '');
  const jest = ['tools/jest.ts', stage, ...args, '--runTestsByPath', ...files];
  const ok = await step(name, process.execPath, jest, {
    env: { ...env, TRIBUTARY_TEST_TALLY: tallies },
    until: until(),
  });
  const ran = readTallies(readFileSync(tallies, 'utf8'));
  return { tally: suiteResult(sumOf(ran), ok), files: ran };
}

/** The next part begins as soon as there are lanes for it, and the machine can bear it. */
async function runAll(parts: readonly Part[], setup: BackgroundSetup | undefined): Promise<Ran[]> {
  const all: Ran[] = [];
  const running = new Set<Promise<void>>();
  let free = LANES;
  for (const part of parts) {
    while (free < part.lanes) await Promise.race(running);
    while (isOverwhelmed(running.size, loadavg()[0] ?? 0, cpus().length))
      await Promise.race([...running, pause(LOOK_MS)]);
    free -= part.lanes;
    const run = runPart(part, setup).then((ran) => {
      all.push(ran);
      free += part.lanes;
      running.delete(run);
    });
    running.add(run);
  }
  await Promise.all(running);
  return all;
}

function wanted(): ReadonlySet<Stage> {
  const named = process.argv.slice(2);
  const stages = new Set(STAGES.filter((stage) => named.length === 0 || named.includes(stage)));
  if (stages.size < named.length) throw new Error(`usage: node tools/test.ts [${STAGES.join('|')} ...]`);
  return stages;
}

try {
  const stages = wanted();
  const files = { unit: filesOf('unit'), integration: filesOf('integration'), e2e: filesOf('e2e') };
  const needsPrograms = stages.has('integration') || stages.has('e2e');
  const setup = needsPrograms ? new BackgroundSetup(scratch) : undefined;
  const ran = await runAll(partsOf(stages, files), setup);
  const sum = [...ran.map(({ tally }) => tally), counted(setup?.hasFailed !== true)].reduce((all, one) =>
    addTally(one, all),
  );
  const line = closingLine(sum);
  const summary = process.env['TRIBUTARY_TEST_SUMMARY'];
  if (summary) writeFileSync(summary, `${line}\n`);
  const tallies = ran.flatMap((one) => one.files);
  say('tests by folder, and the time of their files, of which several run beside each other');
  for (const { folder, passed, failed, skipped, ms } of byFolder(tallies))
    console.log(
      `${String(passed + failed + skipped).padStart(7)}  ${(ms / 1000).toFixed(0).padStart(5)} s  ${folder}`,
    );
  say(`the slowest files, of all that ran beside each other`);
  for (const { path, ms } of slowest(tallies, SLOWEST))
    console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${path}`);
  for (const { path, test, message } of failuresOf(tallies)) {
    say(`failed: ${path}: ${test}`);
    console.log(message);
  }
  say(`tests ended after ${secondsSince(began)} s`);
  console.log(line);
  process.exitCode = sum.failed === 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
