import { expect, test } from '@jest/globals';
import { LABEL_DISCOVERED } from '../../../../src/api/names.ts';
import { idOf, isDiscovered, primaryOf } from '../../../../src/peering/clusters/foreign-cluster.ts';
import { byPerson, discovered, MILAN, ROME } from './support/objects.ts';

const creationTimestamp = (hour: number): { creationTimestamp: string } => ({
  creationTimestamp: `2026-01-01T0${hour}:00:00Z`,
});
const deleting = { deletionTimestamp: '2026-01-01T12:00:00Z' };

test.each([
  ['what a person wants', byPerson('milan', { clusterID: MILAN }), MILAN],
  ['what discovery has made', discovered(MILAN), MILAN],
  ['a marked one without spec', { ...discovered(MILAN), spec: {} }, MILAN],
  [
    'a marked one of another name',
    byPerson('milan', {}, { labels: { [LABEL_DISCOVERED]: 'true' } }),
    undefined,
  ],
  ['a name alone is no identity', byPerson(MILAN), undefined],
  [
    'what has merely answered is not trusted',
    byPerson('milan', {}, { status: { clusterID: MILAN } }),
    undefined,
  ],
])('identity: %s', (_what, cluster, id) => {
  expect(idOf(cluster)).toBe(id);
});

test('an endpoint of a person makes a discovered one theirs', () => {
  expect(isDiscovered(discovered(MILAN))).toBe(true);
  expect(isDiscovered(discovered(MILAN, { endpoint: 'a:1' }))).toBe(false);
  expect(isDiscovered(byPerson('milan'))).toBe(false);
});

test.each([
  [
    'a person before discovery',
    [discovered(MILAN, {}, creationTimestamp(1)), byPerson('b', {}, creationTimestamp(2))],
    'b',
  ],
  [
    'the older of two persons',
    [byPerson('b', {}, creationTimestamp(2)), byPerson('c', {}, creationTimestamp(1))],
    'c',
  ],
  ['by name where they are of one age', [byPerson('b'), byPerson('a')], 'a'],
  ['one that stays before one that goes', [byPerson('a', {}, deleting), discovered(ROME)], ROME],
  ['one that goes where there is no other', [byPerson('a', {}, deleting)], 'a'],
])('primary: %s', (_what, clusters, name) => {
  expect(primaryOf(clusters)?.metadata.name).toBe(name);
  expect(primaryOf(clusters.toReversed())?.metadata.name).toBe(name);
});
