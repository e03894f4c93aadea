import { expect, test } from '@jest/globals';

import { namedEndpoints } from '../../../../src/agent/peering-endpoint.ts';
import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import { KnownAddresses } from '../../../../src/server/peering/known-addresses.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const ROME = 'a'.repeat(52);

test('addresses of those that we deal with, from which they have come or which were named', async () => {
  const clock = new FakeClock();
  const peers = new Set(['rome', 'milan']);
  const named = [
    { clusterID: 'milan', endpoint: '192.0.2.1:7443' },
    { clusterID: 'milan', endpoint: '[2001:db8::1]:7443' },
    { clusterID: 'milan', endpoint: 'milan.example:7443' },
    { clusterID: 'stranger', endpoint: '192.0.2.9:7443' },
  ];
  const known = new KnownAddresses({ clock, isKnown: (id) => peers.has(id), named: () => named });
  known.learn('rome', '192.0.2.2');
  known.learn('stranger', '192.0.2.8');
  const has = (...addresses: string[]): boolean[] => addresses.map((address) => known.has(address));
  expect(has('192.0.2.1', '2001:db8::1', '192.0.2.2')).toEqual([true, true, true]);
  expect(has('192.0.2.8', '192.0.2.9', 'milan.example', '')).toEqual([false, false, false, false]);
  peers.delete('milan');
  await clock.advance(2_000);
  expect(has('192.0.2.1', '192.0.2.2')).toEqual([false, true]);
  // One that comes from everywhere has the latest places only.
  for (let last = 10; last < 30; last++) known.learn('rome', `192.0.2.${last}`);
  expect(has('192.0.2.2', '192.0.2.21', '192.0.2.22', '192.0.2.29')).toEqual([false, false, true, true]);
});

test('an endpoint counts as named if a person wrote it or a link was there, not if it was only seen', () => {
  const cluster = {
    metadata: { name: 'rome' },
    spec: { clusterID: ROME, endpoint: '192.0.2.1:7443' },
    status: {
      link: { connected: false, endpoint: '192.0.2.2:41000' },
      sightings: { LAN: { endpoints: ['192.0.2.66:7443'], firstSeen: '', expires: '' } },
    },
  } as unknown as ForeignCluster;
  const nobody = { metadata: { name: 'x' }, spec: { endpoint: '192.0.2.3:7443' } } as ForeignCluster;
  expect([...namedEndpoints([cluster, nobody])]).toEqual([
    { clusterID: ROME, endpoint: '192.0.2.1:7443' },
    { clusterID: ROME, endpoint: '192.0.2.2:41000' },
  ]);
});
