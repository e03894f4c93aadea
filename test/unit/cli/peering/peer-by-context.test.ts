import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type ForeignCluster, foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { announcementData } from '../../../../src/api/own-announcement.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { type SharingPolicy, sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { peerCommand } from '../../../../src/cli/peering/peer-command.ts';
import { unpeerCommand } from '../../../../src/cli/peering/unpeer.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const ROME = 'rome'.padEnd(26, 'b');

let rome: CliWorld;
let milan: CliWorld;

const runsIn = (world: CliWorld, clusterID: string, clusterName: string, endpoints: string[]): void => {
  const own = { clusterID, clusterName, endpoints, port: 7443, protocols: [1] };
  world.seed(configMaps, {
    metadata: { namespace: 'tributary-system', name: 'tributary-announcement' },
    data: announcementData(own),
  });
  world.reconcile(({ spec }) =>
    spec?.outgoing === 'Enabled'
      ? { outgoing: { phase: 'Established' }, link: { connected: true } }
      : { outgoing: { phase: 'None' } },
  );
};

const clusterIn = ({ storage }: FakeApi, name: string): ForeignCluster | undefined =>
  storage.get('foreignclusters.tributary.dev', name);
const policiesIn = async (world: CliWorld): Promise<SharingPolicy[]> =>
  (await world.api.client().list(sharingPolicies)).items;

beforeEach(() => {
  rome = CliWorld.start();
  milan = CliWorld.start();
  rome.others.set('milan', milan.api);
});
afterEach(async () => {
  await rome.stop();
  await milan.stop();
});

test('both sides are told what is needed, and no token is made', async () => {
  runsIn(rome, ROME, 'rome', []);
  runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
  const { code, out, err } = await rome.run(peerCommand, '--to-context milan --namespaces shop --share 30');
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('SharingPolicy rome made in milan: it lends 30 % of what is free to rome\n');
  expect(out).toContain(`Virtual node node-of-${MILAN} is Ready\nDone in `);
  expect(clusterIn(rome.api, MILAN)?.spec).toEqual({
    clusterID: MILAN,
    endpoint: '203.0.113.7:30743',
    outgoing: 'Enabled',
    namespaces: ['shop'],
  });
  expect(clusterIn(milan.api, ROME)?.spec).toEqual({ clusterID: ROME, incoming: 'Enabled' });
  expect((await policiesIn(milan)).map(({ spec }) => spec)).toEqual([
    { peers: { clusterIDs: [ROME] }, approval: 'Automatic', sharePercent: 30 },
  ]);
  expect(await policiesIn(rome)).toEqual([]);
});

test('--mutual does the same the other way', async () => {
  runsIn(rome, ROME, 'rome', []);
  runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
  expect((await rome.run(peerCommand, '--to-context milan --mutual')).code).toBe(0);
  expect(clusterIn(rome.api, MILAN)?.spec).toMatchObject({ outgoing: 'Enabled', incoming: 'Enabled' });
  expect(clusterIn(milan.api, ROME)?.spec).toMatchObject({ outgoing: 'Enabled', incoming: 'Enabled' });
  expect(await policiesIn(rome)).toHaveLength(1);
});

test('where only this side can be dialled, the other one is told where', async () => {
  runsIn(rome, ROME, 'rome', ['198.51.100.1:7443']);
  runsIn(milan, MILAN, 'milan', []);
  milan.seed(foreignClusters, {
    metadata: { name: 'found' },
    spec: { clusterID: ROME, outgoing: 'Disabled' },
  });
  expect((await rome.run(peerCommand, '--to-context milan')).code).toBe(0);
  expect(clusterIn(rome.api, MILAN)?.spec).not.toHaveProperty('endpoint');
  expect(clusterIn(milan.api, 'found')?.spec).toEqual({
    clusterID: ROME,
    endpoint: '198.51.100.1:7443',
    incoming: 'Enabled',
  });
});

test('a SharingPolicy that speaks of the consumer stays the one that decides', async () => {
  runsIn(rome, ROME, 'rome', []);
  runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
  milan.seed(sharingPolicies, { metadata: { name: 'guests' }, spec: { peers: { anyone: true } } });
  const { code, out } = await rome.run(peerCommand, '--to-context milan');
  expect(code).toBe(0);
  expect(out).not.toContain('SharingPolicy');
  expect(await policiesIn(milan)).toHaveLength(1);
});

test('a policy of that name which speaks of others is not touched', async () => {
  runsIn(rome, ROME, 'rome', []);
  runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
  milan.seed(sharingPolicies, { metadata: { name: 'rome' }, spec: { peers: { clusterIDs: ['x'] } } });
  expect((await rome.run(peerCommand, '--to-context milan')).out).toContain(`SharingPolicy ${ROME} made`);
});

test('a node that does not come up is told, with its reason', async () => {
  runsIn(rome, ROME, 'rome', []);
  runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
  rome.startsNodes = false;
  const { code, err } = await rome.run(peerCommand, '--to-context milan --timeout 2s');
  expect(code).toBe(1);
  expect(err).toContain(`no virtual node became Ready in time: ${MILAN}: the agent has not reached it.`);
  expect((await rome.api.client().list(virtualNodes)).items).toHaveLength(1);
});

test('it waits while the new node has the taint that Kubernetes gives it', async () => {
  runsIn(rome, ROME, 'rome', []);
  runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
  rome.taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }];
  const { code, err } = await rome.run(peerCommand, '--to-context milan --timeout 1s');
  expect(code).toBe(1);
  expect(err).toContain('the taint node.kubernetes.io/not-ready keeps pods away.');
});

test('nothing is written where it cannot work', async () => {
  runsIn(rome, ROME, 'rome', []);
  const none = await rome.run(peerCommand, '--to-context milan');
  expect([none.code, none.err]).toEqual([
    1,
    'Tributary does not run in the cluster of context milan. Install it there first: tributary --context milan install\n',
  ]);
  runsIn(milan, MILAN, 'milan', []);
  const neither = await rome.run(peerCommand, '--to-context milan');
  expect(neither.err).toContain('neither cluster says where peers can dial it');
  expect(rome.api.count(/^(POST|PUT|PATCH|DELETE)/) + milan.api.count(/^(POST|PUT|PATCH|DELETE)/)).toBe(0);
  rome.others.clear();
  expect((await rome.run(peerCommand, '--to-context rome')).err).toContain('both contexts lead to the same');
});

describe('what was made for a peering goes with it', () => {
  const ended = { outgoing: { phase: 'None' }, incoming: { phase: 'None' } } as const;
  beforeEach(async () => {
    runsIn(rome, ROME, 'rome', []);
    runsIn(milan, MILAN, 'milan', ['203.0.113.7:30743']);
    expect((await rome.run(peerCommand, '--to-context milan')).code).toBe(0);
    milan.seed(sharingPolicies, {
      metadata: { name: 'by-hand' },
      spec: { peers: { clusterIDs: [ROME] } },
    });
    for (const world of [rome, milan]) world.reconcile(() => ended);
  });
  const left = async (): Promise<string[]> => (await policiesIn(milan)).map(({ metadata }) => metadata.name);

  test('at the provider, and what people have made stays', async () => {
    const { code, out } = await milan.run(unpeerCommand, ROME);
    expect(code).toBe(0);
    expect(out).toContain('  removed: SharingPolicy rome, which tributary peer had made for it\n');
    expect(await left()).toEqual(['by-hand']);
  });

  test('at the consumer it is told, with the command for the provider', async () => {
    const { code, out } = await rome.run(unpeerCommand, `${MILAN} --context here`);
    expect(code).toBe(0);
    expect(out).toContain(
      `  SharingPolicy rome, which tributary peer made in ${MILAN}, stays there. To remove it: tributary unpeer ${ROME} --context CONTEXT, with the context of ${MILAN}\n`,
    );
    expect(await left()).toHaveLength(2);
  });

  test('with --to-context in one command, at both', async () => {
    const { code, out, err } = await rome.run(unpeerCommand, `${MILAN} --to-context milan`);
    expect([code, err]).toEqual([0, '']);
    expect(out).not.toContain('stays there');
    // Nor does an uninstallation say so later.
    expect(
      clusterIn(rome.api, MILAN)?.metadata.annotations?.['tributary.dev/policy-over-there'],
    ).toBeUndefined();
    expect(out).toContain('In context milan:\n');
    expect(await left()).toEqual(['by-hand']);
    expect(clusterIn(milan.api, ROME)?.spec).toMatchObject({ outgoing: 'Disabled', incoming: 'Disabled' });
    expect(clusterIn(rome.api, MILAN)?.spec).toMatchObject({ outgoing: 'Disabled', incoming: 'Disabled' });
  });

  test('one direction here is the other one there', async () => {
    expect((await rome.run(unpeerCommand, `${MILAN} --outgoing --to-context milan`)).code).toBe(0);
    expect(clusterIn(rome.api, MILAN)?.spec?.incoming).toBeUndefined();
    expect(clusterIn(milan.api, ROME)?.spec).toMatchObject({ incoming: 'Disabled' });
    expect(clusterIn(milan.api, ROME)?.spec?.outgoing).toBeUndefined();
    expect(await left()).toEqual(['by-hand']);
  });

  test('one that was made to speak of others stays, and is told', async () => {
    const policy = (await policiesIn(milan)).find(({ metadata }) => metadata.name === 'rome');
    milan.api.storage.update('sharingpolicies.tributary.dev', {
      ...policy,
      spec: { peers: { clusterIDs: [ROME, 'x'] } },
    } as never);
    const { out } = await milan.run(unpeerCommand, ROME);
    expect(out).toContain(
      '  stays: SharingPolicy rome, which is for other clusters too by now. To remove it: tributary policy delete rome --kind share\n',
    );
    expect(await left()).toHaveLength(2);
  });

  test('the end of what it lends to nobody is no policy’s', async () => {
    expect((await milan.run(unpeerCommand, `${ROME} --outgoing`)).out).not.toContain('SharingPolicy');
    expect(await left()).toHaveLength(2);
  });
});

test.each([
  ['', 'ENDPOINT is missing, or --to-context'],
  ['a:1 --to-context milan', 'give either ENDPOINT or --to-context'],
  ['--to-context milan --token x', '--token is not for --to-context'],
  ['--to-context milan --outgoing Auto', '--outgoing is not for --to-context'],
  ['--to-context milan --share 0', '--share must be from 1 to 100 percent, not "0"'],
  ['--to-context milan --share much', '--share must be from 1 to 100 percent, not "much"'],
  ['a:1 --mutual', '--mutual is for --to-context only'],
])('"peer %s" is a mistake: %s', async (line, complaint) => {
  const { code, err } = await rome.run(peerCommand, line);
  expect([code, err]).toEqual([2, `${complaint}\nsee: tributary peer --help\n`]);
  expect(rome.opened).toEqual([]);
});
