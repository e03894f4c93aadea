import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { binaries } from '../../lab/binaries.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';

/** What the API server makes of the CustomResourceDefinition: its rules, its defaults, its words. */

const PATH = '/apis/tributary.dev/v1alpha1/virtualnodes';

let lab: RightsCluster;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['crds']));
});

afterAll(async () => lab?.down());

const SPEC = {
  kubeconfigSecretRef: { namespace: 'tributary-system', name: 'milan-kubeconfig' },
  resources: { cpu: 4, memory: '8Gi', pods: '100' },
};
const mapping = (homeNamespace: string, tenantNamespace: string): object => ({
  homeNamespace,
  tenantNamespace,
});
const ADDITIONS = {
  nodeSelector: { pool: 'rented' },
  tolerations: [{ key: 'edge', operator: 'Exists', effect: 'NoSchedule' }],
  runtimeClassName: 'hardened',
  labels: { cost: 'rent' },
  annotations: { note: 'added' },
};
const virtualNode = (spec: object, name = 'milan'): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'VirtualNode',
  metadata: { name },
  spec: { ...SPEC, ...spec },
});
const dryRun = async (body: object): Promise<{ status: number; body: string }> =>
  lab.cluster.api.call('POST', `${PATH}?dryRun=All`, body);

test.each([
  ['a string for cpu', virtualNode({ resources: { ...SPEC.resources, cpu: '3500m' } })],
  ['extended resources', virtualNode({ resources: { ...SPEC.resources, 'nvidia.com/gpu': 2 } })],
  ['two namespaces', virtualNode({ namespaces: [mapping('a', 'x'), mapping('b', 'y')] })],
  ['an IPv6 home API server', virtualNode({ homeApiServer: { host: 'fd00::1', port: 443 } })],
  ['the longest name', virtualNode({}, 'n'.repeat(48))],
  ['a taint that keeps nobody away', virtualNode({ taintEffect: 'None' })],
  ['what every pod gets', virtualNode({ podAdditions: ADDITIONS })],
])('accepted: %s', async (_what, body) => {
  expect(await dryRun(body)).toMatchObject({ status: 201 });
});

test('accepted: the committed example', async () => {
  const text = readFileSync('deploy/examples/virtual-node.yaml', 'utf8');
  const [example] = parseAllDocuments(text).map((document) => document.toJS() as object);
  expect(await dryRun(example ?? {})).toMatchObject({ status: 201 });
});

test.each([
  ['no cpu', virtualNode({ resources: { memory: '1Gi', pods: 1 } }), 'cpu is required'],
  ['no memory', virtualNode({ resources: { cpu: 1, pods: 1 } }), 'memory is required'],
  ['no pods', virtualNode({ resources: { cpu: 1, memory: 1 } }), 'pods is required'],
  [
    'a negative quantity',
    virtualNode({ resources: { ...SPEC.resources, cpu: -1 } }),
    'greater than or equal to 0',
  ],
  ['a word as quantity', virtualNode({ resources: { ...SPEC.resources, cpu: 'much' } }), 'should match'],
  ['a number that is none', virtualNode({ resources: { ...SPEC.resources, cpu: '1e309x' } }), 'should match'],
  [
    'a home namespace twice',
    virtualNode({ namespaces: [mapping('a', 'x'), mapping('a', 'y')] }),
    'Duplicate value',
  ],
  [
    'a tenant namespace twice',
    virtualNode({ namespaces: [mapping('a', 'x'), mapping('b', 'x')] }),
    'once only',
  ],
  ['a namespace in capitals', virtualNode({ namespaces: [mapping('A', 'x')] }), 'should match'],
  ['port 0', virtualNode({ homeApiServer: { host: 'api', port: 0 } }), 'greater than or equal to 1'],
  [
    'port 65536',
    virtualNode({ homeApiServer: { host: 'api', port: 65_536 } }),
    'less than or equal to 65535',
  ],
  ['a node name of 64', virtualNode({ nodeName: 'n'.repeat(64) }), 'Too long'],
  ['a taint without effect', virtualNode({ taints: [{ key: 'a' }] }), 'Required value'],
  ['a taint that ends pods', virtualNode({ taintEffect: 'NoExecute' }), 'Unsupported value'],
  [
    'a label of ours for every pod',
    virtualNode({ podAdditions: { labels: { 'tributary.dev/home-uid': 'x' } } }),
    'are set by this program only',
  ],
  [
    'a toleration of everything for every pod',
    virtualNode({ podAdditions: { tolerations: [{ operator: 'Exists' }] } }),
    'tolerations[0].key: Required value',
  ],
  ['a name of 49', virtualNode({}, 'n'.repeat(49)), 'at most 48 characters'],
  ['a name with a dot', virtualNode({}, 'a.b'), 'must be a DNS label'],
])('refused: %s', async (_what, body, reason) => {
  const answer = await dryRun(body);
  expect(answer.status).toBe(422);
  expect(answer.body).toContain(reason);
});

test('nodeName stays what it was, set or not; the rest may change', async () => {
  const { api } = lab.cluster;
  for (const [name, spec] of [
    ['set', { nodeName: 'node-a' }],
    ['unset', {}],
  ] as const) {
    const created = await api.call('POST', PATH, virtualNode(spec, name));
    expect(created).toMatchObject({ status: 201 });
    const patch = async (body: object): Promise<{ status: number; body: string }> =>
      api.call('PATCH', `${PATH}/${name}`, { spec: body }, 'application/merge-patch+json');
    for (const nodeName of ['node-b', name === 'set' ? null : 'unset']) {
      const answer = await patch({ nodeName });
      expect(answer.status).toBe(422);
      expect(answer.body).toContain('nodeName cannot be changed');
    }
    expect(await patch({ labels: { a: 'b' }, resources: { cpu: '5' } })).toMatchObject({ status: 200 });
    expect(created.body).toContain('"key":"kubeconfig"');
  }
});

test('status is written through its subresource only', async () => {
  const { api } = lab.cluster;
  const status = { nodeName: 'milan', conditions: [], namespaces: [mapping('a', 'x'), mapping('a', 'y')] };
  const created = await api.call('POST', PATH, { ...virtualNode({}, 'status'), status });
  expect(JSON.parse(created.body)).not.toHaveProperty('status');
  const written = await api.call(
    'PATCH',
    `${PATH}/status/status`,
    { spec: { labels: { a: 'b' } }, status },
    'application/merge-patch+json',
  );
  expect(JSON.parse(written.body)).toMatchObject({ status });
  expect(JSON.parse(written.body)).not.toHaveProperty('spec.labels');
});

test('kubectl knows its short name and columns, and explains every field', async () => {
  const { kubectl } = await binaries(undefined, ['kubectl']);
  const run = (...args: string[]): string =>
    spawnSync(kubectl, ['--kubeconfig', lab.cluster.kubeconfig, ...args], { encoding: 'utf8' }).stdout;
  expect(run('get', 'vn')).toMatch(/^NAME +NODE +READY +REASON +FOREIGN-VERSION +AGE\n/);
  const explained = run('explain', 'virtualnode.spec', '--recursive=false');
  expect(explained).toContain('kubeconfigSecretRef');
  expect(run('explain', 'virtualnode', '--recursive')).toContain('tenantNamespace');
  expect(explained).not.toContain('<no description>');
});
