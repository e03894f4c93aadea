/**
 * Injects faults into the product between real API servers with pretended nodes, and has an auditor judge each run.
 *
 *     node faults/main.ts [--runs N] [--peer-runs N] [--seed N] [--run NAME,...] [--lanes N] [--stride N] [--peer-stride N]
 *                         [--checkout DIR] [--patience SECONDS] [--planted]
 *
 * The exit status is 1 if an invariant was violated; with --planted, if a planted bug was not found.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

import type { RunResult } from './campaign.ts';
import { failure, Report } from './report.ts';

// What the lab's PKI needs must be there before it is imported.
await import('reflect-metadata');
const { suite } = await import('./suite.ts');
const { planOf } = await import('./plan.ts');
const { PLANTED } = await import('./planted.ts');

const SEEDS = 2 ** 31;
const EVERY = 20;

// What planted bugs leave behind never comes to rest; and not all of them show after a kill.
const isPlanted = process.argv.includes('--planted');

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '400' },
    'peer-runs': { type: 'string', default: '200' },
    seed: { type: 'string', default: String(randomInt(1, SEEDS)) },
    run: { type: 'string', default: '' },
    lanes: { type: 'string', default: '4' },
    stride: { type: 'string', default: isPlanted ? '8' : '1' },
    'peer-stride': { type: 'string', default: '5' },
    checkout: { type: 'string' },
    planted: { type: 'boolean', default: false },
    patience: { type: 'string', default: isPlanted ? '15' : '120' },
    lab: { type: 'string', default: 'faults' },
  },
});

function whole(
  name: 'runs' | 'peer-runs' | 'seed' | 'lanes' | 'stride' | 'peer-stride' | 'patience',
  least: number,
): number {
  const number = Number(values[name]);
  if (values[name] === '' || !Number.isInteger(number) || number < least || number >= SEEDS)
    throw new Error(`--${name} is a whole number from ${least} on, not "${values[name]}"`);
  return number;
}

const began = performance.now();
const seconds = (): number => (performance.now() - began) / 1000;
const say = (line: string): void => console.log(`${seconds().toFixed(1).padStart(7)} s  ${line}`);

const only = values.run
  .split(',')
  .filter((name) => name !== '')
  .map((name) => {
    const plan = planOf(name);
    if (plan === undefined) throw new Error(`--run: there is no run "${name}"; see faults/README.md`);
    return plan;
  });
const report = new Report();
const found = new Set<string>();

function onResult(result: RunResult): void {
  report.add(result);
  if (values.planted) {
    for (const bug of PLANTED.filter((one) => !found.has(one.name) && result.violations.some(one.shows))) {
      found.add(bug.name);
      say(`found by run ${report.runs}: ${bug.name}, ${bug.what}`);
      say(failure(result, `make faults PLANTED=1 RUN=${result.name}`));
    }
  } else if (result.violations.length > 0) {
    say(failure(result, `make faults RUN=${result.name}`));
  } else if (only.length > 0) {
    say(`ok ${result.name}, in ${result.seconds.toFixed(1)} s`);
  }
  if (report.runs % EVERY === 0) say(report.summary(seconds()));
}

const seed = whole('seed', 1);
say(`the seed of the random runs is ${seed}`);
const problems = await suite({
  lab: values.lab,
  podRuns: whole('runs', 0),
  peerRuns: whole('peer-runs', 0),
  seed,
  only,
  lanes: whole('lanes', 1),
  podStride: whole('stride', 1),
  peerStride: whole('peer-stride', 1),
  checkout: values.checkout,
  edits: values.planted ? PLANTED.flatMap(({ edits }) => edits) : [],
  patienceSeconds: whole('patience', 1),
  progress: say,
  onResult,
  isOver: () => values.planted && found.size === PLANTED.length,
});
if (report.runs < only.length && !isPlanted)
  problems.push(`${only.length - report.runs} of the named runs never came to the write at which to kill`);
for (const problem of problems) say(`not all was tried: ${problem}`);
console.log(report.summary(seconds()));
if (values.planted) {
  const missed = PLANTED.filter(({ name }) => !found.has(name)).map(({ name }) => name);
  console.log(
    `${found.size} of ${PLANTED.length} planted bugs found${missed.length > 0 ? `; not ${missed.join(', ')}` : ''}`,
  );
  process.exitCode = missed.length === 0 ? 0 : 1;
} else {
  process.exitCode = problems.length === 0 && report.failed.length === 0 ? 0 : 1;
}
