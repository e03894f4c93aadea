import { expect, test } from '@jest/globals';
import type { SharingPolicySpec } from '../../../../src/api/sharing-policy.ts';
import { computeOffer } from '../../../../src/peering/offer/compute.ts';
import { stockPriority } from '../../../../src/peering/offer/priority-classes.ts';
import { aNode, lendingPolicy, stockOf } from '../support/stock.ts';

const priority = (
  name: string,
  value: number | undefined,
  preemptionPolicy?: string,
): ReturnType<typeof stockPriority> =>
  stockPriority({
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
    ...(value !== undefined && { value }),
    ...(preemptionPolicy !== undefined && { preemptionPolicy }),
  });

const STOCK = stockOf([aNode('a')], [], {
  priorityClasses: [
    priority('quiet', 100, 'Never'),
    priority('none', undefined, 'Never'),
    priority('low', -1, 'Never'),
    priority('loud', 100, 'PreemptLowerPriority'),
    priority('unsaid', 100),
    priority('unnamed', 100, 'Never'),
  ],
});
const ALL = ['quiet', 'none', 'low', 'loud', 'unsaid', 'gone', 'not a name'];

const lent = (spec: Partial<SharingPolicySpec>): string[] | undefined =>
  computeOffer(STOCK, lendingPolicy(spec), { consumer: 'c'.repeat(26), promised: new Map() }).classes
    .priority;

test.each<[Partial<SharingPolicySpec>, string[] | undefined]>([
  [{}, undefined],
  [{ priorityClasses: ALL }, ['none', 'quiet']],
  [{ priorityClasses: ALL, maxPriority: -1 }, ['low', 'none', 'quiet']],
  [{ priorityClasses: ALL, maxPriority: 1 }, ['quiet']],
  [{ priorityClasses: ['gone', 'loud'] }, undefined],
])('of a policy that says %j, the priority classes %j are offered', (spec, expected) => {
  expect(lent(spec)).toEqual(expected);
});
