import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { acceptancePolicies } from '../../../../src/api/acceptance-policy.ts';
import { type ForeignCluster, foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { FINALIZER_PEERING, LABEL_DISCOVERED } from '../../../../src/api/names.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import {
  acceptance,
  byPerson,
  discovered,
  linked,
  MILAN,
  ROME,
  sharing,
  sighting,
} from './support/objects.ts';
import { ClustersWorld } from './support/world.ts';

let world: ClustersWorld;
beforeEach(async () => {
  world = await new ClustersWorld().up();
});
afterEach(async () => world.down());

const condition = (cluster: ForeignCluster | undefined, type: string): object =>
  cluster?.status?.conditions?.find((one) => one.type === type) ?? {};
const established = { phase: 'Established', reason: 'AsExpected', message: 'in use' } as const;

test('a cluster in sight, then linked, then used: each step is visible, and an event', async () => {
  world.seed(acceptancePolicies, acceptance({ anyone: true }));
  world.seed(foreignClusters, discovered(MILAN, {}, { status: { sightings: { LAN: sighting('lan') } } }));
  await world.wait('it is dialled', () => world.links.targets[0]?.endpoints[0] === 'lan:6844');
  const asked = await world.until(MILAN, ({ status }) => status?.outgoing?.phase === 'Pending');
  expect(asked.status).toMatchObject({
    foundBy: 'LAN',
    link: { connected: false },
    outgoing: { reason: 'SettingUp' },
    incoming: { phase: 'None', reason: 'NoPolicyMatches' },
  });
  expect(condition(asked, 'IdentityVerified')).toMatchObject({ status: 'Unknown' });
  expect(asked.metadata.finalizers).toEqual([FINALIZER_PEERING]);
  world.links.up(linked(MILAN));
  const known = await world.until(MILAN, ({ status }) => status?.link?.connected === true);
  expect(known.status).toMatchObject({
    clusterID: MILAN,
    clusterName: 'Milan',
    outgoing: { reason: 'WaitingForOffer' },
  });
  expect(condition(known, 'IdentityVerified')).toMatchObject({ status: 'True' });
  world.outgoing.say(MILAN, established);
  const used = await world.until(MILAN, ({ status }) => status?.outgoing?.phase === 'Established');
  expect(condition(used, 'OutgoingEstablished')).toMatchObject({ status: 'True', message: 'in use' });
  expect(used.status?.standing).toEqual({ foundBy: ['LAN'] });
  expect(world.events).toEqual([
    `${MILAN} Normal OutgoingPending: None -> Pending: SettingUp, being dialled`,
    `${MILAN} Normal OutgoingEstablished: Pending -> Established: AsExpected, in use`,
  ]);
});

test('every cluster that a policy could mean is dialled, not only the first', async () => {
  world.seed(acceptancePolicies, acceptance({ networkKeySecretRef: { name: 'family' } }));
  for (const id of [MILAN, ROME])
    world.seed(foreignClusters, discovered(id, {}, { status: { sightings: { LAN: sighting('lan') } } }));
  await world.wait('both are dialled', () => world.links.targets.length === 2);
});

test('nothing is written when nothing differs; what moves all the time is not looked at', async () => {
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, endpoint: 'a:1', outgoing: 'Enabled' }));
  world.links.up(linked(MILAN, { rttMs: 1 }));
  world.outgoing.say(MILAN, established);
  await world.until('milan', ({ status }) => status?.outgoing?.phase === 'Established');
  const before = await world.quiet();
  for (let rttMs = 2; rttMs < 20; rttMs++) world.links.up(linked(MILAN, { rttMs }));
  world.outgoing.say(MILAN, { ...established });
  await world.patch('milan', { metadata: { annotations: { note: 'x' } } });
  expect(await world.quiet()).toBe(before + 1);
  await world.end();
  await world.begin();
  expect(await world.quiet()).toBe(before + 1);
});

test('an endpoint without identity is trusted with nothing; the message says what to do', async () => {
  world.seed(
    foreignClusters,
    byPerson('milan', { endpoint: 'a:1', outgoing: 'Enabled', incoming: 'Enabled' }),
  );
  await world.wait('it is dialled', () => world.links.targets.length === 1);
  expect(world.links.targets).toMatchObject([{ name: 'milan', endpoints: ['a:1'] }]);
  world.links.fails('milan', { reason: 'IdentityUnconfirmed', message: 'x', answeredBy: MILAN });
  const cluster = await world.until('milan', ({ status }) =>
    (status?.conditions ?? []).some(({ message }) => message.includes(MILAN)),
  );
  expect(condition(cluster, 'IdentityVerified')).toMatchObject({
    status: 'False',
    reason: 'IdentityUnconfirmed',
    message: expect.stringContaining(
      `kubectl patch foreigncluster milan --type merge -p '{"spec":{"clusterID":"${MILAN}"}}'`,
    ) as unknown,
  });
  expect(cluster.status?.clusterID).toBeUndefined();
  expect(cluster.status?.answeredBy).toBe(MILAN);
  expect(cluster.status?.outgoing).toMatchObject({ phase: 'None', reason: 'IdentityUnconfirmed' });
  // A link of that cluster does not make it the one that is wanted.
  world.links.up(linked(MILAN, { dialledBy: 'Them' }));
  await world.until(MILAN, ({ status }) => status?.foundBy === 'Incoming');
  expect(world.clusters.intent(MILAN)).toMatchObject({ wanted: false, incoming: 'Auto' });
  await world.patch('milan', { spec: { clusterID: MILAN } });
  const trusted = await world.until('milan', ({ status }) => status?.clusterID === MILAN);
  expect(trusted.status?.answeredBy).toBeUndefined();
  expect(world.clusters.intent(MILAN)).toMatchObject({
    wanted: true,
    subject: { metadata: { name: 'milan' } },
  });
});

test('somebody else behind the endpoint is a condition and a warning', async () => {
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, endpoint: 'a:1' }));
  await world.wait('it is dialled', () => world.links.targets.length === 1);
  world.links.fails('milan', { reason: 'WrongIdentity', message: `${ROME} answers`, answeredBy: ROME });
  const cluster = await world.until('milan', ({ status }) =>
    (status?.conditions ?? []).some(({ reason }) => reason === 'WrongIdentity'),
  );
  expect(condition(cluster, 'IdentityVerified')).toMatchObject({
    status: 'False',
    message: `${ROME} answers`,
  });
  await world.wait('it is told', () => world.events.includes(`milan Warning WrongIdentity: ${ROME} answers`));
});

test('two objects about one cluster make one peering; the other says so', async () => {
  world.seed(foreignClusters, discovered(MILAN, {}, { status: { sightings: { LAN: sighting('lan') } } }));
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, outgoing: 'Enabled' }));
  const duplicate = await world.until(MILAN, ({ status }) => status?.outgoing?.reason === 'Duplicate');
  expect(duplicate.status).toMatchObject({
    foundBy: 'LAN',
    outgoing: {
      phase: 'None',
      message: expect.stringContaining('milan stands for the same cluster') as unknown,
    },
    incoming: { phase: 'None', reason: 'Duplicate' },
  });
  expect(await world.until('milan', ({ status }) => status?.foundBy !== undefined)).toMatchObject({
    status: { foundBy: 'LAN,Manual' },
  });
  await world.wait('one of them is dialled', () => world.links.targets[0]?.endpoints.length === 1);
  expect(world.links.targets).toMatchObject([{ name: 'milan', clusterID: MILAN, endpoints: ['lan:6844'] }]);
  expect(world.clusters.intent(MILAN).wanted).toBe(true);
  // The other takes over as soon as the one that counts goes.
  await world.remove('milan');
  await world.gone('milan');
  await world.until(MILAN, ({ status }) => status?.outgoing?.reason === 'NoPolicyMatches');
  expect(world.clusters.intent(MILAN).wanted).toBe(false);
});

test('a peer that comes by itself gets an object; it is forgotten some time after it has gone', async () => {
  world.links.up(linked(MILAN, { dialledBy: 'Them', peerEndpoints: ['told:1', 'no endpoint'] }));
  const cluster = await world.until(MILAN, ({ status }) => status?.sightings?.Incoming !== undefined);
  expect(cluster).toMatchObject({
    metadata: { labels: { [LABEL_DISCOVERED]: 'true' } },
    spec: { clusterID: MILAN, outgoing: 'Auto', incoming: 'Auto' },
    status: { foundBy: 'Incoming', clusterID: MILAN, sightings: { Incoming: { endpoints: ['told:1'] } } },
  });
  // While it is linked, its sighting is renewed.
  await world.clock.advance(3 * 3_600_000);
  await world.until(
    MILAN,
    ({ status }) => Date.parse(status?.sightings?.Incoming?.expires ?? '') > world.clock.now(),
  );
  world.links.down(MILAN);
  await world.until(MILAN, ({ status }) => status?.link?.connected === false);
  await world.quiet();
  await world.clock.advance(1_000_000);
  expect(world.stored(MILAN)).toBeDefined();
  await world.clock.advance(2_700_000);
  await world.gone(MILAN);
});

test('a link that we have opened makes no object: nothing here wants it', async () => {
  world.links.up(linked(MILAN));
  world.links.up(linked(ROME, { dialledBy: 'Them' }));
  await world.until(ROME, ({ status }) => status?.foundBy === 'Incoming');
  expect(world.stored(MILAN)).toBeUndefined();
});

test('an unseen cluster is forgotten, unless it is peered', async () => {
  const status = { sightings: { LAN: sighting('lan', 90) } };
  world.seed(foreignClusters, discovered(MILAN, {}, { status }));
  world.seed(foreignClusters, discovered(ROME, {}, { status }));
  world.incoming.say(ROME, established);
  await world.until(ROME, ({ status: now }) => now?.incoming?.phase === 'Established');
  await world.until(MILAN, ({ status: now }) => now?.foundBy === 'LAN');
  await world.quiet();
  await world.clock.advance(89_000);
  expect(world.stored(MILAN)).toBeDefined();
  await world.clock.advance(2000);
  await world.gone(MILAN);
  const kept = await world.until(ROME, ({ status: now }) => now?.foundBy === '');
  expect(kept.status?.standing).toEqual({ foundBy: ['LAN'] });
  world.incoming.say(ROME, { phase: 'None' });
  await world.gone(ROME);
});

test('a sighting at the last moment keeps a cluster alive', async () => {
  world.seed(foreignClusters, discovered(MILAN, {}, { status: { sightings: { LAN: sighting('lan', 90) } } }));
  await world.until(MILAN, ({ status }) => status?.foundBy === 'LAN');
  await world.quiet();
  let refused = false;
  world.server.fault({
    match: ({ method }) => {
      if (method !== 'DELETE' || refused) return false;
      // Discovery writes between our look and our deletion.
      const object = world.stored(MILAN);
      const status = { ...object?.status, sightings: { LAN: sighting('lan', 600) } };
      world.server.storage.update('foreignclusters.tributary.dev', { ...object, status } as never);
      refused = true;
      return false;
    },
  });
  await world.clock.advance(91_000);
  await world.wait('it was about to be deleted', () => refused);
  await world.clock.advance(1000);
  await world.until(MILAN, ({ status }) => status?.foundBy === 'LAN');
  await world.quiet();
  expect(world.stored(MILAN)).toBeDefined();
});

test('deletion ends both peerings before the object goes', async () => {
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, endpoint: 'a:1', outgoing: 'Enabled' }));
  world.outgoing.say(MILAN, established);
  world.incoming.say(MILAN, established);
  await world.until('milan', ({ metadata }) => metadata.finalizers !== undefined);
  await world.wait('it is dialled', () => world.links.targets.length === 1);
  const told: string[] = [];
  world.clusters.onChange((clusterID) => told.push(clusterID));
  await world.remove('milan');
  await world.wait('its intent is told to have changed', () => told.includes(MILAN));
  expect(world.clusters.intent(MILAN)).toMatchObject({ wanted: false, incoming: 'Disabled' });
  world.outgoing.say(MILAN, { phase: 'Ending' });
  await world.until('milan', ({ status }) => status?.outgoing?.phase === 'Ending');
  expect(world.links.targets).toHaveLength(1);
  world.outgoing.say(MILAN, { phase: 'None' });
  await world.until('milan', ({ status }) => status?.outgoing?.phase === 'None');
  world.incoming.say(MILAN, { phase: 'Denied' });
  await world.gone('milan');
  await world.wait('it is not dialled any more', () => world.links.targets.length === 0);
});

test('deletion takes a bounded time, also where a peering does not come down', async () => {
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, endpoint: 'a:1', outgoing: 'Enabled' }));
  world.outgoing.say(MILAN, established);
  await world.until('milan', ({ metadata }) => metadata.finalizers !== undefined);
  await world.remove('milan');
  world.outgoing.say(MILAN, { phase: 'Ending', message: 'waiting for pods' });
  await world.until('milan', ({ status }) => status?.outgoing?.phase === 'Ending');
  await world.quiet();
  await world.clock.advance(59_000);
  expect(world.stored('milan')).toBeDefined();
  await world.clock.advance(1100);
  await world.gone('milan');
});

test('a wish that is taken back takes the finalizer with it', async () => {
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, outgoing: 'Enabled' }));
  await world.until('milan', ({ metadata }) => metadata.finalizers?.length === 1);
  await world.patch('milan', { spec: { outgoing: 'Disabled' } });
  const cluster = await world.until('milan', ({ metadata }) => metadata.finalizers === undefined);
  await world.until('milan', ({ status }) => status?.outgoing?.reason === 'NotWanted');
  expect(cluster.spec?.outgoing).toBe('Disabled');
});

test('discovery and we write the same object without undoing each other', async () => {
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, endpoint: 'a:1' }));
  const writes = Array.from({ length: 20 }, async (_, index) => {
    world.links.up(linked(MILAN, { endpoint: `a:${index + 1}` }));
    const LAN = sighting(`lan${index}`, 60 + index);
    await world.patch('milan', { status: { sightings: { LAN } } }, 'status');
  });
  await Promise.all(writes);
  await world.clock.advance(60_000 - 1);
  const cluster = await world.until('milan', ({ status }) => status?.link?.endpoint === 'a:20');
  expect(cluster.status?.sightings?.LAN).toBeDefined();
  await world.until('milan', ({ status }) => status?.foundBy === 'LAN,Manual');
});

test('strangers that come in numbers: the oldest that only came by itself makes room', async () => {
  await world.down();
  world = await new ClustersWorld({ mostIdle: 3 }).up();
  const ids = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(26));
  for (const id of ids) {
    world.links.up(linked(id, { dialledBy: 'Them' }));
    await world.until(id, ({ status }) => status?.foundBy === 'Incoming');
    world.links.down(id);
    await world.until(id, ({ status }) => status?.link?.connected === false);
    await world.clock.advance(1000);
  }
  const names = world.server.storage
    .list('foreignclusters.tributary.dev')
    .map(({ metadata }) => metadata.name);
  expect(names).toEqual(ids.slice(2));
});

test('a peer that uses us gets its object back, however many strangers there are', async () => {
  await world.down();
  world = await new ClustersWorld({ mostIdle: 0 }).up();
  world.incoming.say(ROME, established);
  world.links.up(linked(ROME, { dialledBy: 'Them' }));
  await world.until(ROME, ({ status }) => status?.foundBy === 'Incoming');
});

test('a policy that comes or goes changes intents and targets at once', async () => {
  const LAN = sighting('lan', 3600);
  world.seed(foreignClusters, discovered(MILAN, {}, { status: { sightings: { LAN } } }));
  await world.until(MILAN, ({ status }) => status?.outgoing?.reason === 'NoPolicyMatches');
  expect(world.links.targets).toEqual([]);
  const told: string[] = [];
  world.clusters.onChange((clusterID) => told.push(clusterID));
  world.seed(acceptancePolicies, acceptance({ clusterIDs: [MILAN] }));
  await world.wait('it is dialled', () => world.links.targets.length === 1);
  expect(told).toContain(MILAN);
  expect(world.clusters.intent(MILAN).wanted).toBe(true);
  world.server.storage.remove('acceptancepolicies.tributary.dev', 'taken');
  await world.wait('it is not dialled any more', () => world.links.targets.length === 0);
  expect(world.clusters.intent(MILAN).wanted).toBe(false);
  await world.until(MILAN, ({ status }) => status?.outgoing?.phase === 'None');
});

test('a SharingPolicy tells no intent: lending follows it itself; the status changes all the same', async () => {
  const LAN = sighting('lan', 3600);
  world.seed(foreignClusters, discovered(MILAN, {}, { status: { sightings: { LAN } } }));
  world.links.up(linked(ROME));
  await world.until(MILAN, ({ status }) => status?.incoming?.reason === 'NoPolicyMatches');
  const told: string[] = [];
  let keys = 0;
  world.clusters.onChange((clusterID) => told.push(clusterID));
  world.clusters.onNetworkKeys(() => keys++);
  world.seed(sharingPolicies, sharing({ clusterIDs: [MILAN] }));
  await world.until(MILAN, ({ status }) => status?.incoming?.reason === 'AsExpected');
  expect(world.clusters.intent(MILAN).sharingPolicy?.metadata.name).toBe('lent');
  expect({ told, keys }).toEqual({ told: [], keys: 1 });
  world.seed(acceptancePolicies, acceptance({ clusterIDs: [MILAN] }));
  await world.wait('it is dialled', () => world.links.targets.length === 1);
  expect({ told, keys }).toEqual({ told: [MILAN, ROME], keys: 2 });
});

test('an established peering outlives a change of the object that counts, also while there is no link', async () => {
  world.seed(acceptancePolicies, acceptance({ networkKeySecretRef: { name: 'family' } }));
  const LAN = sighting('lan', 3600);
  world.seed(foreignClusters, discovered(MILAN, {}, { status: { sightings: { LAN } } }));
  world.links.up(linked(MILAN, { networkKeys: ['family'] }));
  world.outgoing.say(MILAN, established);
  await world.until(MILAN, ({ status }) => status?.standing?.networkKeys?.[0] === 'family');
  world.links.down(MILAN);
  await world.until(MILAN, ({ status }) => status?.link?.connected === false);
  const lost: string[] = [];
  world.clusters.onChange((clusterID) => {
    if (!world.clusters.intent(clusterID).wanted) lost.push(clusterID);
  });
  const subject = (): string | undefined => world.clusters.intent(MILAN).subject?.metadata.name;
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN }));
  await world.until('milan', ({ status }) => status?.standing?.networkKeys?.[0] === 'family');
  await world.until(MILAN, ({ status }) => status?.standing === undefined);
  expect(subject()).toBe('milan');
  await world.remove('milan');
  await world.gone('milan');
  await world.until(MILAN, ({ status }) => status?.standing?.networkKeys?.[0] === 'family');
  expect(subject()).toBe(MILAN);
  expect(lost).toEqual([]);
});

test('whichever write fails, and wherever the process is killed, the end is the same', async () => {
  const seed = (): void => {
    world.seed(acceptancePolicies, acceptance({ clusterIDs: [MILAN] }));
    world.seed(
      foreignClusters,
      discovered(MILAN, {}, { status: { sightings: { LAN: sighting('lan', 3600) } } }),
    );
    world.links.up(linked(MILAN));
    world.links.up(linked(ROME, { dialledBy: 'Them', peerEndpoints: ['rome:1'] }));
    world.outgoing.say(MILAN, established);
  };
  const isWrite = ({ method }: { method: string }): boolean => method !== 'GET';
  const isDone = (): boolean =>
    world.stored(MILAN)?.status?.standing !== undefined &&
    world.stored(ROME)?.status?.sightings?.Incoming !== undefined;
  for (let nth = 1; nth <= 4; nth++) {
    for (const kill of [false, true]) {
      await world.down();
      world = await new ClustersWorld().up();
      let count = 0;
      let failed = false;
      world.server.fault({
        match: (request) => isWrite(request) && ++count === nth && (failed = true),
        status: 500,
      });
      seed();
      await world.wait(`write ${nth} fails`, () => failed);
      if (kill) {
        await world.end();
        await world.begin();
      }
      await world.wait('all is as it should be', isDone);
      expect(world.stored(MILAN)).toMatchObject({
        metadata: { finalizers: [FINALIZER_PEERING] },
        status: { outgoing: { phase: 'Established' }, foundBy: 'LAN', clusterID: MILAN },
      });
    }
  }
});

test('a stranger that describes itself anew without end is written seldom, and as it is in the end', async () => {
  world.links.up(linked(MILAN, { dialledBy: 'Them', clusterName: 'milan' }));
  await world.until(MILAN, ({ status }) => status?.clusterName === 'milan');
  const before = await world.quiet();
  for (let round = 0; round < 150; round++) {
    world.links.up(linked(MILAN, { dialledBy: 'Them', clusterName: `milan-${round}` }));
    await world.clock.advance(1000);
  }
  expect((await world.quiet()) - before).toBeLessThan(35);
  world.links.up(linked(MILAN, { dialledBy: 'Them', clusterName: 'the-last' }));
  const isLast = (): boolean => world.stored(MILAN)?.status?.clusterName === 'the-last';
  await world.clock.until('the last name is shown', isLast, 600_000);
});
