import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { advertisements } from '../../../../src/api/advertisement.ts';
import { type ForeignCluster, foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { ANNOTATION_FORCE, LABEL_MANAGED_BY, LABEL_PROVIDER } from '../../../../src/api/names.ts';
import { announcementData, readAnnouncementData } from '../../../../src/api/own-announcement.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { configMaps, namespaces, persistentVolumes } from '../../../../src/api/resources.ts';
import { LABEL_PEER } from '../../../../src/api/tenant-labels.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { approveCommand, renewCommand } from '../../../../src/cli/peering/approve.ts';
import { idCommand } from '../../../../src/cli/peering/id.ts';
import { networkKeyCommand } from '../../../../src/cli/peering/network-key.ts';
import { peeringsCommand } from '../../../../src/cli/peering/peerings.ts';
import { tokenCommand } from '../../../../src/cli/peering/token.ts';
import { unpeerCommand } from '../../../../src/cli/peering/unpeer.ts';
import { parseJoinToken } from '../../../../src/peering/identity/join-tokens.ts';
import { checkNetworkKey } from '../../../../src/peering/identity/network-key.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const HOME = 'home'.padEnd(26, 'c');

let world: CliWorld;
beforeEach(async () => {
  world = CliWorld.start();
});
afterEach(async () => world.stop());

const status = (phase: 'None' | 'Established' | 'Denied' | 'Ending'): ForeignCluster['status'] => ({
  outgoing: { phase },
  incoming: { phase },
});

describe('unpeer', () => {
  const peered = (): void => {
    const spec = { clusterID: MILAN, outgoing: 'Enabled', incoming: 'Auto' };
    world.seed(foreignClusters, {
      metadata: { name: 'mine' },
      spec,
      status: { ...status('Established'), clusterName: 'Milan' },
    });
  };

  test.each([['mine'], [MILAN], ['Milan']])(
    '"%s" ends both directions, and waits for the end',
    async (wanted) => {
      peered();
      const states = [status('Ending'), status('None')];
      world.reconcile(() => states.shift());
      const { code, out } = await world.run(unpeerCommand, wanted);
      expect(code).toBe(0);
      expect(out).toContain('Ended. ForeignCluster mine stays');
      expect(world.cluster('mine')?.spec).toEqual({
        clusterID: MILAN,
        outgoing: 'Disabled',
        incoming: 'Disabled',
      });
      expect(world.cluster('mine')?.metadata.annotations).toBeUndefined();
    },
  );

  test('one direction leaves the other as it is', async () => {
    peered();
    world.reconcile(() => ({ outgoing: { phase: 'None' }, incoming: { phase: 'Established' } }));
    const { code } = await world.run(unpeerCommand, 'mine --outgoing');
    expect(code).toBe(0);
    expect(world.cluster('mine')?.spec).toEqual({ clusterID: MILAN, outgoing: 'Disabled', incoming: 'Auto' });
  });

  test('a peer that goes on asking and is refused is as good as gone', async () => {
    peered();
    world.reconcile(() => ({
      outgoing: { phase: 'None' },
      incoming: { phase: 'Denied', reason: 'DeniedHere' },
    }));
    expect((await world.run(unpeerCommand, 'mine')).code).toBe(0);
  });

  test.each([
    ['Bound', 'mine', 1],
    ['Bound', 'mine --incoming', 0],
    ['Bound', 'mine --delete-volumes', 0],
    ['Bound', 'mine --force', 0],
    ['Released', 'mine', 0],
    ['Released, Delete', 'mine', 0],
    ['Released, Retain', 'mine', 1],
    ['Released, Retain', 'mine --delete-volumes', 0],
  ])('a volume over there that is %s: "%s" ends with %i', async (state, line, expected) => {
    const [phase, persistentVolumeReclaimPolicy] = state.split(', ');
    peered();
    world.seed(persistentVolumes, {
      metadata: { name: 'tributary-1', labels: { [LABEL_MANAGED_BY]: MILAN } },
      spec: {
        claimRef: { namespace: 'shop', name: 'data' },
        ...(persistentVolumeReclaimPolicy !== undefined && { persistentVolumeReclaimPolicy }),
      },
      status: { ...(phase !== undefined && { phase }) },
    });
    world.seed(persistentVolumes, {
      metadata: { name: 'other', labels: { [LABEL_MANAGED_BY]: HOME } },
      status: { phase: 'Bound' },
    });
    world.reconcile(() => status('None'));
    const { code, err } = await world.run(unpeerCommand, line);
    expect(code).toBe(expected);
    expect(err).toBe(
      expected === 0
        ? ''
        : 'Nothing was changed: what is in 1 volume(s) over there would be lost, of the claims shop/data. ' +
            'Save what you need and delete the claims (where one is gone, the PersistentVolume), or add --delete-volumes.\n',
    );
    if (expected !== 0) expect(world.cluster('mine')?.spec?.outgoing).toBe('Enabled');
  });

  test('what does not end is named, with what to do about it', async () => {
    peered();
    world.seed(virtualNodes, { metadata: { name: 'milan', labels: { [LABEL_PROVIDER]: MILAN } }, spec: {} });
    world.seed(virtualNodes, { metadata: { name: 'rome', labels: { [LABEL_PROVIDER]: 'rome' } } });
    world.seed(namespaces, { metadata: { name: 'milan-shop', labels: { [LABEL_PEER]: MILAN } } });
    world.seed(advertisements, { metadata: { name: MILAN } });
    world.seed(peeringRequests, { metadata: { name: MILAN } });
    world.reconcile(() => status('Ending'));
    const { code, out, err } = await world.run(unpeerCommand, 'mine --timeout 1s');
    expect(code).toBe(1);
    expect(out).toContain('our pods over there: being ended');
    expect(err.split('\n')).toEqual([
      'The peering has not ended after 1 s. The role cluster goes on ending it. If the other cluster is dead, run the same command with --force.',
      `  still there: Advertisement ${MILAN}`,
      '  still there: VirtualNode milan',
      `  still there: PeeringRequest ${MILAN}`,
      '  still there: Namespace milan-shop',
      '',
    ]);
  });

  test('--force tells the controllers not to wait', async () => {
    peered();
    world.reconcile(({ metadata }) =>
      metadata.annotations?.[ANNOTATION_FORCE] === 'true' ? status('None') : undefined,
    );
    expect((await world.run(unpeerCommand, 'mine --force')).code).toBe(0);
  });

  test('a ForeignCluster that is gone in the end has ended', async () => {
    peered();
    world.reconcile(({ metadata }) => {
      world.api.storage.remove('foreignclusters.tributary.dev', metadata.name);
      return undefined;
    });
    expect((await world.run(unpeerCommand, 'mine')).code).toBe(0);
  });

  test('where nothing was shared, it says so', async () => {
    world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
    world.reconcile(({ spec }) => (spec?.outgoing === 'Disabled' ? status('None') : undefined));
    const { code, out } = await world.run(unpeerCommand, 'mine --timeout 1s');
    expect(out).toContain('There was nothing to end. ForeignCluster mine stays and says not to peer.');
    expect(code).toBe(0);
  });

  test('an unknown name is told', async () => {
    const { code, err } = await world.run(unpeerCommand, 'rome');
    expect(code).toBe(1);
    expect(err).toContain('no ForeignCluster has the name or ClusterID "rome"');
  });

  test('a wrong duration is told with its option', async () => {
    const { code, err } = await world.run(unpeerCommand, 'mine --timeout soon');
    expect([code, err]).toEqual([2, expect.stringMatching(/^--timeout: "soon" is not a duration/)]);
  });

  test('a name that two clusters give themselves is not guessed at', async () => {
    for (const name of ['a', 'b']) {
      world.seed(foreignClusters, { metadata: { name }, spec: {}, status: { clusterName: 'Milan' } });
    }
    const { err } = await world.run(unpeerCommand, 'Milan');
    expect(err).toContain('several clusters call themselves "Milan"; give one of: a, b');
    expect(world.api.count(/^PATCH/)).toBe(0);
  });
});

describe('token', () => {
  test('create prints the token alone, and it names this cluster', async () => {
    world.seedOwn(HOME, configMaps);
    const { code, out, err } = await world.run(tokenCommand, 'create --ttl 2h --name door');
    expect(code).toBe(0);
    expect(parseJoinToken(out)).toMatchObject({ clusterID: HOME, name: 'door' });
    expect(err).toMatch(
      /^For one cluster, until \d{4}-.*: tributary peer E.* tributary tether CLUSTER --token -\n$/,
    );
    expect(err).not.toContain(parseJoinToken(out).secret);
    const { secret } = parseJoinToken(out);
    expect(JSON.stringify(world.api.storage.list('secrets'))).not.toContain(
      Buffer.from(secret).toString('base64'),
    );
  });

  test('create -o json is for programs', async () => {
    world.seedOwn(HOME, configMaps);
    const { out } = await world.run(tokenCommand, 'create -o json');
    const made = JSON.parse(out) as { token: string; name: string; expires: string };
    expect(parseJoinToken(made.token).name).toBe(made.name);
    expect(Date.parse(made.expires)).toBeGreaterThan(0);
  });

  test('list shows tokens without their secrets, delete removes one', async () => {
    world.seedOwn(HOME, configMaps);
    const { out: token } = await world.run(tokenCommand, 'create --name door');
    await world.run(tokenCommand, 'create --name gate');
    const { out } = await world.run(tokenCommand, 'list');
    expect(out).toMatch(/^NAME +CREATED +EXPIRES +USED BY\ndoor .*\ngate .*\n$/);
    expect(out).not.toContain(parseJoinToken(token).secret);
    expect((await world.run(tokenCommand, 'delete door')).code).toBe(0);
    expect((await world.run(tokenCommand, 'list -o json')).out).toMatch(/^\[\n {2}\{\n {4}"name": "gate"/);
    expect((await world.run(tokenCommand, 'delete door')).code).toBe(1);
  });

  test.each([
    ['', /say which: create, list, delete/],
    ['create extra', /unexpected argument "extra"/],
    ['delete', /NAME is missing/],
    ['create --ttl 1y', /^--ttl: "1y" is not a duration/],
  ])('"token %s" is a mistake', async (line, why) => {
    const { code, err } = await world.run(tokenCommand, line);
    expect(code).toBe(2);
    expect(err).toMatch(why);
    expect(world.opened).toEqual([]);
  });

  test('before the cluster role has run, it says so', async () => {
    const { code, err } = await world.run(tokenCommand, 'create');
    expect(code).toBe(1);
    expect(err).toContain("is Tributary's cluster role running?");
  });
});

describe('id', () => {
  test('says who this cluster is, for people and for programs', async () => {
    world.seedOwn(HOME, configMaps);
    const { out } = await world.run(idCommand, '');
    expect(out).toContain(`ClusterID    ${HOME}\n`);
    expect(out).toContain('Name         Home\n');
    expect(out).toContain('home.example.org:7443');
    const json = JSON.parse((await world.run(idCommand, '-o json')).out) as object;
    expect(json).toMatchObject({ clusterID: HOME, port: 7443, protocols: [1] });
  });

  test('what is written for it is read back, and nonsense is nothing', () => {
    const own = {
      clusterID: HOME,
      clusterName: 'Home',
      endpoints: ['a:1', '[fd00::1]:2'],
      port: 1,
      protocols: [1, 2],
    };
    expect(readAnnouncementData(announcementData(own))).toEqual(own);
    expect(readAnnouncementData({ ...announcementData(own), clusterID: '../x' })).toBeUndefined();
    expect(readAnnouncementData(undefined)).toBeUndefined();
    expect(readAnnouncementData({ ...announcementData(own), endpoints: '' })?.endpoints).toEqual([]);
  });
});

test('peerings is a table', async () => {
  expect((await world.run(peeringsCommand, '')).out).toBe('No other cluster is known.\n');
  world.seed(foreignClusters, {
    metadata: { name: MILAN },
    spec: {},
    status: {
      clusterName: 'Milan',
      foundBy: 'LAN,WAN',
      link: { connected: true, dialledBy: 'Us', endpoint: '10.0.0.1:7443' },
      outgoing: { phase: 'Established', reason: 'AsExpected' },
      incoming: { phase: 'Denied', reason: 'TokenUsed' },
      conditions: [
        { type: 'NetworkReady', status: 'False', reason: 'NoHandshake', message: '', lastTransitionTime: '' },
      ],
    },
  });
  world.seed(foreignClusters, { metadata: { name: 'a-new-one' }, spec: {} });
  const { code, out } = await world.run(peeringsCommand, '');
  expect(code).toBe(0);
  const cells = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {3,}/));
  expect(cells).toEqual([
    ['NAME', 'CLUSTER', 'FOUND BY', 'LINK', 'TUNNEL', 'OUTGOING', 'INCOMING'],
    ['a-new-one', 'none', 'none', 'None', 'None'],
    [
      MILAN,
      'Milan',
      'LAN,WAN',
      'to 10.0.0.1:7443',
      'down (NoHandshake)',
      'Established',
      'Denied (TokenUsed)',
    ],
  ]);
});

test('peerings says why no new pods are sent to a cluster', async () => {
  const message = 'no new pods are sent there: cpu: 0.03 EUR asked, at most 0.01 EUR wanted';
  world.seed(foreignClusters, {
    metadata: { name: MILAN },
    spec: {},
    status: { outgoing: { phase: 'Established', reason: 'OfferRefused', message } },
  });
  expect((await world.run(peeringsCommand, '')).out).toContain(`closed (${message})`);
});

describe('approve and deny', () => {
  const approval = (resource: string): unknown =>
    world.api.storage.get(`${resource}.tributary.dev`, MILAN)?.spec?.['approval'];

  test.each([
    ['peeringrequest', 'peeringrequests'],
    ['PeeringRequests', 'peeringrequests'],
    ['advertisement', 'advertisements'],
  ])('a %s', async (kind, resource) => {
    world.seed(peeringRequests, { metadata: { name: MILAN }, spec: { clusterID: MILAN, namespaces: [] } });
    world.seed(advertisements, { metadata: { name: MILAN }, spec: { clusterID: MILAN } });
    const yes = await world.run(approveCommand('Approved'), `${kind} ${MILAN}`);
    expect(yes).toMatchObject({ code: 0, err: '' });
    expect(approval(resource)).toBe('Approved');
    await world.run(approveCommand('Denied'), `${kind} ${MILAN}`);
    expect(approval(resource)).toBe('Denied');
  });

  test('by the name of the ForeignCluster', async () => {
    world.seed(foreignClusters, { metadata: { name: 'milan' }, spec: { clusterID: MILAN } });
    world.seed(peeringRequests, { metadata: { name: MILAN }, spec: { clusterID: MILAN, namespaces: [] } });
    const { out } = await world.run(approveCommand('Approved'), 'peeringrequest milan');
    expect(out).toBe(`PeeringRequest ${MILAN} approved\n`);
    expect(approval('peeringrequests')).toBe('Approved');
  });

  test('who lets a cluster in again takes back what unpeer has left for it, and no more', async () => {
    const spec = { clusterID: MILAN, incoming: 'Disabled', outgoing: 'Disabled' } as const;
    world.seed(foreignClusters, { metadata: { name: 'milan' }, spec });
    world.seed(peeringRequests, { metadata: { name: MILAN }, spec: { clusterID: MILAN, namespaces: [] } });
    const left = (): unknown => world.api.storage.get('foreignclusters.tributary.dev', 'milan')?.spec;
    await world.run(approveCommand('Denied'), 'milan');
    expect(left()).toEqual(spec);
    const { out } = await world.run(approveCommand('Approved'), 'milan');
    expect(out).toBe(
      `PeeringRequest ${MILAN} approved\nForeignCluster milan no longer says incoming: Disabled\n`,
    );
    expect(left()).toEqual({ clusterID: MILAN, outgoing: 'Disabled' });
  });

  test.each([
    ['pod x', 2, /neither peeringrequest nor advertisement/],
    ['constructor x', 2, /neither/],
    ['peeringrequest', 2, /NAME is missing/],
    [`peeringrequest ${MILAN}`, 1, /no ForeignCluster has/],
  ])('"%s" is refused', async (line, code, why) => {
    const outcome = await world.run(approveCommand('Approved'), line);
    expect(outcome.code).toBe(code);
    expect(outcome.err).toMatch(why);
  });
});

test('renew asks for a credential by the name of the ForeignCluster, with another word each time', async () => {
  world.seed(foreignClusters, { metadata: { name: 'milan' }, spec: { clusterID: MILAN } });
  expect(await world.run(renewCommand, 'milan')).toMatchObject({ code: 1 });
  world.seed(advertisements, { metadata: { name: MILAN }, spec: { clusterID: MILAN } });
  const word = (): string | undefined =>
    world.api.storage.get('advertisements.tributary.dev', MILAN)?.metadata.annotations?.[
      'tributary.dev/renew'
    ];
  expect(await world.run(renewCommand, 'milan')).toMatchObject({ code: 0, err: '' });
  const first = word();
  expect(Date.parse(first ?? '')).not.toBeNaN();
  await world.run(renewCommand, MILAN);
  expect(word()).not.toBe(first);
});

describe('network-key', () => {
  test('create makes a key that is good enough, and does not show it', async () => {
    const { code, out } = await world.run(networkKeyCommand, 'create --name ours');
    expect(code).toBe(0);
    const data = world.secret('ours')?.['data'] as Record<string, string>;
    const key = Buffer.from(data['key'] ?? '', 'base64');
    expect(checkNetworkKey(key)).toBe(key);
    expect(Buffer.from(key.toString(), 'base64')).toHaveLength(32);
    expect(out).not.toContain(key.toString());
    expect(out).toContain('networkKeySecretRef: {name: ours}');
  });

  test('one that is there is not replaced', async () => {
    await world.run(networkKeyCommand, 'create');
    const before = world.secret('tributary-network-key');
    const { code } = await world.run(networkKeyCommand, 'create');
    expect(code).toBe(1);
    expect(world.secret('tributary-network-key')).toEqual(before);
  });

  test.each([[''], ['delete'], ['create --name UPPER'], ['create more']])(
    '"network-key %s" is a mistake',
    async (line) => {
      expect((await world.run(networkKeyCommand, line)).code).toBe(2);
      expect(world.opened).toEqual([]);
    },
  );
});
