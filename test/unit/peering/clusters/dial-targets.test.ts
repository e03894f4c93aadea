import { expect, test } from '@jest/globals';
import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import { type TargetInputs, targetsOf } from '../../../../src/peering/clusters/dial-targets.ts';
import type { DialTarget } from '../../../../src/peering/ports.ts';
import {
  acceptance,
  byPerson,
  discovered,
  linked,
  MILAN,
  NOW,
  OWN,
  ROME,
  sharing,
  sighting,
} from './support/objects.ts';

const targets = (clusters: ForeignCluster[], more: Partial<TargetInputs> = {}): DialTarget[] =>
  targetsOf({
    clusters,
    own: OWN,
    policies: { acceptance: [], sharing: [] },
    view: () => undefined,
    isPeered: () => false,
    now: NOW,
    ...more,
  });
const seen = { status: { sightings: { LAN: sighting('lan') } } };
const deleting = { deletionTimestamp: '2026-01-01T12:00:00Z' };
const lends = { policies: { acceptance: [], sharing: [sharing({ clusterIDs: [MILAN] })] } };
const takes = (spec: object = {}): Pick<TargetInputs, 'policies'> => ({
  policies: { acceptance: [acceptance({ networkKeySecretRef: { name: 'family' } }, spec)], sharing: [] },
});

test.each<[string, ForeignCluster, Partial<TargetInputs>, boolean]>([
  ['a stranger that no policy means', discovered(MILAN, {}, seen), {}, false],
  ['one that may hold our network key', discovered(MILAN, {}, seen), takes(), true],
  [
    'one whose offers only a person would take',
    discovered(MILAN, {}, seen),
    takes({ approval: 'Manual' }),
    false,
  ],
  ['one that may ask us', discovered(MILAN, {}, seen), lends, true],
  ['another than the one that may ask us', discovered(ROME, {}, seen), lends, false],
  [
    'switched off, both ways',
    discovered(MILAN, { outgoing: 'Disabled', incoming: 'Disabled' }, seen),
    lends,
    false,
  ],
  [
    'switched off, the way that a policy is about',
    discovered(MILAN, { incoming: 'Disabled' }, seen),
    lends,
    false,
  ],
  ['wanted by a person', discovered(MILAN, { outgoing: 'Enabled' }, seen), {}, true],
  ['offered by a person', discovered(MILAN, { incoming: 'Enabled' }, seen), {}, true],
  ['named by a person', byPerson('milan', { clusterID: MILAN, endpoint: 'a:1' }), {}, true],
  ['of a person, without identity', byPerson('milan', { endpoint: 'a:1' }), {}, true],
  ['of a person, without endpoint', byPerson('milan', { clusterID: MILAN }), {}, false],
  ['of a person, being deleted', byPerson('milan', { endpoint: 'a:1' }, deleting), {}, false],
  ['we ourselves', byPerson('us', { clusterID: OWN, endpoint: 'a:1' }), {}, false],
  [
    'being deleted, still peered',
    discovered(MILAN, {}, { ...seen, ...deleting }),
    { isPeered: () => true },
    true,
  ],
  ['being deleted', discovered(MILAN, { outgoing: 'Enabled' }, { ...seen, ...deleting }), {}, false],
])('dialled: %s', (_what, cluster, more, dialled) => {
  expect(targets([cluster], more)).toHaveLength(dialled ? 1 : 0);
});

test('one that is switched off is dialled once, to prove its identity', () => {
  const spec = { clusterID: MILAN, endpoint: 'a:1', outgoing: 'Disabled', incoming: 'Disabled' } as const;
  expect(targets([byPerson('milan', spec)])).toHaveLength(1);
  expect(targets([byPerson('milan', spec, { status: { clusterID: MILAN } })])).toEqual([]);
});

test('two objects about one cluster are one target, with the endpoints of both, a person’s first', () => {
  const clusters = [
    discovered(MILAN, {}, { status: { sightings: { LAN: sighting('lan'), WAN: sighting('old', -1) } } }),
    byPerson('milan', { clusterID: MILAN, endpoint: 'said:1' }),
  ];
  const endpoints = ['said:1', 'lan:6844'];
  expect(targets(clusters)).toEqual([{ name: 'milan', clusterID: MILAN, endpoints, chosenHere: endpoints }]);
});

test('endpoints of the peer’s own choice are told from those that people or the LAN have named', () => {
  const sightings = { LAN: sighting('lan'), WAN: sighting('wan'), Incoming: sighting('incoming') };
  const clusters = [
    discovered(MILAN, {}, { status: { sightings } }),
    byPerson('milan', { clusterID: MILAN, endpoint: 'said:1' }),
  ];
  const view = linked(MILAN, { peerEndpoints: ['told:1'] });
  const [target] = targets(clusters, { view: () => view });
  expect(target?.endpoints).toContain('told:1');
  expect(target?.endpoints).toContain('wan:6844');
  expect(target?.chosenHere).toEqual(['said:1', 'lan:6844']);
});

test('what nobody sees any more is dialled where there is a peering to keep', () => {
  const status = {
    sightings: { LAN: sighting('lan', -1) },
    link: { connected: false, dialledBy: 'Us' as const, endpoint: 'worked:1' },
  };
  const cluster = discovered(MILAN, { outgoing: 'Enabled' }, { status });
  expect(targets([cluster])).toEqual([]);
  expect(targets([cluster], { isPeered: () => true })).toMatchObject([
    { endpoints: ['worked:1', 'lan:6844'] },
  ]);
  const view = linked(MILAN, { peerEndpoints: ['told:1', 'not an endpoint'] });
  expect(targets([cluster], { view: () => view })).toMatchObject([
    { endpoints: ['milan:6844', 'worked:1', 'told:1', 'lan:6844'] },
  ]);
});

test('strangers are dialled by object, since their identity is not known', () => {
  const clusters = [
    byPerson('b', { endpoint: 'b:1' }),
    byPerson('a', { endpoint: 'a:1' }, { status: { clusterID: MILAN } }),
  ];
  expect(targets(clusters)).toEqual([
    { name: 'a', endpoints: ['a:1'], chosenHere: ['a:1'] },
    { name: 'b', endpoints: ['b:1'], chosenHere: ['b:1'] },
  ]);
});
