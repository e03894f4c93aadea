import { describe, expect, test } from '@jest/globals';
import type { Tunnel } from '../../../../src/api/tunnel.ts';
import type { EndpointSlice } from '../../../../src/api/wire.ts';
import {
  HOLD_MS,
  peerPrefixes,
  released,
  withheld,
  withholdIn,
} from '../../../../src/hosting/tenants/tenant-network.ts';

const SINCE = '2026-01-01T00:00:00Z';
const at = Date.parse(SINCE);
const tunnel = (status: string | undefined, lastTransitionTime = SINCE): Tunnel =>
  ({
    metadata: { name: 'x' },
    spec: { clusterID: 'x', access: 'None', transit: 'None' },
    status: {
      conditions:
        status === undefined
          ? []
          : [{ type: 'Ready', status, reason: 'r', message: 'm', lastTransitionTime }],
    },
  }) as unknown as Tunnel;

test.each<[string, Tunnel | undefined, number, number | 'Ready']>([
  ['ready', tunnel('True'), at, 'Ready'],
  ['down just now', tunnel('False'), at, HOLD_MS],
  ['down for a moment', tunnel('False'), at + 2000, HOLD_MS - 2000],
  ['down for long', tunnel('False'), at + 60_000, 0],
  ['unknown for long', tunnel('Unknown'), at + 60_000, 0],
  ['down, by a clock that is ahead', tunnel('False'), at - 3_600_000, HOLD_MS],
  ['with a time that is none', tunnel('False', 'soon'), at, 0],
  ['not reported on', tunnel(undefined), at, 0],
  ['not there', undefined, at, 0],
])('a tunnel that is %s', (_what, given, nowMs, wanted) => {
  expect(withholdIn(given, nowMs)).toBe(wanted);
});

test('prefixes as we see them, in one order', () => {
  const views = ['100.70.0.0/16', '10.1.0.0/16', '100.70.0.0/16'].map((as) => ({
    use: 'Pods',
    prefix: '10.0.0.0/16',
    as,
  }));
  expect(peerPrefixes({ ...tunnel('True'), status: { views } } as Tunnel)).toBe('10.1.0.0/16,100.70.0.0/16');
  expect(peerPrefixes(undefined)).toBe('');
});

describe('a slice', () => {
  const slice = {
    metadata: { name: 'web', annotations: { theirs: 'x' } },
    addressType: 'IPv4',
    endpoints: [
      { addresses: ['100.99.0.1'], hostname: 'web-0', conditions: { ready: true, terminating: false } },
      { addresses: ['100.99.0.2'] },
    ],
  } as unknown as EndpointSlice;

  test('is marked once, and nothing of it is ready', () => {
    const held = withheld(slice);
    expect(held?.metadata.annotations).toEqual({ theirs: 'x', 'tributary.dev/withheld': 'TunnelDown' });
    expect(held?.endpoints).toEqual([
      {
        addresses: ['100.99.0.1'],
        hostname: 'web-0',
        conditions: { ready: false, serving: false, terminating: false },
      },
      { addresses: ['100.99.0.2'], conditions: { ready: false, serving: false } },
    ]);
    expect(withheld(held as EndpointSlice)).toBeUndefined();
  });

  test('that says ready all the same is marked again', () => {
    const held = withheld(slice) as EndpointSlice;
    expect(withheld({ ...held, endpoints: slice.endpoints ?? [] })).toEqual(held);
  });

  test('is let go as it is: whose it is says what is ready', () => {
    const held = withheld(slice) as EndpointSlice;
    const free = released(held);
    expect(free?.metadata.annotations).toEqual({ theirs: 'x' });
    expect(free?.endpoints).toEqual(held.endpoints);
    expect(released(slice)).toBeUndefined();
  });
});
