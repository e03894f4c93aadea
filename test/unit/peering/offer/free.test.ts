import { expect, test } from '@jest/globals';
import type { SharingPolicySpec } from '../../../../src/api/sharing-policy.ts';
import { lendingNodes, lentNames } from '../../../../src/peering/offer/free.ts';
import { aNode, lendingPolicy, stockOf } from '../support/stock.ts';

test.each<[string, boolean, object[]]>([
  ['by its key', true, [{ key: 'a', operator: 'Exists' }]],
  ['by key, value and effect', true, [{ key: 'a', value: 'guests', effect: 'NoSchedule' }]],
  ['with all others', true, [{ operator: 'Exists' }]],
  ['by another value', false, [{ key: 'a', value: 'ours' }]],
  ['by another key', false, [{ key: 'b', operator: 'Exists' }]],
  ['for another effect', false, [{ key: 'a', operator: 'Exists', effect: 'NoExecute' }]],
  ['by an operator that nobody knows', false, [{ key: 'a', operator: 'Perhaps', value: 'guests' }]],
  ['by nothing', false, []],
])(
  'a node that is kept for guests by a taint lends where the policy tolerates it %s',
  (_name, lends, given) => {
    const tolerations = given as NonNullable<SharingPolicySpec['tolerations']>;
    const node = aNode('n');
    node.spec = { ...node.spec, taints: [{ key: 'a', value: 'guests', effect: 'NoSchedule' }] };
    expect(lendingNodes(stockOf([node]), { ...lendingPolicy().spec, tolerations })).toHaveLength(
      lends ? 1 : 0,
    );
  },
);

test('lent is what nodes count and the policy does not hold back, and storage as far as it is limited', () => {
  const stock = stockOf([aNode('n')]);
  const policy = lendingPolicy();
  const names = (spec: Partial<SharingPolicySpec>): string[] =>
    lentNames(stock, { ...policy, spec: { ...policy.spec, ...spec } });
  expect(names({})).toEqual(expect.arrayContaining(['cpu', 'memory', 'pods']));
  expect(names({})).not.toContain('storage');
  expect(names({ limits: { storage: '10Gi' }, withhold: ['pods'] })).toContain('storage');
  expect(names({ withhold: ['pods'] })).not.toContain('pods');
  expect(names({ limits: { storage: 'much' } })).not.toContain('storage');
});
