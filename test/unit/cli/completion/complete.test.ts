import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { acceptancePolicies } from '../../../../src/api/acceptance-policy.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { namespaces, type ResourceType, secrets } from '../../../../src/api/resources.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import { PROGRAM } from '../../../../src/cli/cli.ts';
import type { OpenCluster } from '../../../../src/cli/command.ts';
import { defineCommand } from '../../../../src/cli/command.ts';
import { completed } from '../../../../src/cli/completion/complete.ts';
import type { Where } from '../../../../src/cli/kubeconfig.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { JoinTokens } from '../../../../src/peering/identity/join-tokens.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

let api: FakeApi;
let clock: FakeClock;
beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({
    types: [foreignClusters, sharingPolicies, acceptancePolicies] as ResourceType<KubeObject>[],
  });
});
afterEach(async () => api.stop());

const { signal } = new AbortController();

/** The words end where the cursor is; a blank at the end begins a new one. */
async function complete(
  line: string,
  open: OpenCluster = async () => Promise.resolve(api.client()),
): Promise<string[]> {
  const text = await completed(PROGRAM, line.split(' '), { open, clock, signal });
  expect(text).toMatch(/(?:^|\n):\d\n$/);
  return text.trimEnd().split('\n');
}
const values = (lines: readonly string[]): string[] => lines.map((line) => line.split('\t')[0] ?? '');

test.each([
  ['unp', 'unpeer', ':4'],
  ['help unp', 'unpeer', ':4'],
  ['token cr', 'create', ':4'],
  ['run cl', 'cluster', ':4'],
  ['peer x --tim', '--timeout', ':4'],
  ['--kubec', '--kubeconfig', ':4'],
  ['id --output j', 'json', ':4'],
  ['id -o j', 'json', ':4'],
  ['id --output=j', '--output=json', ':4'],
  ['manifests gateway --network of', 'off', ':4'],
  ['completion z', 'zsh', ':4'],
])('"tributary %s" goes on with %s', async (line, value, directive) => {
  expect(values(await complete(line))).toEqual([value, directive]);
});

test.each([
  'nothing ',
  'nothing a',
  'peer x --no',
  'id ',
  'peer --name ',
  'token create extra ',
  '--constructor=x',
  'peer x -- --tim',
])('nothing fits "tributary %s"', async (line) => {
  expect(await complete(line)).toEqual([':4']);
});

test('commands and options bear their texts, and hidden ones are not offered', async () => {
  const all = await complete('');
  expect(all).toContain(
    `unpeer\t${PROGRAM.children?.find(({ spec }) => spec.name === 'unpeer')?.spec.summary}`,
  );
  const options = values(await complete('run gateway --'));
  expect(options).toContain('--wireguard-port');
  expect(options).not.toContain('--kubelet-port');
  expect(values(await complete('peer x --namespaces shop --'))).not.toContain('--namespaces');
});

test('a file is the shell’s own', async () => {
  expect(await complete('--kubeconfig ')).toEqual([':0']);
});

describe('names', () => {
  beforeEach(async () => {
    for (const name of ['shop', 'shop-db', 'web']) api.seed(namespaces, { metadata: { name } });
    api.seed(foreignClusters, { metadata: { name: 'aaaa' }, status: { clusterName: 'mi\u001B[31mlan' } });
    api.seed(sharingPolicies, { metadata: { name: 'guests' } });
  });

  test('come from the cluster, with what they are called there', async () => {
    expect(await complete('unpeer ')).toEqual(['aaaa\tmi?[31mlan', ':4']);
  });

  test('of namespaces are those that may leave the cluster', async () => {
    for (const name of ['kube-system', 'kube-public', 'tributary-system', 'tributary-peers', 'default'])
      api.seed(namespaces, { metadata: { name } });
    expect(await complete('offload ')).toEqual(['default', 'shop', 'shop-db', 'web', ':4']);
  });

  test('of logs are roles and peers', async () => {
    expect(await complete('logs ')).toEqual([
      'cluster',
      'gateway',
      'node',
      'peers',
      'aaaa\tmi?[31mlan',
      ':4',
    ]);
    expect(await complete('logs ga')).toEqual(['gateway', ':4']);
  });

  test('go on in a list, without those that it holds', async () => {
    expect(await complete('peer x --namespaces sh')).toEqual(['shop', 'shop-db', ':6']);
    const more = ['--namespaces=shop,shop-db', '--namespaces=shop,web', ':6'];
    expect(await complete('peer x --namespaces=shop,')).toEqual(more);
  });

  test('of tokens do not show their secrets', async () => {
    const client = api.client();
    const tokens = new JoinTokens({
      client,
      clock,
      log: silentLogger,
      namespace: 'tributary-system',
      clusterID: '',
    });
    const { expires } = await tokens.create({ name: 'for-rome' });
    expect((await client.list(secrets)).items).toHaveLength(1);
    expect(await complete('token delete ')).toEqual([`for-rome\tuntil ${expires}`, ':4']);
  });

  test('of policies are those of both kinds', async () => {
    const program = {
      ...PROGRAM,
      children: [
        defineCommand({
          name: 'policy',
          summary: 'Of the test.',
          arguments: [{ name: 'NAME', text: 'policies', names: 'policies', isVariadic: true }],
        }),
      ],
    };
    api.seed(acceptancePolicies, { metadata: { name: 'offers' } });
    const open: OpenCluster = async () => Promise.resolve(api.client());
    const text = await completed(program, ['policy', 'x', ''], { open, clock, signal });
    expect(text).toBe('guests\noffers\n:4\n');
  });

  test('are asked of the cluster that the line names', async () => {
    const asked: Where[] = [];
    const open: OpenCluster = async (where) => {
      asked.push(where);
      return Promise.resolve(api.client());
    };
    await complete('--kubeconfig /k --context=rome unpeer ', open);
    await complete('unpeer --context milan ', open);
    expect(asked).toEqual([
      { kubeconfig: '/k', context: 'rome' },
      { kubeconfig: undefined, context: 'milan' },
    ]);
  });

  test('of a cluster that refuses, or does not answer within a second, are none, without a word', async () => {
    const refused = complete('unpeer ', async () => Promise.reject(new Error('connection refused')));
    expect(await refused).toEqual([':4']);
    const began = clock.monotonic();
    const hanging = complete('unpeer ', async () => new Promise(() => {}));
    expect(await clock.during('asking', hanging)).toEqual([':4']);
    expect(clock.monotonic() - began).toBe(1000);
  });
});
