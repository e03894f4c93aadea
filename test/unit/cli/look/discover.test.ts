import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { ageOf, discoverCommand } from '../../../../src/cli/look/discover.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const TURIN = 'turin'.padEnd(26, 'b');

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
});
afterEach(async () => world.stop());

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
const HOUR_MS = 3_600_000;

function twoClusters(): void {
  const sighting = {
    endpoints: ['10.0.0.1:7443'],
    clusterName: 'Milan',
    firstSeen: ago(2 * HOUR_MS + 60_000),
  };
  world.seed(foreignClusters, {
    metadata: { name: MILAN },
    spec: { clusterID: MILAN },
    status: { foundBy: 'LAN', sightings: { LAN: { ...sighting, expires: ago(-HOUR_MS) } } },
  });
  world.seed(foreignClusters, {
    metadata: { name: 'turin' },
    spec: { clusterID: TURIN, endpoint: 'turin.example.org:7443' },
    status: { clusterName: 'tu\u202Erin', foundBy: 'WAN,Manual', outgoing: { phase: 'Established' } },
  });
}

test('who can be seen, how, for how long, and the command that peers with it', async () => {
  twoClusters();
  const { code, out, err } = await world.run(discoverCommand, '');
  expect([code, err]).toEqual([0, '']);
  const [head, milan, turin, ...rest] = out.split('\n');
  expect(head).toMatch(/^NAME +CLUSTER +FOUND BY +ENDPOINT +SEEN FOR +PEERING$/);
  expect(milan).toMatch(new RegExp(`^${MILAN} +Milan +LAN +10\\.0\\.0\\.1:7443 +2h +no$`));
  expect(turin).toMatch(/^turin +tu\?rin +WAN,Manual +turin\.example\.org:7443 +\S+ +outgoing Established$/);
  expect(rest).toEqual(['', 'TO PEER WITH THEM', `tributary peer 10.0.0.1:7443 --id ${MILAN}`, '']);
});

test('one way of discovery alone, and IDs', async () => {
  twoClusters();
  expect((await world.run(discoverCommand, '--lan')).out).not.toContain('turin');
  const wide = (await world.run(discoverCommand, '--wan -o wide')).out;
  expect(wide).toContain(TURIN);
  expect(wide).not.toContain(MILAN);
  const json = JSON.parse((await world.run(discoverCommand, '-o json')).out);
  expect(json).toMatchObject([{ clusterID: MILAN, foundBy: ['LAN'], peering: 'no' }, { command: '' }]);
});

test('a cluster that somebody has parted from says so', async () => {
  const spec = { clusterID: MILAN, endpoint: 'a:1', outgoing: 'Disabled', incoming: 'Disabled' };
  world.seed(foreignClusters, { metadata: { name: 'milan' }, spec });
  const { out } = await world.run(discoverCommand, '');
  expect(out).toContain('not wanted (unpeer)');
  expect(out).toContain(`tributary peer a:1 --id ${MILAN}\n`);
});

test('nobody is seen', async () => {
  expect((await world.run(discoverCommand, '')).out).toMatch(/^No other cluster is seen\./);
});

test.each([
  ['2026-01-01T00:00:00Z', '0s'],
  ['2025-12-31T23:59:01Z', '59s'],
  ['2025-12-31T22:01:00Z', '1h'],
  ['2025-12-22T00:00:00Z', '10d'],
  ['nonsense', '-'],
])('the age of %s is %s', (time, age) => {
  expect(ageOf(time, Date.parse('2026-01-01T00:00:00Z'))).toBe(age);
});
