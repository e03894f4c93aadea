import { expect, test } from '@jest/globals';
import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import { ANNOTATION_FORCE } from '../../../../src/api/names.ts';
import {
  type ClusterIntent,
  type IntentInputs,
  intentOf,
  isKnown,
} from '../../../../src/peering/clusters/intent.ts';
import type { PeeringReport } from '../../../../src/peering/ports.ts';
import {
  acceptance,
  byPerson,
  discovered,
  linked,
  MILAN,
  NOW,
  sharing,
  sighting,
} from './support/objects.ts';

const intent = (clusters: ForeignCluster[], more: Partial<IntentInputs> = {}): ClusterIntent =>
  intentOf({
    clusterID: MILAN,
    clusters,
    view: undefined,
    policies: { acceptance: [], sharing: [] },
    joinToken: undefined,
    now: NOW,
    ...more,
  });
const policies = (
  acceptances: IntentInputs['policies']['acceptance'],
  sharings: IntentInputs['policies']['sharing'] = [],
): Pick<IntentInputs, 'policies'> => ({ policies: { acceptance: acceptances, sharing: sharings } });
const anyone = { anyone: true };

test.each([
  ['nobody says anything', discovered(MILAN), policies([]), false],
  ['an Automatic policy means it', discovered(MILAN), policies([acceptance(anyone)]), true],
  [
    'a Manual policy does not ask',
    discovered(MILAN),
    policies([acceptance(anyone, { approval: 'Manual' })]),
    false,
  ],
  ['a policy means another', discovered(MILAN), policies([acceptance({ clusterIDs: ['x'] })]), false],
  ['Enabled, without policy', discovered(MILAN, { outgoing: 'Enabled' }), policies([]), true],
  [
    'Disabled, in spite of one',
    discovered(MILAN, { outgoing: 'Disabled' }),
    policies([acceptance(anyone)]),
    false,
  ],
  [
    'it is being deleted',
    byPerson(
      'milan',
      { clusterID: MILAN, outgoing: 'Enabled' },
      { deletionTimestamp: '2026-01-01T12:00:00Z' },
    ),
    policies([acceptance(anyone)]),
    false,
  ],
])('wanted: %s', (_what, cluster, given, wanted) => {
  expect(intent([cluster], given).wanted).toBe(wanted);
});

test('the policy of highest precedence decides, also that nothing is asked', () => {
  const given = policies([
    acceptance(anyone),
    { ...acceptance({ clusterIDs: [MILAN] }, { approval: 'Manual', precedence: 1 }) },
  ]);
  expect(intent([discovered(MILAN)], given)).toMatchObject({
    wanted: false,
    policy: { spec: { precedence: 1 } },
  });
});

test('what the ForeignCluster says travels along', () => {
  const cluster = byPerson(
    'milan',
    { clusterID: MILAN, outgoing: 'Enabled', namespaces: ['shop'] },
    { annotations: { [ANNOTATION_FORCE]: 'true' }, labels: { site: 'milan' } },
  );
  expect(intent([cluster], { joinToken: 'secret' })).toMatchObject({
    subject: cluster,
    namespaces: ['shop'],
    joinToken: 'secret',
    incoming: 'Auto',
    force: true,
    facts: { labels: { site: 'milan' }, foundBy: ['Manual'] },
  });
});

test('incoming: Disabled needs no policy, deletion is as Disabled', () => {
  const given = policies([], [sharing(anyone)]);
  expect(intent([discovered(MILAN)], given)).toMatchObject({ incoming: 'Auto', sharingPolicy: {} });
  const off = intent([discovered(MILAN, { incoming: 'Disabled' })], given);
  expect(off.incoming).toBe('Disabled');
  expect(off.sharingPolicy).toBeUndefined();
  const deletionTimestamp = '2026-01-01T12:00:00Z';
  expect(
    intent([byPerson('m', { clusterID: MILAN, incoming: 'Enabled' }, { deletionTimestamp })], given),
  ).toMatchObject({
    incoming: 'Disabled',
    wanted: false,
  });
});

test('without an object nothing is wanted; only a linked peer may ask', () => {
  const given = policies([acceptance(anyone)], [sharing(anyone)]);
  expect(intent([], given)).toMatchObject({ wanted: false, incoming: 'Disabled' });
  const view = linked(MILAN, { dialledBy: 'Them' });
  expect(intent([], { ...given, view })).toMatchObject({
    wanted: false,
    incoming: 'Auto',
    sharingPolicy: {},
    facts: { foundBy: ['Incoming'] },
  });
});

test('sightings of all objects about a cluster count, expired ones do not', () => {
  const clusters = [
    byPerson('milan', { clusterID: MILAN }),
    discovered(MILAN, {}, { status: { sightings: { LAN: sighting('lan'), WAN: sighting('wan', -1) } } }),
  ];
  expect(intent(clusters).facts.foundBy).toEqual(['LAN', 'Manual']);
});

test('a lost link and a missed announcement end nothing while a peering lasts', () => {
  const given = policies(
    [acceptance({ networkKeySecretRef: { name: 'family' } })],
    [sharing({ anyone: true, discovery: ['LAN'] })],
  );
  const status = { sightings: { LAN: sighting('lan', -1) } };
  expect(intent([discovered(MILAN, {}, { status })], given)).toMatchObject({ wanted: false });
  const standing = { foundBy: ['LAN' as const], networkKeys: ['family'] };
  const peered = discovered(MILAN, {}, { status: { ...status, standing } });
  expect(intent([peered], given)).toMatchObject({ wanted: true, sharingPolicy: {} });
  // On a link, what is proved there is the whole truth: a key that was taken away is no longer held.
  expect(intent([peered], { ...given, view: linked(MILAN) })).toMatchObject({ wanted: false });
});

const acquainted = (
  clusters: ForeignCluster[],
  policies: IntentInputs['policies'],
  ...phases: PeeringReport['phase'][]
): boolean =>
  isKnown(
    intentOf({ clusterID: MILAN, clusters, view: linked(MILAN), policies, joinToken: undefined, now: NOW }),
    phases.map((phase) => ({ phase })),
  );
const none = { acceptance: [], sharing: [] };

test('a cluster that only came in is a stranger, also to a policy that selects anyone', () => {
  const anyone = { acceptance: [acceptance({ anyone: true })], sharing: [sharing({ anyone: true })] };
  expect(acquainted([], anyone)).toBe(false);
  expect(acquainted([discovered(MILAN)], none)).toBe(false);
  expect(acquainted([discovered(MILAN)], anyone, 'Pending', 'Offered')).toBe(false);
});

test('one that somebody here means, or with which something is agreed on, is none', () => {
  const chosen = { acceptance: [], sharing: [sharing({ clusterIDs: [MILAN] })] };
  expect(acquainted([discovered(MILAN)], chosen)).toBe(true);
  expect(acquainted([discovered(MILAN, { outgoing: 'Enabled' })], none)).toBe(true);
  expect(acquainted([discovered(MILAN, { incoming: 'Enabled' })], none)).toBe(true);
  expect(acquainted([byPerson('milan', { clusterID: MILAN })], none)).toBe(true);
  expect(acquainted([discovered(MILAN)], none, 'None', 'Established')).toBe(true);
  expect(acquainted([], none, 'Ending')).toBe(true);
});
