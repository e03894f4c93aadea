import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptancePolicies } from '../../../../src/api/acceptance-policy.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { secrets } from '../../../../src/api/resources.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import { policyCommand } from '../../../../src/cli/sharing/policy.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const SHARING = 'sharingpolicies.tributary.dev';
const ACCEPTING = 'acceptancepolicies.tributary.dev';

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  world.seed(foreignClusters, { metadata: { name: 'milan' }, spec: { clusterID: MILAN } });
  world.seed(foreignClusters, { metadata: { name: 'unknown' }, spec: { endpoint: 'a:1' } });
  world.seed(secrets, { metadata: { namespace: 'tributary-system', name: 'key' } });
});
afterEach(async () => world.stop());

const spec = (resource: string, name = 'friends'): unknown => world.api.storage.get(resource, name)?.['spec'];

test('what is lent, to whom, and who decides', async () => {
  const line =
    'share friends --peers milan --network-key key --percent 20 --cpu 16 --pods 50 --approval Automatic';
  const { code, out, err } = await world.run(policyCommand, line);
  expect([code, out, err]).toEqual([0, 'SharingPolicy friends made\n', '']);
  expect(spec(SHARING)).toEqual({
    peers: { clusterIDs: [MILAN], networkKeySecretRef: { name: 'key', key: 'key' } },
    sharePercent: 20,
    limits: { cpu: '16', pods: '50' },
    approval: 'Automatic',
  });
  expect((await world.run(policyCommand, line)).out).toBe('SharingPolicy friends is unchanged\n');
});

test('what is taken', async () => {
  const line =
    'accept friends --anyone --found-by lan --min-cpu 2 --memory 8Gi --namespaces shop --shape PerNode';
  expect((await world.run(policyCommand, line)).out).toBe('AcceptancePolicy friends made\n');
  expect(spec(ACCEPTING)).toEqual({
    peers: { anyone: true, discovery: ['LAN'] },
    namespaces: ['shop'],
    minimum: { cpu: '2' },
    ceilings: { memory: '8Gi' },
    shape: 'PerNode',
  });
});

describe('prices', () => {
  test('are written for each resource, in one case', async () => {
    const line = ['share', 'friends', '--anyone', '--prices', 'cpu=0.02eur, memory=0.005 EUR'];
    expect((await world.run(policyCommand, line)).code).toBe(0);
    expect(spec(SHARING)).toMatchObject({
      prices: { cpu: { amount: '0.02', currency: 'EUR' }, memory: { amount: '0.005', currency: 'EUR' } },
    });
    const { err } = await world.run(policyCommand, 'share friends --prices cpu=0.03EUR');
    expect(err).toContain(
      'has prices: cpu 0.02 EUR per core and hour, memory 0.005 EUR per GiB and hour; to change that',
    );
    expect((await world.run(policyCommand, 'list')).out).toContain(
      '50 %; for cpu 0.02 EUR per core and hour',
    );
  });

  test('that are the most wanted', async () => {
    await world.run(policyCommand, 'accept friends --anyone --max-prices cpu=0.03EUR');
    expect(spec(ACCEPTING)).toMatchObject({ maxPrices: { cpu: { amount: '0.03', currency: 'EUR' } } });
    expect((await world.run(policyCommand, 'list')).out).toContain(
      'for at most cpu 0.03 EUR per core and hour',
    );
  });

  test.each([
    ['cpu=0.02', 'must be a list such as cpu=0.02EUR,memory=0.005EUR, not "cpu=0.02"'],
    ['cpu=1e3EUR', 'not "cpu=1e3EUR"'],
    ['cpu=.5EUR', 'not "cpu=.5EUR"'],
    ['cpus=1EUR', '"cpus" is no resource that a cluster lends: those are cpu, ephemeral-storage'],
    ['cpu=1EUR,cpu=2EUR', 'names cpu twice'],
  ])('%s is refused', async (text, message) => {
    const { code, err } = await world.run(policyCommand, `share friends --anyone --prices ${text}`);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});

test('--dry-run prints it, and writes nothing', async () => {
  const { code, out } = await world.run(policyCommand, `share friends --peers ${MILAN} --dry-run`);
  expect([code, out]).toEqual([
    0,
    `apiVersion: tributary.dev/v1alpha1
kind: SharingPolicy
metadata:
  name: friends
spec:
  peers:
    clusterIDs:
      - ${MILAN}
`,
  ]);
  expect(spec(SHARING)).toBeUndefined();
});

test('what somebody has set is changed only when that is said; the rest stays', async () => {
  const before = { peers: { anyone: true }, sharePercent: 10, podSecurity: 'restricted' };
  world.seed(sharingPolicies, { metadata: { name: 'friends' }, spec: before });
  const refused = await world.run(policyCommand, 'share friends --percent 20');
  expect([refused.code, refused.err]).toEqual([
    1,
    'SharingPolicy friends has sharePercent: 10; to change that, add --overwrite\n',
  ]);
  expect((await world.run(policyCommand, 'share friends --percent 20 --cpu 4 --overwrite')).code).toBe(0);
  expect(spec(SHARING)).toEqual({ ...before, sharePercent: 20, limits: { cpu: '4' } });
});

test('amounts and peers are told in words', async () => {
  await world.run(
    policyCommand,
    'accept all --anyone --min-cpu 2 --min-memory 4Gi --pods 50 --namespaces a,b',
  );
  const { out } = await world.run(policyCommand, 'list');
  expect(out).toContain(' at least cpu 2, memory 4Gi; at most pods 50 ');
  const errorOf = async (line: string): Promise<string> => (await world.run(policyCommand, line)).err;
  expect(await errorOf('accept all --min-cpu 3')).toBe(
    'AcceptancePolicy all has minimum: cpu 2, memory 4Gi; to change that, add --overwrite\n',
  );
  expect(await errorOf('accept all --namespaces c')).toContain('has namespaces: a, b; to change');
  expect(await errorOf('accept all --peers milan')).toContain('has peers: anyone; to change');
});

test('whoever opens a cluster to everybody is warned', async () => {
  const { code, err } = await world.run(policyCommand, 'share all --anyone --approval Automatic');
  expect([code, err]).toEqual([
    0,
    'Warning: every cluster that reaches this one may then run pods here, unasked.\n',
  ]);
});

test.each([
  ['share', 2, 'NAME is missing'],
  ['share friends', 2, 'say whom it is about: --peers, --network-key or --anyone'],
  ['share Friends --anyone', 2, 'NAME "Friends" is not a DNS name'],
  ['share friends --anyone --peers milan', 2, '--anyone is every cluster: leave out --peers'],
  ['share friends --found-by LAN', 2, '--found-by narrows --peers, --network-key or --anyone'],
  ['share friends --anyone --found-by bluetooth', 2, '--found-by must be some of LAN, WAN, Manual, Incoming'],
  ['share friends --peers rome', 1, 'no ForeignCluster has the name or ClusterID "rome"'],
  ['share friends --peers unknown', 2, 'the ClusterID of unknown is not known yet: name it by its ID'],
  [
    'share friends --network-key none',
    1,
    'there is no Secret tributary-system/none; make the key with: tributary',
  ],
  ['share friends --anyone --percent 101', 2, '--percent must be a whole number from 0 to 100, not "101"'],
  ['share friends --anyone --cpu lots', 2, '--cpu: '],
  [
    'share friends --anyone --approval manual',
    2,
    '--approval must be one of Manual, Automatic, Token, not "manual"',
  ],
  [
    'share friends --anyone --pod-security Privileged',
    2,
    '--pod-security must be one of baseline, restricted, privileged',
  ],
  ['accept friends --anyone --approval Token', 2, '--approval must be one of Manual, Automatic, not "Token"'],
  ['accept friends --anyone --namespaces Shop', 2, '--namespaces "Shop" is not a DNS name'],
  ['accept friends --anyone --shape Both', 2, '--shape must be one of Aggregate, PerNode'],
  ['delete friends', 1, 'there is no policy "friends"; see: tributary policy list'],
  ['delete friends --kind both', 2, '--kind must be one of share, accept, not "both"'],
  ['remove friends', 2, 'unknown command "remove"'],
])('policy %s: %i', async (line, code, message) => {
  const outcome = await world.run(policyCommand, line);
  expect([outcome.code, outcome.out]).toEqual([code, '']);
  expect(outcome.err).toContain(message);
  expect([spec(SHARING), spec(ACCEPTING)]).toEqual([undefined, undefined]);
});

test('both kinds in one list', async () => {
  expect((await world.run(policyCommand, 'list')).out).toMatch(/^There is no policy: nothing is lent/);
  await world.run(policyCommand, 'share friends --network-key key --percent 20 --cpu 16');
  await world.run(policyCommand, `accept all --peers ${MILAN} --found-by WAN --approval Automatic`);
  expect((await world.run(policyCommand, 'list')).out).toBe(
    `NAME      DOES     PEERS                                       APPROVAL    HOW MUCH              IN USE BY
friends   share    key key                                     Manual      20 %, at most cpu 16  0
all       accept   ${MILAN} (found by WAN)   Automatic   all that is offered   0
`
      .replace('HOW MUCH              IN', 'HOW MUCH               IN')
      .replace('cpu 16  0', 'cpu 16   0')
      .replace('offered   0', 'offered    0'),
  );
  expect(JSON.parse((await world.run(policyCommand, 'list -o json')).out)).toHaveLength(2);
});

describe('delete', () => {
  beforeEach(() => {
    const status = { peers: [MILAN] };
    world.seed(sharingPolicies, { metadata: { name: 'friends' }, spec: { peers: {} }, status });
    world.seed(acceptancePolicies, { metadata: { name: 'friends' }, spec: { peers: {} } });
    world.seed(peeringRequests, { metadata: { name: MILAN }, spec: { clusterID: MILAN, namespaces: [] } });
  });

  test('two of one name are told apart', async () => {
    const { code, err } = await world.run(policyCommand, 'delete friends');
    expect(code).toBe(1);
    expect(err).toContain('are named friends: add --kind share or accept');
    expect((await world.run(policyCommand, 'delete friends --kind accept')).code).toBe(0);
    expect([spec(SHARING), spec(ACCEPTING)]).toEqual([{ peers: {} }, undefined]);
  });

  test('somebody who uses it is named, and a person is asked', async () => {
    const said = `1 peer(s) use it (${MILAN}): their pods here end, unless another policy selects them`;
    const nobody = await world.run(policyCommand, 'delete friends --kind share');
    expect([nobody.code, nobody.err]).toEqual([
      2,
      `${said}; there is no terminal to ask on, so nothing was changed; a script has to add --yes\n`,
    ]);
    world.answers = ['n', 'y'];
    expect((await world.run(policyCommand, 'delete friends --kind share')).err).toBe(
      'Nothing was deleted.\n',
    );
    expect(spec(SHARING)).toBeDefined();
    expect((await world.run(policyCommand, 'delete friends --kind share')).code).toBe(0);
    expect(world.asked[1]).toBe(`${said}.\nDelete it? [y/N] `);
    expect(spec(SHARING)).toBeUndefined();
  });

  test('--now ends the pods of its peers without a grace', async () => {
    const { code, out } = await world.run(policyCommand, 'delete friends --kind share --now --yes');
    expect([code, out]).toEqual([
      0,
      `SharingPolicy friends deleted\nPods of ${MILAN} end at once, unless another policy selects it\n`,
    ]);
    const { metadata } = world.api.storage.get('peeringrequests.tributary.dev', MILAN) ?? { metadata: {} };
    expect(metadata).toMatchObject({ annotations: { 'tributary.dev/end-now': 'true' } });
    expect((await world.run(policyCommand, 'delete friends --kind accept --now')).code).toBe(2);
  });
});
