/**
 * Runs one Jest project with the flags that ESM and type stripping need.
 * Usage: node tools/jest.ts unit|integration|e2e [jest arguments]
 */
import { spawnSync } from 'node:child_process';

const [project, ...rest] = process.argv.slice(2);
if (project === undefined || !['unit', 'integration', 'e2e'].includes(project)) {
  console.error('usage: node tools/jest.ts unit|integration|e2e [jest arguments]');
  process.exit(2);
}
// Integration and end-to-end tests share one lab and two cores: one file at a time.
const inBand = project === 'unit' ? [] : ['--runInBand'];
const run = spawnSync(
  process.execPath,
  [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    'node_modules/jest/bin/jest.js',
    // Before --selectProjects, which takes every word after it for a project.
    ...rest,
    ...inBand,
    '--selectProjects',
    project,
  ],
  { stdio: 'inherit' },
);
process.exit(run.status ?? 1);
