import { expect, test } from '@jest/globals';
import { CLUSTER_NAME_PATTERN, ENDPOINT_PATTERN, REASON_PATTERN } from '../../../../src/api/limits.ts';
import type { ForeignClusterFacts } from '../../../../src/peering/clusters/conditions.ts';
import type { ClusterIntent } from '../../../../src/peering/clusters/intent.ts';
import { forgeStatus, newsOf, ownPart } from '../../../../src/peering/clusters/status.ts';
import { fc } from '../../../support/property.ts';
import { byPerson, discovered, linked, MILAN, NOW, sharing, sighting } from './support/objects.ts';

const intent: ClusterIntent = {
  clusterID: MILAN,
  facts: { clusterID: MILAN, labels: {}, foundBy: ['LAN'], networkKeys: [] },
  wanted: false,
  namespaces: [],
  incoming: 'Auto',
  force: false,
};

function observed(more: Partial<ForeignClusterFacts> = {}): ForeignClusterFacts {
  const cluster = more.cluster ?? discovered(MILAN);
  return {
    cluster,
    clusterID: MILAN,
    siblings: [cluster],
    duplicateOf: undefined,
    isOurselves: false,
    view: undefined,
    problem: undefined,
    isDialled: true,
    hasEndpoint: true,
    intent,
    outgoing: { phase: 'None' },
    incoming: { phase: 'None' },
    now: NOW,
    incomingTtlMs: 3_600_000,
    ...more,
  };
}
const wanted = { intent: { ...intent, wanted: true } };
const unreachable = { reason: 'EndpointUnreachable', message: 'a:1: refused' } as const;
const lost = discovered(MILAN, {}, { status: { link: { connected: true, since: '2026-01-01T00:00:00Z' } } });

test.each<[string, Partial<ForeignClusterFacts>, object]>([
  ['nothing means it', {}, { phase: 'None', reason: 'NoPolicyMatches' }],
  [
    'a person has said no',
    { cluster: discovered(MILAN, { outgoing: 'Disabled' }) },
    { phase: 'None', reason: 'NotWanted' },
  ],
  ['wanted, being dialled', wanted, { phase: 'Pending', reason: 'SettingUp' }],
  [
    'wanted, out of reach',
    { ...wanted, problem: unreachable },
    { phase: 'Pending', reason: 'EndpointUnreachable' },
  ],
  [
    'wanted, nowhere to be found',
    { ...wanted, hasEndpoint: false },
    { phase: 'Pending', reason: 'NoEndpoint' },
  ],
  ['wanted, link lost', { ...wanted, cluster: lost }, { phase: 'Pending', reason: 'LinkLost' }],
  ['wanted, linked', { ...wanted, view: linked(MILAN) }, { phase: 'Pending', reason: 'WaitingForOffer' }],
  [
    'asked and told to wait, linked',
    {
      ...wanted,
      view: linked(MILAN),
      outgoing: { phase: 'Pending', reason: 'WaitingForApproval', message: 'wait' },
    },
    { phase: 'Pending', reason: 'WaitingForApproval', message: 'wait' },
  ],
  [
    'in use, link lost',
    { ...wanted, cluster: lost, outgoing: { phase: 'Established' } },
    { phase: 'Established' },
  ],
  ['in use although nobody wants it any more', { outgoing: { phase: 'Ending' } }, { phase: 'Ending' }],
  ['our own', { ...wanted, isOurselves: true }, { phase: 'None', reason: 'Invalid' }],
  ['nobody’s', { ...wanted, clusterID: undefined }, { phase: 'None', reason: 'IdentityUnconfirmed' }],
  ['a duplicate', { ...wanted, duplicateOf: 'other' }, { phase: 'None', reason: 'Duplicate' }],
])('outgoing: %s', (_what, more, state) => {
  expect(forgeStatus(observed(more)).outgoing).toMatchObject(state);
});

test.each<[string, Partial<ForeignClusterFacts>, object]>([
  ['nothing means it', {}, { phase: 'None', reason: 'NoPolicyMatches' }],
  [
    'it may ask',
    { intent: { ...intent, sharingPolicy: sharing({}) } },
    { phase: 'None', reason: 'AsExpected' },
  ],
  ['it may not', { intent: { ...intent, incoming: 'Disabled' } }, { phase: 'None', reason: 'NotWanted' }],
  ['it has asked', { incoming: { phase: 'Pending', reason: 'WaitingForApproval' } }, { phase: 'Pending' }],
])('incoming: %s', (_what, more, state) => {
  expect(forgeStatus(observed(more)).incoming).toMatchObject(state);
});

test('since moves with the phase and with nothing else', () => {
  const since = '2026-01-01T00:00:00Z';
  const cluster = discovered(
    MILAN,
    {},
    { status: { outgoing: { phase: 'Pending', reason: 'SettingUp', since } } },
  );
  expect(forgeStatus(observed({ ...wanted, cluster, problem: unreachable })).outgoing).toMatchObject({
    since,
  });
  expect(forgeStatus(observed({ cluster })).outgoing).toMatchObject({ since: '2026-01-01T12:00:00Z' });
});

test('a link that is lost leaves what worked, and says since when', () => {
  const first = forgeStatus(observed({ view: linked(MILAN) }));
  const cluster = byPerson('milan', { clusterID: MILAN }, { status: first as never });
  const second = forgeStatus(observed({ cluster, now: NOW + 5000 }));
  expect(second.link).toMatchObject({
    connected: false,
    endpoint: 'milan:6844',
    dialledBy: 'Us',
    since: '2026-01-01T12:00:05Z',
  });
  const third = forgeStatus(
    observed({
      cluster: byPerson('milan', { clusterID: MILAN }, { status: second as never }),
      now: NOW + 9000,
    }),
  );
  expect(third.link).toEqual(second.link);
});

test('the standing of a peering keeps ways of discovery, and the keys of the last link', () => {
  const standing = { foundBy: ['WAN' as const], networkKeys: ['old'] };
  const cluster = discovered(MILAN, {}, { status: { standing } });
  const facts = { ...intent.facts, networkKeys: ['family'] };
  const peered = observed({ cluster, intent: { ...intent, facts }, outgoing: { phase: 'Established' } });
  expect(forgeStatus(peered).standing).toEqual({ foundBy: ['LAN', 'WAN'], networkKeys: ['family'] });
  expect(forgeStatus(observed({ cluster })).standing).toBeUndefined();
  expect(forgeStatus(observed({ cluster, outgoing: { phase: 'Denied' } })).standing).toBeUndefined();
});

test('our part of a status is all but the sightings of others', () => {
  const sightings = { LAN: sighting('lan'), Incoming: sighting('in') };
  expect(ownPart({ foundBy: 'LAN', sightings })).toEqual({
    foundBy: 'LAN',
    sightings: { Incoming: sightings.Incoming },
  });
});

test('news are changes of phases, each once', () => {
  const after = forgeStatus(
    observed({ ...wanted, incoming: { phase: 'Denied', reason: 'TokenUsed', message: 'used' } }),
  );
  expect(newsOf(undefined, after)).toEqual([
    { type: 'Normal', reason: 'OutgoingPending', message: 'None -> Pending: SettingUp, being dialled' },
    { type: 'Warning', reason: 'IncomingDenied', message: 'None -> Denied: TokenUsed, used' },
  ]);
  expect(newsOf(after as never, after)).toEqual([]);
});

test('no way to an endpoint is a warning, once, and again after another cause', () => {
  const before = forgeStatus(observed(wanted));
  const after = forgeStatus(observed({ ...wanted, problem: unreachable }));
  const warnings = (...states: Parameters<typeof newsOf>): unknown =>
    newsOf(...states).filter(({ type }) => type === 'Warning');
  const { reason } = unreachable;
  const message = `nothing answers at the endpoint of ${MILAN}: its role cluster, or that port, is down or not let through. Cause: a:1: refused`;
  expect(warnings(before as never, after)).toEqual([{ type: 'Warning', reason, message }]);
  expect(warnings(after as never, after)).toEqual([]);
  expect(warnings(after as never, before)).toEqual([]);
});

test('an endpoint that does not answer: what it means for pods comes first, and the technical cause last', () => {
  const outgoing = { phase: 'Established', credentialExpires: '2026-01-01T13:00:00Z' } as const;
  const { conditions } = forgeStatus(observed({ ...wanted, outgoing, problem: unreachable }));
  expect(conditions?.find(({ type }) => type === 'Connected')?.message).toMatch(
    /Pods of both run on, and the credential there holds until 2026-01-01T13:00:00Z\. Cause: a:1: refused$/u,
  );
});

test('whatever a peer says of itself fits into the object', () => {
  const text = fc.string({ maxLength: 300, unit: 'binary' });
  const hostile = fc.record({
    clusterName: text,
    software: text,
    endpoint: text,
    peerEndpoints: fc.array(fc.oneof(text, fc.constant('ok:1')), { maxLength: 20 }),
    networkKeys: fc.array(text),
    message: fc.nat(9000).map((length) => 'x'.repeat(length)),
    reason: text,
  });
  fc.assert(
    fc.property(hostile, ({ message, reason, ...said }) => {
      const view = linked(MILAN, { ...said, dialledBy: 'Them' });
      const outgoing = { phase: 'Denied', message, reason } as const;
      const status = forgeStatus(observed({ view, outgoing }));
      expect(status.clusterName ?? 'a').toMatch(new RegExp(CLUSTER_NAME_PATTERN, 'u'));
      expect(status.link?.software?.length).toBeLessThanOrEqual(64);
      expect(status.link?.endpoint?.length).toBeLessThanOrEqual(259);
      const { endpoints = [] } = status.sightings?.Incoming ?? {};
      expect(endpoints.length).toBeLessThanOrEqual(16);
      for (const endpoint of endpoints) expect(endpoint).toMatch(new RegExp(ENDPOINT_PATTERN, 'u'));
      expect(status.outgoing?.reason).toMatch(new RegExp(REASON_PATTERN, 'u'));
      expect(status.outgoing?.message?.length).toBeLessThanOrEqual(4096);
    }),
    { numRuns: 60 },
  );
});
