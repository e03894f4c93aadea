import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { binaries } from '../../lab/binaries.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { eventually } from '../support/eventually.ts';
import { type Example, EXAMPLES, ROOT } from '../support/examples.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';

/** Each folder of examples/, as people apply and delete it, on a real API server with our kinds and policies. */

const WARN = 'pod-security.kubernetes.io/warn=restricted';

let lab: RightsCluster;
let kubectl: string;

beforeAll(async () => {
  ({ kubectl } = await binaries(undefined, ['kubectl']));
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'example/none:1']));
});

afterAll(async () => lab?.down());

/** What it prints, and its warnings. Throws where it fails. */
function run(...args: string[]): { lines: string[]; warnings: string[] } {
  const options = { cwd: ROOT, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(
    kubectl,
    ['--kubeconfig', lab.cluster.kubeconfig, ...args],
    options,
  );
  if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');
  return { lines: linesOf(stdout), warnings: linesOf(stderr) };
}

/** So that Kubernetes says which pods a provider with the strictest level would refuse. */
function makeStrict({ objects }: Example): void {
  for (const { kind, metadata } of objects) {
    if (kind !== 'Namespace') continue;
    run('create', 'namespace', metadata.name);
    run('label', 'namespace', metadata.name, WARN);
  }
}

test.each(EXAMPLES)('$path is taken without a warning, is there, and is deleted', (example) => {
  const { path, objects } = example;
  makeStrict(example);
  const { warnings } = run('apply', '-k', path);
  // That the namespace was made before.
  expect(warnings.filter((line) => !line.includes('kubectl.kubernetes.io/last-applied'))).toEqual([]);
  // As kind.group/name.
  const there = run('get', '-k', path, '-o', 'name').lines.map((line) => line.slice(line.indexOf('/') + 1));
  expect(there.toSorted()).toEqual(objects.map(({ metadata }) => metadata.name).toSorted());
  expect(run('delete', '-k', path, '--wait=false').lines).toHaveLength(objects.length);
});

test('nothing of them is left', async () => {
  for (const { path } of EXAMPLES) {
    const left = (): string[] => run('get', '-k', path, '--ignore-not-found', '-o', 'name').lines;
    await eventually(`${path} is gone`, () => Promise.resolve(left().length === 0), 60_000);
  }
});

test('a pod that such a provider would refuse is warned of', () => {
  const name = 'strict';
  run('create', 'namespace', name);
  run('label', 'namespace', name, WARN);
  const { warnings } = run('-n', name, 'create', 'deployment', 'web', '--image=example/none:1');
  expect(warnings).toEqual([expect.stringContaining('would violate PodSecurity "restricted:latest"')]);
});

test('with the kustomization of the document, all images come from elsewhere', () => {
  const [, yaml = ''] =
    /```yaml\n(.*?)```/s.exec(readFileSync(join(ROOT, 'examples/README.md'), 'utf8')) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'tributary-examples-'));
  try {
    symlinkSync(join(ROOT, 'examples'), join(folder, 'examples'));
    mkdirSync(join(folder, 'own'));
    writeFileSync(join(folder, 'own', 'kustomization.yaml'), yaml);
    const images = run('kustomize', join(folder, 'own')).lines.filter((line) => line.includes(' image: '));
    expect(images).toHaveLength(3);
    expect(images.filter((line) => !line.includes(' registry.example.com/'))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
