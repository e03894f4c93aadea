import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { binaries } from '../../lab/binaries.ts';
import { VERSION } from '../../src/version.ts';
import { buildRelease } from '../../tools/release/release.ts';

/** What people install: built twice, and run as they would run it, away from the repository. */

const root = join(import.meta.dirname, '..', '..');
/** 2020-01-01. */
const EPOCH = '1577836800';

let home: string;
let release: string;

interface Ran {
  code: number | null;
  out: string;
  err: string;
}

/** With nothing of the caller's environment but where programs are: first those of the release. */
function run(command: string, ...args: string[]): Ran {
  // oxlint-disable-next-line node/no-process-env
  const rest = process.env['PATH'] ?? '';
  const env = {
    PATH: [release, dirname(process.execPath), rest].join(delimiter),
    HOME: home,
    KUBECONFIG: join(home, 'none'),
    npm_config_cache: join(home, 'npm'),
  };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: home, env, encoding: 'utf8' });
  return { code: status, out: stdout, err: stderr };
}

function kubeconfigFor(server: string): string {
  const file = join(home, 'kubeconfig');
  const content = {
    clusters: [{ name: 'lab', cluster: { server } }],
    users: [{ name: 'lab', user: { token: 'none' } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'lab' } }],
    'current-context': 'lab',
  };
  writeFileSync(file, JSON.stringify(content));
  return file;
}

const contents = (directory: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name)).toString('base64')]),
  );

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'tributary-release-'));
  release = join(home, 'release');
  await buildRelease(root, release, EPOCH);
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

test('two builds are equal, byte by byte, and the checksums hold', async () => {
  const again = join(home, 'again');
  await buildRelease(root, again, EPOCH);
  const [first, second] = [contents(release), contents(again)];
  expect(Object.keys(second)).toEqual(
    [
      'SHA256SUMS',
      'kubectl-tributary',
      'kubectl_complete-tributary',
      `tributary-${VERSION}.tgz`,
      'tributary',
      'tributary.cdx.json',
    ].toSorted(),
  );
  const different = Object.keys(first).filter((name) => first[name] !== second[name]);
  expect(different).toEqual([]);
  const { code, out } = run('sh', '-c', 'cd release && sha256sum --strict --check SHA256SUMS');
  expect([code, out.split('\n').filter((line) => line.endsWith(': OK')).length]).toEqual([0, 4]);
});

test('the one file says what it was built from, whatever lies around it', () => {
  const stamp = new RegExp(
    `^tributary ${VERSION} \\(commit [0-9a-f]{12}(-dirty)?, built 2020-01-01T00:00:00Z\\)\n$`,
  );
  expect(run('tributary', 'version').out).toMatch(stamp);
  for (const type of ['module', 'commonjs']) {
    const directory = join(home, type);
    mkdirSync(directory);
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ type }));
    cpSync(join(release, 'tributary'), join(directory, 'tributary'));
    expect(run(join(directory, 'tributary'), 'version').out).toMatch(stamp);
  }
});

test('commands that load more than others work in it, and what is in the image only is told', () => {
  expect(run('tributary', 'manifests', 'crds').out).toContain('kind: CustomResourceDefinition');
  const kubeconfig = kubeconfigFor('https://127.0.0.1:1');
  const { code, err } = run('tributary', '--kubeconfig', kubeconfig, 'id');
  expect([code, err]).toEqual([1, expect.stringContaining('127.0.0.1:1')]);
  for (const line of ['run gateway', 'clean-up']) {
    const refused = run('tributary', ...line.split(' '));
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('from the image of Tributary')]);
  }
});

test('completion does not wait for a cluster that never answers', async () => {
  // It takes connections, and says nothing.
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  const kubeconfig = kubeconfigFor(`https://127.0.0.1:${port}`);
  try {
    // Long after it gives up by itself, and before any other time limit of ours.
    const { code, out, err } = run(
      'timeout',
      '20',
      'tributary',
      '__complete',
      '--kubeconfig',
      kubeconfig,
      'unpeer',
      '',
    );
    expect([code, out, err]).toEqual([0, ':4\n', '']);
  } finally {
    silent.close();
  }
});

test('the npm package runs by npx without a registry, and holds few files', () => {
  // npm takes a whole path for a program.
  const tarball = `./release/tributary-${VERSION}.tgz`;
  const { code, out } = run('npx', '--yes', '--offline', tarball, 'version');
  expect([code, out]).toEqual([0, expect.stringContaining(`tributary ${VERSION} (commit`)]);
  const files = run('tar', 'tzf', tarball).out.trim().split('\n').toSorted();
  expect(files.map((path) => path.replace('package/', ''))).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
    'program.cjs',
    'tributary.cjs',
  ]);
});

test('the SBOM names what is in the bundle, and nothing of the tests or of the image', () => {
  const sbom = JSON.parse(readFileSync(join(release, 'tributary.cdx.json'), 'utf8')) as {
    bomFormat: string;
    metadata: { timestamp: string };
    components: { name: string; version: string }[];
  };
  expect([sbom.bomFormat, sbom.metadata.timestamp]).toEqual(['CycloneDX', '2020-01-01T00:00:00Z']);
  const names = sbom.components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['commander', 'yaml', '@kubernetes/client-node', 'undici']));
  for (const name of ['netlink', 'jest', 'express', 'supports-color']) expect(names).not.toContain(name);
});

describe('as a plug-in of the real kubectl', () => {
  let kubectl: string;
  beforeAll(async () => {
    ({ kubectl } = await binaries(undefined, ['kubectl']));
  });

  test('kubectl lists it, runs it, completes it, and is named in its help', () => {
    expect(run(kubectl, 'plugin', 'list').out).toContain(join(release, 'kubectl-tributary'));
    expect(run(kubectl, 'tributary', 'version').out).toContain(`tributary ${VERSION} (commit`);
    // As the completion of kubectl itself asks.
    expect(run(kubectl, '__complete', 'tributary', 'vers').out).toMatch(/^version\tShow .*\n:4\n/);
    expect(run(kubectl, 'tributary', 'token').err).toContain('see: kubectl tributary token --help');
  });
});
