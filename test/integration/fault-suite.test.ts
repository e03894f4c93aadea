import { spawnSync } from 'node:child_process';

import { expect, test } from '@jest/globals';

import { OPERATIONS } from '../../faults/pods/workload.ts';
import { short } from '../support/long.ts';
import { testSeed } from '../support/seed.ts';

/** The beginning of `make faults`: kills at some writes, and some random faults, judged by the auditor. */

const TIMEOUT_MS = short('milliseconds for the fault suite', { short: 600_000, long: 3_600_000 });
const KILLS = short('runs of the fault suite that kill an agent', { short: 4, long: 120 });
const RANDOM = short('random runs of the fault suite', { short: 2, long: 180 });
const SEED = testSeed(20_264);

/** Of each operation one, at writes that are always made. */
const KILLED = Array.from({ length: KILLS }, (_, index) => {
  const operation = OPERATIONS[index % OPERATIONS.length];
  // Of a ConfigMap nothing is written at home.
  const side = index % 2 === 0 || operation === 'configure' ? 'provider' : 'home';
  const when = index % 3 === 0 ? 'after' : 'before';
  return `kill:${operation}:${side}:${when}:1`;
});

test(
  `${KILLS} runs with kills and ${RANDOM} with random faults keep all promises`,
  () => {
    const runs = [...KILLED, ...Array.from({ length: RANDOM }, (_, index) => `random:${SEED + index}`)];
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['faults/main.ts', '--lab', 'faults-it', '--lanes', '3', '--run', runs.join(',')],
      { encoding: 'utf8', timeout: TIMEOUT_MS },
    );
    const said = `${stdout}\n${stderr}`;
    expect(said).toMatch(new RegExp(`^${runs.length} runs, .* 0 runs with violations`, 'm'));
    expect(status).toBe(0);
  },
  TIMEOUT_MS,
);
