import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ForeignCluster, PeeringState } from '../../../../src/api/foreign-cluster.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { ANNOTATION_FORCE } from '../../../../src/api/names.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { peerCommand } from '../../../../src/cli/peering/peer-command.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { CliWorld } from '../support/cli-world.ts';
import { soon } from '../../../support/settle.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const ROME = 'rome'.padEnd(26, 'b');
const TOKEN = `${MILAN}.door.${'s'.repeat(43)}`;

let world: CliWorld;
beforeEach(async () => {
  world = CliWorld.start();
});
afterEach(async () => world.stop());

const outgoing = (
  phase: PeeringState['phase'],
  reason?: string,
  message?: string,
): ForeignCluster['status'] => ({
  outgoing: {
    phase,
    since: '2026-01-01T00:00:00Z',
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
  },
});
/** The status goes through these, one at each write. */
const goThrough = (...states: ForeignCluster['status'][]): void => {
  world.reconcile(() => states.shift());
};

const dataOf = (secret: AnyObject | undefined): Record<string, string> =>
  (secret?.['data'] ?? {}) as Record<string, string>;

describe('with an ID', () => {
  test('the ForeignCluster is made, progress is shown, and the end is Established', async () => {
    goThrough(
      outgoing('Pending', 'WaitingForOffer', 'asked for an offer'),
      { ...outgoing('Offered'), link: { connected: true } },
      { ...outgoing('Established', 'AsExpected'), link: { connected: true } },
    );
    const { code, out, err } = await world.run(
      peerCommand,
      `milan.example.org:7443 --id ${MILAN} --namespaces shop,web`,
    );
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(new RegExp(`^ForeignCluster ${MILAN} made\n`));
    expect(out).toContain('link up; our pods over there: yes');
    expect(out).toMatch(/Done in [0-9.]+ s\n$/);
    expect(world.cluster(MILAN)?.spec).toEqual({
      clusterID: MILAN,
      endpoint: 'milan.example.org:7443',
      outgoing: 'Enabled',
      namespaces: ['shop', 'web'],
    });
  });

  test('the ID may be written as a fingerprint, in capitals, and the endpoint without its port', async () => {
    goThrough(outgoing('Established'));
    const fingerprint = (MILAN.match(/.{1,4}/g) ?? []).join('-').toUpperCase();
    const { code } = await world.run(peerCommand, `[fd00::1] --id ${fingerprint} --name milan --yes`);
    expect(code).toBe(0);
    expect(world.cluster('milan')?.spec).toMatchObject({ clusterID: MILAN, endpoint: '[fd00::1]:7443' });
  });

  test('what is known already is changed, and a forced end is over', async () => {
    world.seed(foreignClusters, {
      metadata: { name: 'mine', annotations: { [ANNOTATION_FORCE]: 'true', other: 'stays' } },
      spec: { clusterID: MILAN, outgoing: 'Disabled', incoming: 'Disabled', namespaces: ['old'] },
    });
    goThrough(outgoing('Established'));
    const { code, out } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN} --incoming Enabled`);
    expect(code).toBe(0);
    expect(out).toContain('ForeignCluster mine changed');
    expect(world.cluster('mine')).toMatchObject({
      metadata: { annotations: { other: 'stays' } },
      spec: {
        clusterID: MILAN,
        endpoint: '10.0.0.1:1',
        outgoing: 'Enabled',
        incoming: 'Enabled',
        namespaces: ['old'],
      },
    });
    expect(world.cluster('mine')?.metadata.annotations).not.toHaveProperty([ANNOTATION_FORCE]);
  });

  test('another endpoint is told, and the same command again changes nothing', async () => {
    world.reconcile(() => outgoing('Established'));
    const said = async (line: string): Promise<string | undefined> =>
      (await world.run(peerCommand, line)).out.split('\n')[0];
    await said(`10.0.0.1:1 --id ${MILAN}`);
    expect(await said(`10.0.0.1:1 --id ${MILAN}`)).toBe(`ForeignCluster ${MILAN} is unchanged`);
    expect(await said(`10.0.0.2:1 --id ${MILAN}`)).toBe(
      `ForeignCluster ${MILAN} changed: it is dialled at 10.0.0.2:1, no longer at 10.0.0.1:1`,
    );
    world.reconcile(() => ({ ...outgoing('Established'), link: { connected: true } }));
    expect(await said(`10.0.0.3:1 --id ${MILAN}`)).toContain('no longer at 10.0.0.2:1');
    expect(await said(`10.0.0.4:1 --id ${MILAN}`)).toBe(
      `ForeignCluster ${MILAN} changed: it is dialled at 10.0.0.4:1, no longer at 10.0.0.3:1. The link that is up stays, so nobody has tried that address yet: tributary doctor does`,
    );
  });

  test('one that discovery makes at the same moment is used', async () => {
    world.reconcile(() => outgoing('Established'));
    world.seed(foreignClusters, { metadata: { name: MILAN }, spec: { clusterID: MILAN } });
    world.api.fault({
      match: ({ method, path }) => method === 'GET' && path.endsWith('/foreignclusters'),
      emptyList: true,
    });
    const { code, out } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect({ code, out: out.split('\n')[0] }).toEqual({ code: 0, out: `ForeignCluster ${MILAN} changed` });
    expect(world.cluster(MILAN)?.spec?.endpoint).toBe('10.0.0.1:1');
  });

  test('what a peer says cannot play with the terminal', async () => {
    goThrough(outgoing('Denied', 'DeniedByPeer', '\u001b[2Jgone\nDone in 0 s\u202e'));
    const { out } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(out).toContain(
      'our pods over there: denied (since 00:00:00Z, DeniedByPeer): ?[2Jgone?Done in 0 s?',
    );
  });

  test('a denial is told with its reason', async () => {
    goThrough(outgoing('Denied', 'TokenExpired', 'the token has expired'));
    const { code, out, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(1);
    expect(out).toContain(
      'our pods over there: denied (since 00:00:00Z, TokenExpired): the token has expired',
    );
    expect(err).toContain(`kubectl describe foreigncluster ${MILAN}`);
  });

  test.each([
    ['NoPolicyMatches', `over there: tributary policy share NAME --peers ${ROME}`],
    ['DeniedByPeer', `If a person has denied it, over there: tributary approve peeringrequest ${ROME}`],
  ])('a denial (%s) says who can end it, and how', async (reason, command) => {
    world.seedOwn(ROME, configMaps);
    goThrough(outgoing('Denied', reason, 'no'));
    const { code, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(1);
    expect(err).toContain(command);
  });

  test('a denial of before is not the answer to a new wish', async () => {
    const denied = outgoing('Denied', 'TokenUsed');
    world.seed(foreignClusters, { metadata: { name: MILAN }, spec: { clusterID: MILAN }, status: denied });
    goThrough(denied);
    const running = world.run(peerCommand, `10.0.0.1:1 --token ${TOKEN}`);
    await soon('the old state is read again and again', () => world.api.count(/^GET .*milan/) > 4);
    world.setStatus(MILAN, { ...outgoing('Established'), observedGeneration: 9 });
    expect((await running).code).toBe(0);
  });

  test('who has to approve is told, and the exit code says that it is not over', async () => {
    world.seedOwn(ROME, configMaps);
    goThrough(outgoing('Pending', 'WaitingForApproval'));
    const theirs = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(theirs).toMatchObject({ code: 3, err: '' });
    expect(theirs.out).toContain(`over there: tributary approve peeringrequest ${ROME}`);
  });

  test('an offer that waits for our own word is told as such', async () => {
    goThrough(outgoing('Offered', 'WaitingForApproval'));
    const { code, out } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(3);
    expect(out).toContain(`You have to take its offer: tributary approve advertisement ${MILAN}`);
  });

  test('without our own use of it, a link is enough', async () => {
    goThrough({ ...outgoing('None'), link: { connected: true } });
    const { code } = await world.run(
      peerCommand,
      `10.0.0.1:1 --id ${MILAN} --outgoing Disabled --incoming Enabled`,
    );
    expect(code).toBe(0);
  });

  test('when time is up, what was written stays', async () => {
    goThrough(outgoing('Pending', 'EndpointUnreachable', 'nobody listens'));
    const { code, out, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN} --timeout 1s`);
    expect(code).toBe(1);
    expect(out.match(/EndpointUnreachable/g)).toHaveLength(1);
    expect(err).toContain(
      'The peering is not established after 1 s. The role cluster goes on trying. To see why it is not: kubectl',
    );
    expect(world.cluster(MILAN)).toBeDefined();
  });

  test('a state from before the spec was seen says nothing', async () => {
    world.seed(foreignClusters, {
      metadata: { name: MILAN },
      spec: { clusterID: MILAN },
      status: { ...outgoing('Established'), observedGeneration: 1 },
    });
    const { code, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN} --timeout 1s`);
    expect({ code, late: err.includes('is not established after') }).toEqual({ code: 1, late: true });
  });

  test('an API server that fails for a moment is borne', async () => {
    goThrough(outgoing('Established'));
    world.api.fault({
      match: ({ method, path }) => method === 'GET' && path.endsWith(MILAN),
      times: 3,
      status: 503,
    });
    expect((await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`)).code).toBe(0);
  });

  test('whoever has had enough is let go', async () => {
    const running = world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    await soon('made', () => world.cluster(MILAN) !== undefined);
    world.abort.abort(new Error('got SIGINT'));
    expect(await running).toMatchObject({
      code: 1,
      err: `ForeignCluster ${MILAN} stays, and the role cluster goes on. To see how far it is: tributary status. To end it: tributary unpeer ${MILAN}\ninterrupted\n`,
    });
  });
});

describe('what only a person can overcome is not waited for', () => {
  test('a token that the provider asks for', async () => {
    goThrough(outgoing('Pending', 'TokenRequired', 'the provider says: bring one'));
    const { code, out } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(3);
    expect(out).toContain('tributary token create');
    expect(out).toContain('--token -');
  });

  test('with a token, the provider may not have read it yet', async () => {
    goThrough(outgoing('Pending', 'TokenRequired'), outgoing('Established'));
    const { code } = await world.run(peerCommand, `10.0.0.1:1 --token ${TOKEN}`);
    expect(code).toBe(0);
  });

  test.each(['Invalid', 'Duplicate'])('%s', async (reason) => {
    goThrough(outgoing('None', reason, 'this is the ClusterID of our own cluster'));
    const { code, out, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(1);
    expect(out).toContain('our own cluster');
    expect(err).toContain('has no effect until somebody corrects it');
  });

  test('a peer that has sent nonsense may yet do better', async () => {
    goThrough(outgoing('Pending', 'Invalid'), outgoing('Established'));
    const { code } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(0);
  });
});

describe('with a token', () => {
  test('the token says whom to trust, and is kept in a Secret that goes with the ForeignCluster', async () => {
    goThrough(outgoing('Established'));
    const { code, out, err } = await world.run(peerCommand, `10.0.0.1:1 --token ${TOKEN}`);
    expect(code).toBe(0);
    expect(`${out}${err}${world.api.log.join()}`).not.toContain('sss');
    const cluster = world.cluster(MILAN);
    const { name = '', key = '' } = cluster?.spec?.joinTokenSecretRef ?? {};
    const secret = world.secret(name);
    expect(Buffer.from(dataOf(secret)[key] ?? '', 'base64').toString()).toBe(TOKEN);
    expect(secret?.metadata['ownerReferences']).toEqual([
      {
        apiVersion: 'tributary.dev/v1alpha1',
        kind: 'ForeignCluster',
        name: MILAN,
        uid: cluster?.metadata.uid,
      },
    ]);
  });

  test('the Secret is there before anything refers to it', async () => {
    goThrough(outgoing('Established'));
    await world.run(peerCommand, `10.0.0.1:1 --token ${TOKEN}`);
    const posts = world.api.log.filter((line) => line.startsWith('POST'));
    expect(posts.map((line) => line.split('/').at(-1))).toEqual(['secrets', 'foreignclusters']);
  });

  test('a newer token replaces the older one', async () => {
    const newer = `${MILAN}.gate.${'n'.repeat(43)}`;
    goThrough(outgoing('Established'), outgoing('Established'));
    await world.run(peerCommand, `10.0.0.1:1 --token ${TOKEN}`);
    world.piped = `${newer}\n`;
    const second = await world.run(peerCommand, ['10.0.0.1:1', '--token', '-']);
    expect(second.err).toBe('');
    const { name = '' } = world.cluster(MILAN)?.spec?.joinTokenSecretRef ?? {};
    const data = dataOf(world.secret(name));
    expect(Buffer.from(data['token'] ?? '', 'base64').toString()).toBe(newer);
  });

  test.each([
    ['10.0.0.1:1 --token abc', /join token is not of the form/],
    [`10.0.0.1:1 --token ${TOKEN} --id ${ROME}`, /the token is of cluster milan/],
    ['10.0.0.1:1 --token -', /reads the token from standard input/],
  ])('"%s" is refused before anybody is asked', async (line, why) => {
    const { code, err } = await world.run(peerCommand, line);
    expect(code).toBe(2);
    expect(err).toMatch(why);
    expect(world.opened).toEqual([]);
  });
});

describe('without ID and token', () => {
  const answering = (): void => {
    world.reconcile(({ spec }) =>
      spec?.clusterID === undefined
        ? { answeredBy: MILAN, ...outgoing('None', 'IdentityUnconfirmed') }
        : outgoing('Established'),
    );
  };

  test('the one that answers is shown, and a person confirms it', async () => {
    world.answers = ['y'];
    answering();
    const { code } = await world.run(peerCommand, 'milan.example.org:7443');
    expect(code).toBe(0);
    expect(world.asked).toHaveLength(1);
    expect(world.asked[0]).toContain(MILAN);
    expect(world.asked[0]).toContain(MILAN.slice(0, 4));
    expect(world.cluster('milan.example.org')?.spec?.clusterID).toBe(MILAN);
  });

  test.each([['n'], [''], ['yesterday'], [MILAN]])(
    '"%s" is no yes, and takes back what was made',
    async (answer) => {
      world.answers = [answer];
      answering();
      const { code, err } = await world.run(peerCommand, 'milan.example.org:7443');
      expect(code).toBe(1);
      expect(err).toContain('is deleted');
      expect(world.cluster('milan.example.org')).toBeUndefined();
    },
  );

  test('a no takes nothing away that was there before', async () => {
    world.answers = ['n'];
    world.seed(foreignClusters, { metadata: { name: 'old' }, spec: { endpoint: '10.0.0.1:1' } });
    answering();
    const { err } = await world.run(peerCommand, '10.0.0.1:1');
    expect(err).toContain('ForeignCluster old stays');
    expect(world.cluster('old')).toBeDefined();
  });

  test('a cluster that is known already is peered with under the name that it has', async () => {
    world.answers = ['y'];
    world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
    answering();
    const { code, out } = await world.run(peerCommand, '10.0.0.1:1 --namespaces shop');
    expect(code).toBe(0);
    expect(out).toContain('ForeignCluster mine changed');
    expect(world.cluster('mine')?.spec).toEqual({
      clusterID: MILAN,
      endpoint: '10.0.0.1:1',
      outgoing: 'Enabled',
      namespaces: ['shop'],
    });
    expect(world.cluster('10.0.0.1')).toBeUndefined();
  });

  test('of two that a person has made for one cluster, none is taken away', async () => {
    world.answers = ['y'];
    world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
    world.seed(foreignClusters, { metadata: { name: 'old' }, spec: { endpoint: '10.0.0.1:1' } });
    answering();
    const { code, err } = await world.run(peerCommand, '10.0.0.1:1');
    expect(code).toBe(1);
    expect(err).toContain('known already, as ForeignCluster mine');
    expect(err).toContain('kubectl delete foreigncluster old');
    expect(world.cluster('old')?.spec?.clusterID).toBeUndefined();
  });

  test('nobody answers in time', async () => {
    world.answers = ['y'];
    const { code, err } = await world.run(peerCommand, '10.0.0.1:1 --timeout 1s');
    expect(code).toBe(1);
    expect(err).toContain('No cluster has answered at 10.0.0.1:1 within 1 s.');
    expect(world.asked).toEqual([]);
  });

  test.each([
    ['10.0.0.1:1', /there is no terminal/],
    ['10.0.0.1:1 --yes', /--yes does not say which cluster is trusted/],
  ])('"%s" without a terminal is refused', async (line, why) => {
    const { code, err } = await world.run(peerCommand, line);
    expect(code).toBe(2);
    expect(err).toMatch(why);
    expect(world.opened).toEqual([]);
  });
});

test.each([
  ['', /ENDPOINT is missing, or --to-context/],
  [`a:1 b:2 --id ${MILAN}`, /unexpected argument "b:2"/],
  [`a:1 --id ${MILAN} --virtual-node x`, /unknown option "--virtual-node"/],
  ['a:1 --id', /--id needs a value/],
  ['a:1 --id --yes', /--id needs a value; "--yes" follows it/],
])('"%s" has another form than the usage says', async (line, why) => {
  const { code, err } = await world.run(peerCommand, line);
  expect(code).toBe(2);
  expect(err).toMatch(why);
  expect(err).toMatch(/^.+\nsee: tributary peer --help\n$/);
});

test.each([
  [`http://a --id ${MILAN}`, /not of the form HOST:PORT/],
  [`a:99999 --id ${MILAN}`, /not of the form HOST:PORT/],
  ['a:1 --id short', /is not a ClusterID/],
  [`a:1 --id ${MILAN} --outgoing yes`, /--outgoing must be one of Auto, Enabled, Disabled, not "yes"/],
  [`a:1 --id ${MILAN} --timeout soon`, /^--timeout: "soon" is not a duration/],
])('"%s" has a wrong value, and only that is told', async (line, why) => {
  const { code, err } = await world.run(peerCommand, line);
  expect(code).toBe(2);
  expect(err).toMatch(why);
  expect(err).toMatch(/^.+\nsee: tributary peer --help\n$/);
});

test('a name that stands for another cluster is not taken over', async () => {
  world.seed(foreignClusters, { metadata: { name: 'milan' }, spec: { clusterID: ROME } });
  const taken = await world.run(peerCommand, `a:1 --id ${MILAN} --name milan`);
  expect(taken.err).toContain(`ForeignCluster milan stands for another cluster, ${ROME}`);
  const renamed = await world.run(peerCommand, `a:1 --id ${ROME} --name rome`);
  expect(renamed.err).toContain('is known already, as ForeignCluster milan');
  expect(world.cluster('milan')?.spec).toEqual({ clusterID: ROME });
});
