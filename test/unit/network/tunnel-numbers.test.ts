import { expect, test } from '@jest/globals';

import type { Tunnel, TunnelStatus } from '../../../src/api/tunnel.ts';
import { differInNumbersOnly } from '../../../src/network/tunnel-numbers.ts';

const CONNECTION = {
  gateway: 'n1',
  endpoint: '192.0.2.1:51820',
  handshake: '2026-01-01T00:00:00Z',
  rttMs: 1,
  lossPercent: 0,
  receivedBytes: 1,
  sentBytes: 1,
  mtu: 1420,
};

const tunnel = (resourceVersion: string, status: Partial<TunnelStatus> = {}): Tunnel => ({
  metadata: { name: 'p', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion },
  spec: { clusterName: 'p' } as Tunnel['spec'],
  status: { connection: CONNECTION, ...status },
});

test('numbers concern no host, all else may', () => {
  const numbers = {
    rttMs: 9,
    lossPercent: 3,
    receivedBytes: 5,
    sentBytes: 6,
    handshake: '2026-01-02T00:00:00Z',
  };
  const before = tunnel('1');
  expect(differInNumbersOnly(before, tunnel('2', { connection: { ...CONNECTION, ...numbers } }))).toBe(true);
  expect(differInNumbersOnly(before, tunnel('2', { connection: { ...CONNECTION, mtu: 1400 } }))).toBe(false);
  expect(differInNumbersOnly(before, tunnel('2', { connection: { ...CONNECTION, gateway: 'n2' } }))).toBe(
    false,
  );
  expect(differInNumbersOnly(before, tunnel('2', { views: [] }))).toBe(false);
  expect(differInNumbersOnly(before, { ...before, spec: { clusterName: 'q' } as Tunnel['spec'] })).toBe(
    false,
  );
  expect(differInNumbersOnly(undefined, before)).toBe(false);
  expect(differInNumbersOnly(before, undefined)).toBe(false);
});
