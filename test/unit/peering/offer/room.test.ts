import { expect, test } from '@jest/globals';
import { formatAmounts, parseAmounts } from '../../../../src/api/amounts.ts';
import type { Offer } from '../../../../src/api/offer.ts';
import type { ResourceList } from '../../../../src/api/wire.ts';
import { checkOffer } from '../../../../src/peering/offer/check.ts';
import { computeOffer } from '../../../../src/peering/offer/compute.ts';
import { roomShown } from '../../../../src/peering/offer/room.ts';
import { anOffer, consumer, NOW_MS, provider, signed } from '../support/offers.ts';
import { aNode, lendingPolicy, stockOf } from '../support/stock.ts';

const shown = (admitted: ResourceList, offer: Pick<Offer, 'defaultRequests' | 'podOverhead'>): ResourceList =>
  formatAmounts(roomShown(parseAmounts(admitted), offer));
const NONE = { cpu: '0', memory: '0', 'ephemeral-storage': '0' };
const LENT = { cpu: '3200m', memory: '8Gi', pods: '110', 'ephemeral-storage': '10Gi' };

test('all of it, where a pod costs the same on both sides', () => {
  expect(shown(LENT, { defaultRequests: NONE })).toEqual(LENT);
});

test.each<[string, ResourceList, ResourceList, ResourceList]>([
  [
    'small requests: for all pods',
    { cpu: '10m', memory: '16Mi' },
    {},
    { cpu: '2100m', memory: '6432Mi', pods: '110', 'ephemeral-storage': '10Gi' },
  ],
  [
    'large requests: half of the CPU, for as many pods',
    { cpu: '100m' },
    {},
    { cpu: '1600m', memory: '8Gi', pods: '16', 'ephemeral-storage': '10Gi' },
  ],
  [
    'overhead, and requests on top',
    { memory: '96Mi' },
    { cpu: '50m', memory: '160Mi' },
    { cpu: '2400m', memory: '4Gi', pods: '16', 'ephemeral-storage': '10Gi' },
  ],
  [
    'the disk, too',
    { 'ephemeral-storage': '1Gi' },
    {},
    { cpu: '3200m', memory: '8Gi', pods: '5', 'ephemeral-storage': '5Gi' },
  ],
])('what home does not count is set aside: %s', (_, defaultRequests, podOverhead, room) => {
  expect(shown(LENT, { defaultRequests, podOverhead })).toEqual(room);
});

test('no pods, where nothing is lent of what each of them costs', () => {
  expect(shown({ ...LENT, cpu: '0' }, { defaultRequests: { cpu: '1m' } })).toMatchObject({
    cpu: '0',
    pods: '0',
  });
});

test('what is not lent by amounts bounds nothing', () => {
  const lent = { cpu: '1', pods: '10' };
  expect(shown(lent, { defaultRequests: { memory: '1Gi' }, podOverhead: { 'a.com/gpu': '1' } })).toEqual(
    lent,
  );
});

test('defaults of an earlier version bound the pods, and take nothing else away', () => {
  expect(shown(LENT, {})).toEqual({ ...LENT, pods: '32' });
  expect(shown({ ...LENT, pods: '20' }, {})).toEqual({ ...LENT, pods: '20' });
});

test('what a pod costs besides is told, as a peer takes it', () => {
  const policy = lendingPolicy({ defaultRequests: { cpu: '0.0155', memory: '0.5' } });
  const podOverhead = { cpu: '250m', memory: '160Mi' };
  const terms = computeOffer(stockOf([aNode('n')]), policy, {
    consumer: consumer.clusterID,
    promised: new Map(),
    podOverhead,
  });
  expect(terms).toMatchObject({
    defaultRequests: { cpu: '16m', memory: '1', 'ephemeral-storage': '0' },
    podOverhead,
  });
  const context = { provider, consumer: consumer.clusterID, lastGeneration: undefined, nowMs: NOW_MS };
  expect(checkOffer(signed({ ...anOffer(), ...terms }), context)).toMatchObject({ podOverhead });
  const silent = computeOffer(stockOf([aNode('n')]), lendingPolicy(), {
    consumer: consumer.clusterID,
    promised: new Map(),
  });
  expect(silent).toMatchObject({
    defaultRequests: { cpu: '0', memory: '0', 'ephemeral-storage': '0' },
  });
});
