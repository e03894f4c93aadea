import { expect, test } from '@jest/globals';
import { ANNOTATION_OUTGOING } from '../../../../src/api/names.ts';
import { isForgettable, roomFor } from '../../../../src/peering/clusters/discovered.ts';
import { byPerson, discovered, MILAN, NOW, ROME, sighting } from './support/objects.ts';

const idle = { isInUse: false, now: NOW };
const annotations = { [ANNOTATION_OUTGOING]: 'Enabled' };
const lan = (seconds: number): object => ({ status: { sightings: { LAN: sighting('lan', seconds) } } });

test.each([
  ['seen by nobody', discovered(MILAN), true],
  ['seen too long ago', discovered(MILAN, {}, lan(0)), true],
  ['seen', discovered(MILAN, {}, lan(1)), false],
  [
    'with an end that cannot be read',
    discovered(MILAN, {}, { status: { sightings: { LAN: { ...sighting('a'), expires: 'soon' } } } }),
    true,
  ],
  ['just made', discovered(MILAN, {}, { creationTimestamp: new Date(NOW - 59_000).toISOString() }), false],
  ['of a person', byPerson('milan', { clusterID: MILAN }), false],
  ['given an endpoint by a person', discovered(MILAN, { endpoint: 'a:1' }), false],
  ['switched off by a person', discovered(MILAN, { incoming: 'Disabled' }), false],
  ['wanted by a person', discovered(MILAN, { outgoing: 'Enabled' }), false],
  ['wanted by its SearchDomain', discovered(MILAN, { outgoing: 'Enabled' }, { annotations }), true],
  ['taken off again by a person', discovered(MILAN, { outgoing: 'Auto' }, { annotations }), false],
  ['given a label by a person', discovered(MILAN, {}, { labels: { site: 'milan' } }), false],
  ['given namespaces', discovered(MILAN, { namespaces: ['shop'] }), false],
  ['being deleted', discovered(MILAN, {}, { deletionTimestamp: '2026-01-01T12:00:00Z' }), false],
])('forgotten: %s', (_what, cluster, forgotten) => {
  expect(isForgettable(cluster, idle)).toBe(forgotten);
  expect(isForgettable(cluster, { ...idle, isInUse: true })).toBe(false);
});

test('room is made by forgetting the oldest of those that only came by themselves', () => {
  const created = (hour: number): object => ({ creationTimestamp: `2026-01-01T0${hour}:00:00Z` });
  const incoming = { status: { sightings: { Incoming: sighting('in') } } };
  const clusters = [
    discovered('a', {}, { ...created(1), ...lan(60) }),
    discovered('b', {}, { ...created(3), ...incoming }),
    discovered('c', {}, { ...created(2), ...incoming }),
    discovered('d', { incoming: 'Disabled' }, { ...created(1), ...incoming }),
    discovered('used', {}, { ...created(1), ...incoming }),
    byPerson('e'),
  ];
  const room = (most: number, given = clusters): object =>
    roomFor(given, ({ metadata }) => metadata.name === 'used', { most, now: NOW });
  expect(room(5)).toEqual({ hasRoom: true });
  expect(room(4)).toMatchObject({ hasRoom: true, evict: { metadata: { name: 'c' } } });
  expect(room(1, [discovered(ROME, {}, lan(60))])).toEqual({ hasRoom: false });
});
