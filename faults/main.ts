/**
 * Injects faults into the product between real API servers with pretended nodes, and has an auditor judge each run.
 *
 *     node faults/main.ts [--runs N] [--peer-runs N] [--seed N] [--run NAME,...] [--lanes N] [--stride N] [--peer-stride N]
 *                         [--checkout DIR] [--patience SECONDS] [--planted]
 *
 * The exit status is 1 if an invariant was violated, or with --planted if a planted bug was not found; 2 if the options are wrong.
 */
import { type FaultsOptions, parseArguments } from './arguments.ts';
import type { RunResult } from './campaign.ts';
import { failure, Report } from './report.ts';

const EVERY = 20;

const { isPlanted, ...options } = optionsOf(process.argv.slice(2));
// What the lab's PKI needs must be there before it is imported.
await import('reflect-metadata');
const { suite } = await import('./suite.ts');
const { PLANTED } = await import('./planted.ts');

function optionsOf(args: readonly string[]): FaultsOptions {
  try {
    return parseArguments(args);
  } catch (error) {
    console.error(`faults: ${Error.isError(error) ? error.message : String(error)}`);
    return process.exit(2);
  }
}

const began = performance.now();
const seconds = (): number => (performance.now() - began) / 1000;
const say = (line: string): void => console.log(`${seconds().toFixed(1).padStart(7)} s  ${line}`);

const report = new Report();
const found = new Set<string>();

function onResult(result: RunResult): void {
  report.add(result);
  if (isPlanted) {
    for (const bug of PLANTED.filter((one) => !found.has(one.name) && result.violations.some(one.shows))) {
      found.add(bug.name);
      say(`found by run ${report.runs}: ${bug.name}, ${bug.what}`);
      say(failure(result, `make faults PLANTED=1 RUN=${result.name}`));
    }
  } else if (result.violations.length > 0) {
    say(failure(result, `make faults RUN=${result.name}`));
  } else if (options.only.length > 0) {
    say(`ok ${result.name}, in ${result.seconds.toFixed(1)} s`);
  }
  if (report.runs % EVERY === 0) say(report.summary(seconds()));
}

say(`the seed of the random runs is ${options.seed}`);
const problems = await suite({
  ...options,
  edits: isPlanted ? PLANTED.flatMap(({ edits }) => edits) : [],
  progress: say,
  onResult,
  isOver: () => isPlanted && found.size === PLANTED.length,
});
if (report.runs < options.only.length && !isPlanted)
  problems.push(
    `${options.only.length - report.runs} of the named runs never came to the write at which to kill`,
  );
for (const problem of problems) say(`not all was tried: ${problem}`);
console.log(report.summary(seconds()));
if (isPlanted) {
  const missed = PLANTED.filter(({ name }) => !found.has(name)).map(({ name }) => name);
  console.log(
    `${found.size} of ${PLANTED.length} planted bugs found${missed.length > 0 ? `; not ${missed.join(', ')}` : ''}`,
  );
  process.exitCode = missed.length === 0 ? 0 : 1;
} else {
  process.exitCode = problems.length === 0 && report.failed.length === 0 ? 0 : 1;
}
