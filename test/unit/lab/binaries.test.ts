import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { fromEnvironment } from '../../../lab/binaries.ts';
import {
  moduleDir,
  moduleKey,
  modules,
  pinnedVersion,
  programNames,
  statesVersion,
} from '../../../lab/binary-table.ts';
import { BuildProgress } from '../../../lab/build-progress.ts';
import { shortHash } from '../../../lab/cache.ts';
import { atLeast, buildFailure, buildFlags, fileOf } from '../../../lab/go-build.ts';

describe('the table of programs', () => {
  test('every program has one module', () => {
    const names = modules.flatMap(programNames);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(modules.map((module) => [module.name, module] as const))(
    'the go.mod of %s is there, and its key changes with it',
    (_, module) => {
      const dir = moduleDir(module);
      expect(readFileSync(join(dir, 'go.mod'), 'utf8')).toMatch(/^module tributary\.dev\//);
      expect(moduleKey(module)).toMatch(new RegExp(`^${module.name}-[0-9a-f]{12}$`));
      expect(moduleKey(module, '/nowhere')).toBe(`${module.name}-${shortHash('')}`);
    },
  );

  test('a module is keyed by go.mod, go.sum and the sources of its own programs', () => {
    const module = { name: 'own', programs: { pause: { package: './pause' } } };
    const dir = moduleDir({ name: 'programs', programs: {} });
    const parts = ['go.mod', 'go.sum', 'pause/main.go'].map((file) => readFileSync(join(dir, file)));
    expect(moduleKey(module, dir)).toBe(`own-${shortHash(...parts)}`);
  });
});

test('the pinned version is that of the named module, not of one whose name begins alike', () => {
  const goMod =
    'module m\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n\nrequire (\n\tcel.dev/expr v0.25.1 // indirect\n\tcel.dev/expr/x v0.9.0\n)\n';
  expect(pinnedVersion(goMod, 'k8s.io/kubernetes')).toBe('v1.36.3');
  expect(pinnedVersion(goMod, 'cel.dev/expr')).toBe('v0.25.1');
  expect(pinnedVersion(goMod, 'cel.dev')).toBe('');
});

test.each([
  ['Kubernetes v1.36.3', 'v1.36.3', true],
  ['Client Version: v1.36.3\nKustomize Version: v5.7.1', 'v1.36.3', true],
  ['etcd Version: 3.6.5\nGit SHA: Not provided', 'v3.6.5', true],
  ['kwok version v0.8.0 go1.26.8 (linux/amd64)', 'v0.8.0', true],
  ['Client Version: v1.31.0', 'v1.36.3', false],
  ['Kubernetes v1.36.30', 'v1.36.3', false],
  ['Kubernetes v1.36.3-rc.1', 'v1.36.3', false],
  ['anything', '', false],
])('%j states %s: %s', (output, pinned, expected) => {
  expect(statesVersion(output, pinned)).toBe(expected);
});

test.each([
  ['1.26.8', '1.26.0', true],
  ['1.26.0', '1.26.4', false],
  ['1.9', '1.26', false],
  ['2.0', '1.26.4', true],
  ['1.26', '1.26.0', true],
  ['', '1.26', false],
])('Go %j satisfies %s: %s', (version, wanted, expected) => {
  expect(atLeast(version, wanted)).toBe(expected);
});

test('a build names the versions that programs state', () => {
  const [programs] = modules;
  if (!programs) throw new Error('the table is empty');
  const flags = buildFlags(programs);
  expect(flags.slice(0, 3)).toEqual(['-mod=readonly', '-trimpath', '-buildvcs=false']);
  expect(flags.at(-1)).toMatch(
    /^-s -w -X k8s\.io\/component-base\/version\.gitVersion=v\d+\.\d+\.\d+ -X \S+gitMajor=\d+ -X \S+gitMinor=\d+$/,
  );
});

test.each([
  ['k8s.io/kubernetes/cmd/kubelet', 'kubelet'],
  ['go.etcd.io/etcd/server/v3', 'server'],
  ['./coredns', 'coredns'],
])('go build calls what is made of %s: %s', (path, file) => {
  expect(fileOf(path)).toBe(file);
});

test('what is left of a build is reckoned from what has been done', () => {
  let now = 0;
  const work = new BuildProgress({ packages: 40, programs: 1, clock: () => now });
  expect(work.line(0)).toBe('[--------------------] 0 %, 0 s so far');
  now = 65_000;
  for (let i = 0; i < 25; i += 1) work.compiled();
  expect(work.line(0)).toBe('[#####---------------] 25 %, 1 min 5 s so far, about 3 min 15 s left');
  expect(work.line(1)).toMatch(/ 85 %, .* about 11 s left$/);
});

test('a failed build is one line that says whether the network is at fault', () => {
  const offline = 'go: downloading a v1\nx: Get "https://proxy/": dial tcp: lookup proxy: no such host\n';
  expect(buildFailure('etcd', offline)).toMatch(/^building etcd failed: x: Get .*cannot be reached.*$/);
  expect(buildFailure('etcd', '# pkg\nmain.go:1: syntax error\n')).toBe(
    'building etcd failed: main.go:1: syntax error',
  );
  expect(buildFailure('etcd', '')).toBe('building etcd failed: no reason given');
});

describe('programs from the environment', () => {
  test('one of its own comes first, then the folder, then none', () => {
    const program = process.execPath;
    expect(fromEnvironment('kube-apiserver', { TRIBUTARY_BIN_KUBE_APISERVER: program })).toBe(program);
    expect(fromEnvironment('etcd', { TRIBUTARY_BIN_DIR: '/nowhere' })).toBeUndefined();
    expect(fromEnvironment('etcd', {})).toBeUndefined();
  });

  test('one that is not there is an error', () => {
    expect(() => fromEnvironment('kwok', { TRIBUTARY_BIN_KWOK: '/nowhere' })).toThrow(
      'TRIBUTARY_BIN_KWOK=/nowhere is not an executable file',
    );
  });
});
