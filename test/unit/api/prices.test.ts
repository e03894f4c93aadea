import { expect, test } from '@jest/globals';

import { parseAmounts } from '../../../src/api/amounts.ts';
import { compareDecimals, costOf, formatCost, type Prices } from '../../../src/api/prices.ts';
import type { ResourceList } from '../../../src/api/wire.ts';

test.each([
  ['1', '1.000', 0],
  ['0.1', '0.09', 1],
  ['9', '10', -1],
  ['999999999999.999999999', '999999999999.999999998', 1],
])('%s compared with %s is %d', (a, b, order) => {
  expect(compareDecimals(a, b)).toBe(order);
});

test.each(['', '-1', '1e3', '.5', '1.0000000001', 'NaN'])('%j is no amount', (text) => {
  expect(() => compareDecimals(text, '1')).toThrow(expect.objectContaining({ code: 'Invalid' }));
});

const eur = (amount: string): Prices[string] => ({ amount, currency: 'EUR' });
const cost = (requests: ResourceList, prices: Prices): string | undefined => {
  const found = costOf(parseAmounts(requests), prices);
  return found && formatCost(found);
};

test.each<[string, ResourceList, Prices, string | undefined]>([
  ['cores', { cpu: '1500m' }, { cpu: eur('0.04') }, '0.06 EUR/h'],
  ['GiB', { memory: '512Mi', 'ephemeral-storage': '10Gi' }, { memory: eur('0.01') }, '0.005 EUR/h'],
  ['pieces', { 'a.com/gpu': '2', pods: '1' }, { 'a.com/gpu': eur('1'), pods: eur('0.5') }, '2.5 EUR/h'],
  ['all together', { cpu: '1', memory: '1Gi' }, { cpu: eur('0.04'), memory: eur('0.01') }, '0.05 EUR/h'],
  ['what has no price', { cpu: '1' }, { memory: eur('0.01') }, '0'],
  ['no price at all', { cpu: '1' }, {}, '0'],
  ['ten', { cpu: '10' }, { cpu: eur('1') }, '10 EUR/h'],
  ['next to nothing', { memory: '1' }, { memory: eur('0.000000001') }, '0.000001 EUR/h'],
  [
    'two currencies',
    { cpu: '1', memory: '1Gi' },
    { cpu: eur('1'), memory: { amount: '1', currency: 'USD' } },
    undefined,
  ],
  [
    'upper and lower case',
    { cpu: '1', memory: '1Gi' },
    { cpu: eur('1'), memory: { amount: '1', currency: 'eur' } },
    '2 EUR/h',
  ],
  [
    'a second currency in which nothing is asked',
    { cpu: '1', memory: '1Gi' },
    { cpu: eur('1'), memory: { amount: '0', currency: 'USD' } },
    '1 EUR/h',
  ],
  [
    'a resource named as a property of all objects',
    { cpu: '1', constructor: '1' },
    { cpu: eur('1') },
    '1 EUR/h',
  ],
])('the cost of %s', (_what, requests, prices, expected) => {
  expect(cost(requests, prices)).toBe(expected);
});
