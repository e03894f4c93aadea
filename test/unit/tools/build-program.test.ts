import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { BY_DEFAULT, buildProgram } from '../../../tools/build-program.ts';

const ROOT = join(import.meta.dirname, '../../..');
const folder = mkdtempSync(join(tmpdir(), 'tributary-build-'));
const dist = join(folder, 'dist');

beforeAll(async () => {
  for (const name of ['src', 'package.json', 'tsconfig.json', 'node_modules'])
    symlinkSync(join(ROOT, name), join(folder, name));
  await buildProgram(folder);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the built program loads itself, packages of Node.js aside, and what it says. */
function run(...args: string[]): { said: string; loaded: string[] } {
  const list = join(ROOT, 'test/unit/agent/support/list-loaded.mjs');
  const command = ['--import', list, join(dist, 'main.js'), ...args];
  const { stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  return { said: stderr, loaded: stderr.split('\n').filter((line) => line.startsWith('file:')) };
}

test.each(['cluster', 'gateway', 'node', 'peer'])(
  'role %s starts, and loads no part of a command',
  (role) => {
    const virtualNode = role === 'peer' ? ['--virtual-node', 'none', '--node-address', '127.0.0.1'] : [];
    const { said, loaded } = run('run', role, '--kubeconfig', join(folder, 'none'), ...virtualNode);
    expect(said).toContain(`tributary run ${role}: there is no kubeconfig`);
    expect(loaded.filter((url) => /\/dist\/(?:cli|kube-config)-/.test(url))).toEqual([]);
    // Some hundreds, if each source and each file of a package were one.
    expect(loaded.length).toBeLessThan(60);
  },
);

test('the program that watches the host is beside it, and ends with its input', async () => {
  const child = spawn(process.execPath, [join(dist, 'watch-process.js')], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let error = '';
  child.stderr.on('data', (chunk: Buffer) => (error += chunk.toString()));
  const ended = once(child, 'exit');
  child.stdin.end();
  await ended;
  expect(error).toBe('');
});

test('the licence of each package goes with it, and no module of tests', () => {
  const text = readFileSync(join(dist, 'LICENSES.txt'), 'utf8');
  for (const name of ['express', 'ws', 'prom-client', '@kubernetes/client-node', '@peculiar/x509'])
    expect(text).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(.+\\)$`, 'mu'));
  expect(text).not.toMatch(/^(?:jest|esbuild|typescript|fast-check) /mu);
});

test('what a build of before left is not in it', async () => {
  const before = globSync(join(dist, '*.js')).toSorted();
  await buildProgram(folder);
  expect(globSync(join(dist, '*.js')).toSorted()).toEqual(before);
  expect(statSync(join(dist, 'main.js')).size).toBeGreaterThan(0);
});

test('of packages in CommonJS that are imported when they are needed, the default import is taken', () => {
  const imports = globSync(join(ROOT, 'src/**/*.ts'))
    .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/(\S.*)await import\('([^'.][^']*)'\)/gu)])
    .filter(([, , name]) => BY_DEFAULT.includes(name ?? ''));
  expect(new Set(imports.map(([, , name]) => name))).toEqual(new Set(BY_DEFAULT));
  const others = imports.filter(([, before]) => !/^const \{ default: \w+ \} = $/.test(before ?? ''));
  expect(others.map(([text]) => text)).toEqual([]);
});
