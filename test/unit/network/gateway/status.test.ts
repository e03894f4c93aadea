import { expect, test } from '@jest/globals';

import type { WantedCondition } from '../../../../src/api/conditions.ts';
import type { TunnelConnection } from '../../../../src/api/tunnel.ts';
import { connectionOf, statusPatch, type StatusPatch } from '../../../../src/network/gateway/status.ts';
import { tunnelOf } from '../../../support/network/tunnels.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const KNOWN: TunnelConnection = {
  gateway: 'n1',
  endpoint: '192.0.2.1:51820',
  handshake: '2026-01-01T11:59:00Z',
  rttMs: 10,
  lossPercent: 0,
  receivedBytes: 1000,
  sentBytes: 1000,
  mtu: 1420,
};
const READY: WantedCondition = { type: 'Ready', status: 'True', reason: 'AsExpected', message: 'm' };
const STORED = { ...READY, lastTransitionTime: '2026-01-01T00:00:00Z' };

function patchOf(
  change: Partial<TunnelConnection>,
  {
    sinceWriteMs = 60_000,
    conditions = [READY],
  }: { sinceWriteMs?: number; conditions?: WantedCondition[] } = {},
): StatusPatch | undefined {
  const connection = Object.fromEntries(
    Object.entries({ ...KNOWN, ...change }).filter(([, value]) => value !== undefined),
  ) as TunnelConnection;
  const tunnel = tunnelOf('p', { status: { connection: KNOWN, conditions: [STORED] } });
  return statusPatch({ tunnel, connection, conditions, now: NOW, sinceWriteMs });
}

test('nothing new, no write', () => expect(patchOf({})).toBeUndefined());

test.each<[string, Partial<TunnelConnection>, boolean]>([
  ['a little slower', { rttMs: 11.9 }, false],
  ['much slower', { rttMs: 13 }, true],
  ['a few bytes', { receivedBytes: 17_000 }, false],
  ['many bytes', { receivedBytes: 18_000 }, true],
  ['a little loss', { lossPercent: 2 }, false],
  ['loss', { lossPercent: 3 }, true],
  ['another handshake', { handshake: '2026-01-01T12:00:00Z' }, true],
])('%s', (_case, change, isNews) => {
  expect(patchOf(change) !== undefined).toBe(isNews);
  expect(patchOf(change, { sinceWriteMs: 9999 })).toBeUndefined();
});

test.each<[string, Partial<TunnelConnection>]>([
  ['another gateway', { gateway: 'n2' }],
  ['another MTU', { mtu: 1300 }],
])('%s is written at once', (_case, change) => {
  expect(patchOf(change, { sinceWriteMs: 0 })).toEqual({ connection: change });
});

test('another endpoint is written, but not with every packet of a peer that roams', () => {
  const change = { endpoint: '192.0.2.2:51820' };
  expect(patchOf(change, { sinceWriteMs: 4999 })).toBeUndefined();
  expect(patchOf(change, { sinceWriteMs: 5000 })).toEqual({ connection: change });
});

test('a condition is written at once, with the numbers of the day', () => {
  const lost = { ...READY, status: 'False' as const, reason: 'NoAnswer' };
  expect(patchOf({ rttMs: 10.1 }, { sinceWriteMs: 0, conditions: [lost] })).toEqual({
    connection: { rttMs: 10.1 },
    conditions: [{ ...lost, lastTransitionTime: '2026-01-01T12:00:00Z' }],
  });
});

test('what is not known any more is taken back, except what the gateway before us has probed', () => {
  const change = { rttMs: undefined as never, mtu: undefined as never, gateway: 'n2' };
  expect(patchOf(change)).toEqual({ connection: { gateway: 'n2', rttMs: null } });
});

test('numbers are rounded for people', () => {
  const wireguard = {
    publicKey: 'k',
    endpoint: '198.51.100.7:40001',
    handshakeMs: NOW,
    receivedBytes: 1,
    sentBytes: 2,
  };
  const probe = { alive: true, since: 0, rttMs: 0.6789, lossPercent: 3.33, mtu: 1380 };
  expect(connectionOf({ gateway: 'n1', endpoint: '192.0.2.1:1', wireguard, probe })).toEqual({
    gateway: 'n1',
    endpoint: '198.51.100.7:40001',
    handshake: '2026-01-01T12:00:00Z',
    rttMs: 0.7,
    lossPercent: 3,
    receivedBytes: 1,
    sentBytes: 2,
    mtu: 1380,
  });
});
