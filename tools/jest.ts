/**
 * Runs one Jest project with the flags that ESM and type stripping need.
 * Usage: node tools/jest.ts unit|integration|e2e [jest arguments]
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { cacheDir } from '../lab/cache.ts';

const [project, ...rest] = process.argv.slice(2);
if (project === undefined || !['unit', 'integration', 'e2e'].includes(project)) {
  console.error('usage: node tools/jest.ts unit|integration|e2e [jest arguments]');
  process.exit(2);
}
// On two cores, the deadlines of tests with clusters hold only if one file runs at a time, unless the caller decides
// otherwise (tools/test.ts).
const isSaid = rest.some((argument) => /^--(maxWorkers|runInBand)/.test(argument));
const atOnce = isSaid ? [] : [project === 'unit' ? '--maxWorkers=2' : '--runInBand'];
// A signal to us also goes to Jest, whose teardown removes labs. We end after Jest has ended.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
const run = spawnSync(
  process.execPath,
  [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    'node_modules/jest/bin/jest.js',
    // It must be before --selectProjects, which treats every later word as a project.
    ...rest,
    ...atOnce,
    '--selectProjects',
    project,
  ],
  {
    stdio: 'inherit',
    // Tests start the program some hundred times. With cached compiled code a start takes a third of the time.
    env: { NODE_COMPILE_CACHE: join(cacheDir(), 'compiled'), ...process.env },
  },
);
process.exit(run.status ?? 1);
