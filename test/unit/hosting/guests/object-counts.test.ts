import { expect, test } from '@jest/globals';

import { ObjectCounts } from '../../../../src/hosting/guests/object-counts.ts';
import type { ResourceQuota } from '../../../../src/hosting/tenants/quota-recounts.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const quota = (namespace: string, used: Record<string, string>): ResourceQuota => ({
  metadata: { name: 'tributary', namespace, uid: namespace, resourceVersion: '1', creationTimestamp: '' },
  status: { used },
});

function scene(): { clock: FakeClock; quotas: Map<string, ResourceQuota>; counts: ObjectCounts } {
  const clock = new FakeClock();
  const quotas = new Map([
    [
      'a',
      quota('a', { configmaps: '3', 'count/pods': '2', 'requests.cpu': '500m', 'count/x.example.com': '1' }),
    ],
    ['b', quota('b', { secrets: '4', services: '1', persistentvolumeclaims: '1', pods: '7' })],
  ]);
  return { clock, quotas, counts: new ObjectCounts({ clock, quotasOf: () => [...quotas.values()] }) };
}

test('counts what quotas have counted as objects, over all namespaces', () => {
  const { counts } = scene();
  expect(counts.used('rome')).toBe(12);
  expect(counts.refusalOf('rome', 13)).toBeUndefined();
  expect(counts.refusalOf('rome', 12)).toMatch(/exceeded quota of peer rome .* used 12 objects, granted 12/u);
});

test('what was let in counts until its quota has counted it', () => {
  const { counts, quotas } = scene();
  for (let made = 0; made < 3; made++) counts.admitted('rome', 'a');
  expect(counts.used('rome')).toBe(15);
  quotas.set('a', quota('a', { configmaps: '5', 'count/pods': '2', 'count/x.example.com': '1' }));
  expect(counts.used('rome')).toBe(15);
  quotas.set('a', quota('a', { configmaps: '7', 'count/pods': '2', 'count/x.example.com': '1' }));
  expect(counts.used('rome')).toBe(16);
});

test('what was let in and never stored counts for a while', async () => {
  const { clock, counts } = scene();
  counts.admitted('rome', 'b');
  counts.admitted('rome', 'unknown');
  expect(counts.used('rome')).toBe(13);
  await clock.advance(15_000);
  expect(counts.used('rome')).toBe(12);
});
