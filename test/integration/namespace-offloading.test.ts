import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { namespaceOffloadingDefinition } from '../../src/api/crd/namespace-offloading.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/** How a real API server treats NamespaceOffloadings: their rules, their defaults, their messages. */

const GROUP = '/apis/tributary.dev/v1alpha1';
const { plural } = namespaceOffloadingDefinition.type;
const PATH = `${GROUP}/namespaces/default/${plural}`;
const MERGE = 'application/merge-patch+json';

let lab: RightsCluster;

beforeAll(async () => {
  lab = await RightsCluster.up();
});

afterAll(async () => lab?.down());

type Answer = { status: number; body: string };
const object = (spec: object | undefined, name = 'offloading'): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'NamespaceOffloading',
  metadata: { name },
  ...(spec !== undefined && { spec }),
});
const dryRun = async (spec: object | undefined, name?: string): Promise<Answer> =>
  lab.cluster.api.call('POST', `${PATH}?dryRun=All`, object(spec, name));
const patch = async (body: object, subresource = ''): Promise<Answer> =>
  lab.cluster.api.call('PATCH', `${PATH}/offloading${subresource}`, body, MERGE);

const RULE = { resource: 'configmaps', policy: 'All' };
const EXPRESSION = { key: 'region', operator: 'In', values: ['a'] };

test.each<[string, object]>([
  ['nothing but defaults', {}],
  ['a selector', { clusterSelector: { matchLabels: { region: 'a' }, matchExpressions: [EXPRESSION] } }],
  ['the same name', { naming: 'Same' }],
  ['a name', { naming: 'Selected', remoteName: 'their-shop' }],
  [
    'rules',
    {
      reflection: [
        RULE,
        { ...RULE, resource: 'secrets' },
        { group: 'x.org', version: 'v1', resource: 'widgets', policy: 'OptIn', drop: ['spec.clusterName'] },
      ],
    },
  ],
  ['never released', { releaseAfterSeconds: 0, holdOffSeconds: 0 }],
])('accepted: %s', async (_what, spec) => {
  expect(await dryRun(spec)).toMatchObject({ status: 201 });
});

test('accepted as it is: the committed example', async () => {
  const example = parse(readFileSync('deploy/examples/namespace-offloading.yaml', 'utf8')) as {
    spec: object;
  };
  const { status, body } = await dryRun(example.spec);
  expect(status).toBe(201);
  expect(JSON.parse(body)).toMatchObject({ spec: example.spec });
});

test('whenAway stays as it is written, so that the same command again changes nothing', async () => {
  const { status, body } = await dryRun({ whenAway: { pods: 'Stay' } });
  expect(status).toBe(201);
  expect(JSON.parse(body).spec.whenAway).toEqual({ pods: 'Stay' });
});

test.each<[string, object | undefined, string]>([
  ['no spec', undefined, 'spec: Required'],
  ['another strategy', { podStrategy: 'Everywhere' }, 'Unsupported value'],
  ['a name without Selected', { naming: 'Same', remoteName: 'x' }, 'remoteName goes with naming: Selected'],
  ['Selected without a name', { naming: 'Selected' }, 'remoteName goes with naming: Selected'],
  ['a name without naming', { remoteName: 'x' }, 'remoteName goes with naming: Selected'],
  ['a place for those that stay', { whenAway: { pods: 'Stay', to: 'Home' } }, 'go with pods: Move only'],
  ['a time for those that stay', { whenAway: { pods: 'Stay', afterSeconds: 5 } }, 'go with pods: Move only'],
  ['a name in capitals', { naming: 'Selected', remoteName: 'Shop' }, 'should match'],
  ['time that runs backwards', { releaseAfterSeconds: -1 }, 'greater than or equal to 0'],
  ['more than a day', { holdOffSeconds: 86_401 }, 'less than or equal to 86400'],
  ['another placement', { placement: 'soft' }, 'Unsupported value'],
  ['pods that wait', { existingPods: 'Wait' }, 'Unsupported value'],
  ['two rules for one kind', { reflection: [RULE, RULE] }, 'Duplicate value'],
  ['an unknown policy', { reflection: [{ ...RULE, policy: 'Some' }] }, 'Unsupported value'],
])('refused: %s', async (_what, spec, words) => {
  const { status, body } = await dryRun(spec);
  expect(status).toBe(422);
  expect(body).toContain(words);
});

test('there is one name only', async () => {
  const { status, body } = await dryRun({}, 'another');
  expect(status).toBe(422);
  expect(body).toContain('the name must be \\"offloading\\"');
});

test('defaults are filled in; naming stays, everything else may change; the status keeps what others write', async () => {
  const { status, body } = await lab.cluster.api.call('POST', PATH, object({}));
  expect(status).toBe(201);
  expect(JSON.parse(body)).toMatchObject({
    spec: {
      podStrategy: 'LocalAndRemote',
      naming: 'Suffixed',
      placement: 'Propagate',
      existingPods: 'Stay',
      onRemoval: 'Return',
      releaseAfterSeconds: 60,
      holdOffSeconds: 600,
    },
  });
  for (const spec of [{ naming: 'Same' }, { naming: 'Selected', remoteName: 'x' }]) {
    const refused = await patch({ spec });
    expect(refused.status).toBe(422);
    expect(refused.body).toContain('naming and remoteName cannot be changed');
  }
  const changed = { podStrategy: 'Remote', onRemoval: 'End', clusterSelector: { matchLabels: { a: 'b' } } };
  expect(await patch({ spec: changed })).toMatchObject({ status: 200 });
  const heldOff = [{ owner: 'ReplicaSet/web', virtualNode: 'milan', until: '2030-01-01T00:00:00Z' }];
  expect(await patch({ status: { heldOff } }, '/status')).toMatchObject({ status: 200 });
  const clusters = [{ cluster: 'milan', virtualNodes: ['milan'], phase: 'Ready', reason: 'AsExpected' }];
  const told = await patch({ status: { clusters, podsAtHome: 2, observedGeneration: 2 } }, '/status');
  expect(JSON.parse(told.body)).toMatchObject({
    status: { heldOff, clusters, podsAtHome: 2, observedGeneration: 2 },
  });
});
