import { describe, expect, test } from '@jest/globals';

import { type ForeignCluster, type Sighting } from '../../../src/api/foreign-cluster.ts';
import { LABEL_DISCOVERED } from '../../../src/api/names.ts';
import type { Candidate } from '../../../src/discovery/candidates.ts';
import { inOrder, nextSighting, sightingPatch } from '../../../src/discovery/sighting.ts';
import { candidateOf, MILAN, ROME } from './support/candidates.ts';

describe('decisions', () => {
  const object = (
    name: string,
    spec: ForeignCluster['spec'],
    meta: Partial<ForeignCluster['metadata']> = {},
  ): ForeignCluster => ({
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', ...meta },
    ...(spec && { spec }),
  });

  test('a person’s object counts before a discovered one, then the older, and one of another cluster not at all', () => {
    const spec = { clusterID: MILAN };
    const labels = { [LABEL_DISCOVERED]: 'true' };
    const person = object('z', spec);
    const older = object('y', spec, { creationTimestamp: '2025-01-01T00:00:00Z' });
    const found = object(MILAN, spec, { labels, creationTimestamp: '2024-01-01T00:00:00Z' });
    const adopted = object('x', { ...spec, endpoint: 'a:1' }, { labels });
    const leaving = object('a', spec, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const other = object('b', { clusterID: ROME });
    expect(inOrder(MILAN, [leaving, found, other, person, adopted, older])).toEqual([
      older,
      adopted,
      person,
      found,
      leaving,
    ]);
  });

  const now = Date.parse('2026-01-01T00:00:00Z');
  const time = { now, validityMs: 300_000 };
  const known = nextSighting(candidateOf(MILAN), undefined, time) as Sighting;

  const isWritten = (said: Partial<Candidate>, before: Partial<Sighting>, at = now): boolean =>
    nextSighting(candidateOf(MILAN, said), { ...known, ...before }, { now: at, validityMs: 300_000 }) !==
    undefined;
  test.each([
    ['the same', isWritten({}, {}), false],
    ['the same with much time left', isWritten({}, {}, now + 149_000), false],
    ['the same with little time left', isWritten({}, {}, now + 151_000), true],
    ['another endpoint', isWritten({ endpoints: ['b:1', '10.1.0.1:6443'] }, {}), true],
    ['a name', isWritten({ clusterName: 'Milan' }, {}), true],
    ['no name any more', isWritten({}, { clusterName: 'Milan' }), true],
    ['a time far ahead, of a clock that is wrong', isWritten({}, { expires: '2099-01-01T00:00:00Z' }), true],
    ['a time that is none', isWritten({}, { expires: 'soon' }), true],
  ])('%s: whether it is written', (_what, found, wanted) => {
    expect(found).toBe(wanted);
  });

  test('an expired sighting is a new one', () => {
    const late = now + 400_000;
    expect(nextSighting(candidateOf(MILAN), known, { now: late, validityMs: 300_000 })?.firstSeen).toBe(
      '2026-01-01T00:06:40Z',
    );
  });

  test('what the API server would refuse is left out', () => {
    const endpoints = [
      'bad',
      'a:0',
      '10.0.0.1:99999',
      '[fe80::1%eth0]:1',
      ...Array.from({ length: 40 }, (_, i) => `10.0.0.${i}:1`),
    ];
    const odd = candidateOf(MILAN, { clusterName: 'evil\u202ename', endpoints });
    const made = nextSighting(odd, undefined, time);
    expect(made).not.toHaveProperty('clusterName');
    expect(made?.endpoints).toHaveLength(16);
    expect(made?.endpoints[0]).toBe('[fe80::1%eth0]:1');
  });

  test('a patch names one key', () => {
    expect(sightingPatch('LAN', null)).toEqual({ status: { sightings: { LAN: null } } });
    expect(
      Object.keys((sightingPatch('LAN', known) as { status: { sightings: object } }).status.sightings),
    ).toEqual(['LAN']);
  });
});
