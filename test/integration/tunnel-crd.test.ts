import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { binaries } from '../../lab/binaries.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';

/** How a real API server treats Tunnels: their rules, their defaults, their two writers. */

const PATH = '/apis/tributary.dev/v1alpha1/tunnels';
const MERGE = 'application/merge-patch+json';
const ID = 'a'.repeat(26);
const OTHER_ID = 'b2'.repeat(13);
const KEY = `${'A'.repeat(43)}=`;

let lab: RightsCluster;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['crds']));
});

afterAll(async () => lab?.down());

type Answer = { status: number; body: string };

const create = async (spec: object, { name = ID, query = '' } = {}): Promise<Answer> =>
  lab.cluster.api.call('POST', `${PATH}${query}`, {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: { name },
    spec,
  });
const dryRun = async (spec: object, name?: string): Promise<Answer> =>
  create({ clusterID: ID, ...spec }, { query: '?dryRun=All', ...(name !== undefined && { name }) });
const patchStatus = async (status: object): Promise<Answer> =>
  lab.cluster.api.call('PATCH', `${PATH}/${ID}/status`, { status }, MERGE);

const PEER = { publicKey: KEY, endpoints: ['192.0.2.1:51820'], pods: ['10.244.0.0/16'], external: [] };
const VIEW = { prefix: '10.244.0.0/16', as: '100.64.0.0/16' };

test.each([
  ['a peer that is silent', {}],
  [
    'a peer that has told',
    { clusterName: 'Milan', peer: { ...PEER, transit: ['fd00::/64'] }, seenAs: [VIEW] },
  ],
  ['a peer that cannot be dialled', { peer: { ...PEER, endpoints: [] } }],
])('accepted: %s', async (_what, spec) => {
  expect(await dryRun(spec)).toMatchObject({ status: 201 });
});

test.each([
  ['another name', {}, OTHER_ID, 'the name must be the clusterID'],
  ['a key that is none', { peer: { ...PEER, publicKey: `${'A'.repeat(42)}==` } }, ID, 'should match'],
  ['a CIDR that is none', { peer: { ...PEER, pods: ['10.0.0.0'] } }, ID, 'should match'],
  ['a CIDR with a zone', { peer: { ...PEER, pods: ['fe80::%a/64'] } }, ID, 'should match'],
  ['no pods', { peer: { ...PEER, pods: undefined } }, ID, 'Required value'],
  ['too many pods', { peer: { ...PEER, pods: Array(257).fill('10.0.0.0/8') } }, ID, 'at most 256 items'],
  ['two views of one prefix', { seenAs: [VIEW, VIEW] }, ID, 'Duplicate value'],
  ['half a view', { seenAs: [{ prefix: VIEW.prefix }] }, ID, 'Required value'],
  ['an access that is none', { access: 'Some' }, ID, 'supported values: "OffloadedPods", "AllPods", "None"'],
  ['a transit that is none', { transit: 'AllPods' }, ID, 'supported values: "OffloadedPods", "None"'],
])('refused: %s', async (_what, spec, name, why) => {
  const answer = await dryRun(spec, name);
  expect(answer.status).toBe(422);
  expect((JSON.parse(answer.body) as { message: string }).message).toContain(why);
});

test('access and transit are those of offloaded pods by default', async () => {
  const { body } = await dryRun({});
  expect((JSON.parse(body) as { spec: object }).spec).toEqual({
    clusterID: ID,
    access: 'OffloadedPods',
    transit: 'OffloadedPods',
  });
});

test('the writer of addresses and the one of measurements leave each other alone; people see both', async () => {
  expect(await create({ clusterID: ID, clusterName: 'Milan' })).toMatchObject({ status: 201 });
  const time = '2026-01-01T00:00:00Z';
  const condition = {
    type: 'Ready',
    status: 'True',
    reason: 'AsExpected',
    message: '',
    lastTransitionTime: time,
  };
  const connection = {
    gateway: 'node-1',
    endpoint: '192.0.2.1:51820',
    handshake: time,
    rttMs: 1.4,
    lossPercent: 0.5,
    receivedBytes: 5_000_000_000,
    sentBytes: 0,
    mtu: 1420,
  };
  const refused = [{ prefix: '0.0.0.0/0', reason: 'PrefixRefused', message: 'it is too wide' }];
  const answers = await Promise.all([
    patchStatus({ views: [{ ...VIEW, use: 'Pods' }], refused }),
    patchStatus({ connection, conditions: [condition] }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  const { body } = await lab.cluster.api.call('GET', `${PATH}/${ID}`);
  expect((JSON.parse(body) as { status: object }).status).toEqual({
    views: [{ ...VIEW, use: 'Pods' }],
    refused,
    connection,
    conditions: [condition],
  });
  const { kubectl } = await binaries(undefined, ['kubectl']);
  const { stdout } = spawnSync(kubectl, ['--kubeconfig', lab.cluster.kubeconfig, 'get', 'tun'], {
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/^NAME +CLUSTER +READY +ENDPOINT +RTT +LOSS +MTU +AGE\n/);
  expect(stdout).toMatch(/\na{26} +Milan +True +192\.0\.2\.1:51820 +1\.4 +0\.5 +1420 +\d+s\n/);
});

test('a status that nobody could have measured is refused', async () => {
  for (const [status, why] of [
    [{ connection: { lossPercent: 101 } }, 'less than or equal to 100'],
    [{ connection: { rttMs: -1 } }, 'greater than or equal to 0'],
    [{ views: [{ ...VIEW, use: 'Mine' }] }, 'Unsupported value'],
    [{ refused: [{ prefix: 'x', reason: 'two words', message: '' }] }, 'should match'],
  ] as const) {
    expect(await patchStatus(status)).toMatchObject({
      status: 422,
      body: expect.stringContaining(why) as unknown,
    });
  }
});
