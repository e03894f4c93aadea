/** The benchmarks as a process: exit codes, and what is left behind. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { eventually } from '../../support/eventually.ts';

const bench = join(import.meta.dirname, '../../../bench');
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bench-program-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a mistake of the caller is told in one line, with exit code 2', () => {
  test.each([
    ['main.ts', ['--rounds', '0'], 'bench: rounds is to be a whole number from 1 on, not "0"\n'],
    [
      'main.ts',
      ['--bench', 'watch', '--json', '/nonexistent/x.json'],
      'bench: /nonexistent/x.json cannot be written: there is no folder /nonexistent\n',
    ],
    ['cli.ts', ['--rounds=x'], 'bench-cli: rounds is to be a whole number from 1 on, not "x"\n'],
    ['attacks.ts', ['--minutes', '0'], 'bench-attacks: minutes is to be a number above 0, not "0"\n'],
    ['pods/churn.ts', ['5'], 'bench-churn: unexpected 5: --help lists all options\n'],
    ['store.ts', [], 'store: name the file of a run, as make bench JSON=FILE has written it\n'],
  ])('%s %j', (program, args, message) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(bench, program), ...args], {
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: '', stderr: message });
  });
});

test('what a benchmark writes beside its lab is gone when it ends', () => {
  const script = `
    const { auditOf } = await import(${JSON.stringify(join(bench, 'frame/audit.ts'))});
    const { scratchFolder } = await import(${JSON.stringify(join(bench, 'frame/scratch.ts'))});
    const { existsSync } = await import('node:fs');
    auditOf('idle', 'rome');
    auditOf('idle', 'milan');
    console.log(existsSync(scratchFolder('watch')));
    throw new Error('as a benchmark that fails');`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: folder },
  });
  expect({ status, stdout, left: readdirSync(folder) }).toEqual({ status: 1, stdout: 'true\n', left: [] });
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a benchmark that gets %s leaves no file behind', async (signal, code) => {
  const args = [join(bench, 'main.ts'), '--bench', 'watch', '--rounds', '1000', '--set', 'events=2000'];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const closed = once(child, 'close');
  try {
    const isMade = (): boolean =>
      readdirSync(folder).some((name) => name.startsWith('tributary-bench-watch-'));
    await eventually('the benchmark has begun', isMade);
    child.kill(signal);
    expect(await closed).toEqual([code, null]);
  } finally {
    child.kill('SIGKILL');
  }
  expect(said).toBe(`bench: interrupted by ${signal}: removing what was made; once more ends at once\n`);
  expect(readdirSync(folder)).toEqual([]);
});
