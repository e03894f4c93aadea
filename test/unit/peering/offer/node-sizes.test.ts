import { expect, test } from '@jest/globals';

import { amountOf, parseAmounts } from '../../../../src/api/amounts.ts';
import { MAX_NODE_SIZES } from '../../../../src/api/limits.ts';
import type { NodeShape } from '../../../../src/api/offer.ts';
import type { ResourceList } from '../../../../src/api/wire.ts';
import { nodeSizes } from '../../../../src/peering/offer/node-sizes.ts';
import { fc } from '../../../support/property.ts';

const shapes = (...all: ResourceList[]): NodeShape[] =>
  all.map((resources) => ({ count: 1, resources, architecture: 'amd64', operatingSystem: 'linux' }));

test.each<[string, ResourceList[], ResourceList[]]>([
  ['the largest of like ones', [{ cpu: '2' }, { cpu: '8' }, { cpu: '4' }], [{ cpu: '8' }]],
  ['one of several equal ones', [{ cpu: '8' }, { cpu: '8' }, { cpu: '8' }], [{ cpu: '8' }]],
  [
    'each that has the most of something',
    [
      { cpu: '2', memory: '64Gi' },
      { cpu: '16', memory: '32Gi' },
      { cpu: '1', memory: '1Gi', 'a.com/gpu': '1' },
      { cpu: '2', memory: '8Gi' },
    ],
    [
      { cpu: '16', memory: '32Gi' },
      { cpu: '2', memory: '64Gi' },
      { cpu: '1', memory: '1Gi', 'a.com/gpu': '1' },
    ],
  ],
  ['none where there are none', [], []],
])('of the nodes behind an offer are told: %s', (_what, all, expected) => {
  expect(nodeSizes({ shapes: shapes(...all) })).toEqual(expected);
});

test('what a forced runtime class costs each pod is not there for what the pod requests', () => {
  const podOverhead = { cpu: '250m', memory: '2Gi' };
  const all = shapes({ cpu: '4', memory: '1Gi', pods: '9' });
  expect(nodeSizes({ shapes: all, podOverhead })).toEqual([{ cpu: '3750m', memory: '0', pods: '9' }]);
});

test('however many sizes there are, what fits on a node fits one that is told', () => {
  const amount = fc.integer({ min: 1, max: 40 });
  fc.assert(
    fc.property(fc.array(fc.tuple(amount, amount, amount), { maxLength: 60 }), (nodes) => {
      const all = nodes.map(([cpu, memory, gpu]) => ({
        cpu: String(cpu),
        memory: `${memory}Gi`,
        'a.com/gpu': String(gpu),
      }));
      const told = nodeSizes({ shapes: shapes(...all) }).map(parseAmounts);
      expect(told.length).toBeLessThanOrEqual(MAX_NODE_SIZES);
      for (const pod of all.map(parseAmounts)) {
        expect(told.some((size) => [...pod].every(([name, milli]) => milli <= amountOf(size, name)))).toBe(
          true,
        );
      }
    }),
  );
});
