import { expect, test } from '@jest/globals';

import type { PrefixView, Tunnel, TunnelSpec } from '../../../../src/api/tunnel.ts';
import { tunnelConditions, type TunnelObservation } from '../../../../src/network/gateway/conditions.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';

const NOW = Date.UTC(2026, 0, 1);
const SEEN: TunnelObservation = {
  now: NOW,
  exported: [...NETWORK.pods, NETWORK.external],
  host: { changes: 0, problems: [] },
  handshakeMs: NOW - 60_000,
  receivedMs: NOW - 1000,
  endpoint: '192.0.2.1:51820',
  dialable: true,
  probe: { alive: true, since: NOW - 10_000, lossPercent: 0, rttMs: 1, lastAnswerMs: NOW },
};
const DEAD = { alive: false, since: NOW - 10_000, lossPercent: 100 };

function conditionsOf(
  seen: Partial<TunnelObservation> = {},
  tunnel: Tunnel = tunnelOf('p'),
): Record<string, string> {
  const all = { ...SEEN, ...seen };
  for (const key of Object.keys(all) as (keyof TunnelObservation)[])
    if (all[key] === undefined) delete all[key];
  const conditions = tunnelConditions(tunnel, all);
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

const FINE = {
  Ready: 'True AsExpected',
  AddressesAssigned: 'True AsExpected',
  HostConfigured: 'True AsExpected',
  Connected: 'True AsExpected',
  ServicesReachable: 'False NotChosen',
  OwnAddressesAllowed: 'True AsExpected',
};
const nothing = undefined as never;

test('all is well', () => expect(conditionsOf()).toEqual(FINE));

test.each<[string, Partial<TunnelObservation>, Partial<typeof FINE>]>([
  [
    'before anything is known of the host',
    { host: nothing },
    { Ready: 'Unknown Starting', HostConfigured: 'Unknown Starting' },
  ],
  [
    'WireGuard does not run',
    { host: { changes: 0, problems: [{ reason: 'NoWireGuard', message: 'm' }] } },
    { Ready: 'False WireGuardNotRunning', HostConfigured: 'False WireGuardNotRunning' },
  ],
  [
    'WireGuard counts more than what the kernel refused',
    {
      host: {
        changes: 0,
        problems: [
          { reason: 'Refused', message: 'm' },
          { reason: 'NoWireGuard', message: 'm' },
        ],
      },
    },
    { Ready: 'False WireGuardNotRunning', HostConfigured: 'False WireGuardNotRunning' },
  ],
  [
    'the kernel refuses',
    { host: { changes: 0, problems: [{ reason: 'Refused', message: 'm' }] } },
    { Ready: 'False HostRefused', HostConfigured: 'False HostRefused' },
  ],
  [
    'its key is somebody else’s',
    { refused: 'the key of another' },
    { Ready: 'False HostRefused', HostConfigured: 'False HostRefused' },
  ],
  [
    'no handshake',
    { probe: DEAD, handshakeMs: nothing, receivedMs: nothing },
    { Ready: 'False NoHandshake', Connected: 'False NoHandshake' },
  ],
  [
    'the last handshake is too long ago',
    { probe: DEAD, handshakeMs: NOW - 181_000, receivedMs: nothing },
    { Ready: 'False NoHandshake', Connected: 'False NoHandshake' },
  ],
  [
    'the last handshake is too long ago, and all that comes are tries of a new one',
    { probe: DEAD, handshakeMs: NOW - 181_000, receivedMs: NOW },
    { Ready: 'False PacketsOneWay', Connected: 'False PacketsOneWay' },
  ],
  [
    'a handshake, but nothing has come since this process began',
    { probe: DEAD, receivedMs: nothing },
    { Ready: 'False NoHandshake', Connected: 'False NoHandshake' },
  ],
  [
    'nothing has come since the last answer',
    { probe: { ...DEAD, lastAnswerMs: NOW - 7000 }, receivedMs: NOW - 5500 },
    { Ready: 'False NoHandshake', Connected: 'False NoHandshake' },
  ],
  [
    'keepalives have come since the last answer',
    { probe: { ...DEAD, lastAnswerMs: NOW - 30_000 }, receivedMs: NOW - 11_000 },
    { Ready: 'False NoAnswer', Connected: 'False NoAnswer' },
  ],
  [
    'keepalives came for a while after the last answer',
    { probe: { ...DEAD, lastAnswerMs: NOW - 60_000 }, receivedMs: NOW - 26_000 },
    { Ready: 'False NoHandshake', Connected: 'False NoHandshake' },
  ],
  ['a handshake, but no answer', { probe: DEAD }, { Ready: 'False NoAnswer', Connected: 'False NoAnswer' }],
  [
    'nobody can dial',
    { probe: DEAD, handshakeMs: nothing, receivedMs: nothing, endpoint: nothing, dialable: false },
    { Ready: 'False NoEndpoint', Connected: 'False NoEndpoint' },
  ],
  [
    'only the peer can dial, and has not',
    { probe: DEAD, handshakeMs: nothing, receivedMs: nothing, endpoint: nothing },
    { Ready: 'False NoHandshake', Connected: 'False NoHandshake' },
  ],
  [
    'it answers, with loss: usable',
    { probe: { ...SEEN.probe, alive: true, since: 0, lossPercent: 30 } },
    { Ready: 'True PacketsLost', Connected: 'True PacketsLost' },
  ],
  [
    'nothing is measured yet',
    { probe: nothing },
    { Ready: 'Unknown Starting', Connected: 'Unknown Starting' },
  ],
])('%s', (_case, seen, wanted) => expect(conditionsOf(seen)).toEqual({ ...FINE, ...wanted }));

test.each<[string, Parameters<typeof tunnelOf>[1], string]>([
  ['the peer has told nothing', { spec: { peer: nothing } }, 'False PeerHasNotTold'],
  [
    'the peer announces the key of another',
    { spec: { peer: nothing, keyOf: 'o'.repeat(26) } },
    'False KeyTaken',
  ],
  ['the peer sees nothing of us', { spec: { seenAs: [] } }, 'False PeerHasNoViewOfUs'],
  [
    'the peer sees only our pods',
    { spec: { seenAs: [{ prefix: '10.1.0.0/16', as: '10.65.0.0/16' }] } },
    'False PeerHasNoViewOfUs',
  ],
  [
    'a prefix is refused',
    { status: { views: [], refused: [{ prefix: '10.1.0.0/16', reason: 'Overlaps', message: 'm' }] } },
    'False PrefixRefused',
  ],
  [
    'the pool is used up',
    { status: { views: [], refused: [{ prefix: '10.1.0.0/16', reason: 'PoolExhausted', message: 'm' }] } },
    'False PoolExhausted',
  ],
  ['no view yet', { status: { views: [] } }, 'Unknown Starting'],
])('%s', (_case, tunnel, wanted) => {
  const { Ready, AddressesAssigned } = conditionsOf({}, tunnelOf('p', tunnel));
  expect([Ready, AddressesAssigned]).toEqual([wanted, wanted]);
});

test('a refused way through the peer to a third cluster does not make the tunnel unready', () => {
  const { status } = tunnelOf('p');
  const refused = [{ prefix: '100.99.0.0/16', reason: 'PoolExhausted', message: 'no room' }];
  const tunnel = tunnelOf('p', { status: { ...status, refused } });
  expect(conditionsOf({}, tunnel)).toEqual(FINE);
  expect(tunnelConditions(tunnel, SEEN)[1]?.message).toContain('no room');
});

test('with several causes, the first of the chain is the one of Ready', () => {
  const tunnel = tunnelOf('p', { spec: { seenAs: [] } });
  const host = { changes: 0, problems: [{ reason: 'Refused' as const, message: 'm' }] };
  expect(conditionsOf({ probe: DEAD, host }, tunnel)['Ready']).toBe('False PeerHasNoViewOfUs');
});

test('a gateway that starts says nothing new before it has measured', () => {
  const said = ['HostConfigured', 'Connected'].map((type) => ({
    type,
    status: 'True' as const,
    reason: 'AsExpected',
    message: 'm',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }));
  const { status } = tunnelOf('p');
  const tunnel = tunnelOf('p', { status: { ...status, conditions: said } });
  expect(conditionsOf({ probe: nothing }, tunnel)).toEqual(FINE);
  expect(conditionsOf({ probe: nothing, host: nothing, handshakeMs: nothing }, tunnel)).toEqual(FINE);
  // On the node that takes over, WireGuard has not shaken hands yet.
  expect(conditionsOf({ probe: nothing, handshakeMs: nothing }, tunnel)).toEqual(FINE);
  expect(conditionsOf({ probe: DEAD }, tunnel)['Ready']).toBe('False NoAnswer');
});

test('loss about the limit does not flap', () => {
  const lossy = {
    type: 'Connected',
    status: 'True',
    reason: 'PacketsLost',
    message: 'm',
    lastTransitionTime: 't',
  };
  const { status } = tunnelOf('p');
  const tunnel = tunnelOf('p', { status: { ...status, conditions: [lossy] } });
  const probe = { alive: true, since: 0, lossPercent: 7 };
  expect(conditionsOf({ probe })['Connected']).toBe('True AsExpected');
  expect(conditionsOf({ probe }, tunnel)['Connected']).toBe('True PacketsLost');
});

test('the loss itself is no part of what is said', () => {
  const said = [11, 24, 26, 90].map((lossPercent) => {
    const probe = { alive: true, since: 0, lossPercent };
    return tunnelConditions(tunnelOf('p'), { ...SEEN, probe });
  });
  for (const conditions of said) expect(conditions).toEqual(said[0]);
});

test('how long nothing has come is no part of what is said', () => {
  const probe = { ...DEAD, lastAnswerMs: NOW - 8000 };
  const said = [0, 1000, 200_000].map((ms) =>
    tunnelConditions(tunnelOf('p'), { ...SEEN, now: NOW + ms, probe, receivedMs: NOW - 7000 }),
  );
  for (const conditions of said) expect(conditions).toEqual(said[0]);
  expect(said[0]?.[0]?.message).toContain('nothing comes from the peer any more');
});

test('conditions speak of the spec that they were made from', () => {
  expect(tunnelConditions(tunnelOf('p'), SEEN).map(({ observedGeneration }) => observedGeneration)).toEqual([
    3, 3, 3, 3, 3, 3,
  ]);
});

const RANGES = ['10.96.0.0/16', 'fd00:96::/108'];
const seenAs = (...as: string[]): PrefixView[] =>
  as.map((each, index) => ({ prefix: RANGES[index] ?? '', as: each }));

test.each<[string, Partial<TunnelSpec>, string, RegExp]>([
  ['nobody has chosen it', {}, 'False NotChosen', /services: OffloadedPods/],
  ['the peer sees them as they are', { seenAs: seenAs(...RANGES) }, 'True AsExpected', /10\.96.*fd00:96/],
  [
    'the peer has told only one',
    { seenAs: seenAs('10.96.0.0/16') },
    'False PeerHasNoViewOfUs',
    /fd00:96::\/108/,
  ],
  [
    'the peer uses one of them itself',
    { seenAs: seenAs('100.96.0.0/16', 'fd00:96::/108') },
    'False SeenElsewhere',
    /10\.96\.0\.0\/16 as 100\.96\.0\.0\/16.*another range/,
  ],
])(
  'whether ClusterIPs are reached, where %s; the tunnel is Ready in any case',
  (_why, spec, wanted, words) => {
    const before = tunnelOf('p');
    const services = spec.seenAs === undefined ? {} : { services: RANGES };
    const all = [...(before.spec.seenAs ?? []), ...(spec.seenAs ?? [])];
    const tunnel = { ...before, spec: { ...before.spec, ...services, seenAs: all } };
    expect(conditionsOf({}, tunnel)).toEqual({ ...FINE, ServicesReachable: wanted });
    const found = tunnelConditions(tunnel, SEEN).find(({ type }) => type === 'ServicesReachable');
    expect(found?.message).toMatch(words);
  },
);

test('a peer that tells nothing is told nothing of ClusterIPs either', () => {
  const { peer: _silent, ...rest } = tunnelOf('p').spec;
  const tunnel = { ...tunnelOf('p'), spec: { ...rest, services: RANGES } };
  expect(conditionsOf({}, tunnel)['ServicesReachable']).toBe('False PeerHasNotTold');
});

test('own addresses that nobody has allowed are told, and cost nothing', () => {
  const views = [{ prefix: '10.50.0.0/16', as: '10.50.0.0/16', use: 'Pods' as const }];
  const asked = (ownAddresses?: string[]): string | undefined => {
    const spec = ownAddresses && { ownAddresses };
    const tunnel = tunnelOf('p', { ...(spec && { spec }), status: { views } });
    return conditionsOf({}, tunnel)['OwnAddressesAllowed'];
  };
  expect(asked()).toBe('False OwnAddressesNotAllowed');
  expect(asked(['10.0.0.0/8'])).toBe('True AsExpected');
  expect(asked(['Any'])).toBe('True AsExpected');
  const [message] = tunnelConditions(tunnelOf('p', { status: { views } }), SEEN).flatMap((condition) =>
    condition.type === 'OwnAddressesAllowed' ? [condition.message] : [],
  );
  expect(message).toContain('10.50.0.0/16');
  expect(message).toContain('ownAddresses: []');
});
