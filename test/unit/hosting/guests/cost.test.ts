import { expect, test } from '@jest/globals';

import { formatAmounts } from '../../../../src/api/amounts.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { costOf } from '../../../../src/hosting/guests/cost.ts';

const pod = (spec: object, status: object = {}): Pod =>
  ({ metadata: { name: 'a' }, spec: { containers: [], ...spec }, status }) as unknown as Pod;
const asking = (requests: object): object => ({ name: 'main', resources: { requests } });

test.each<[string, Pod, Record<string, string>]>([
  ['a pod that asks for nothing', pod({}), { pods: '1' }],
  [
    'what containers, sidecars and the runtime need together',
    pod({
      containers: [asking({ cpu: '1', 'example.com/gpu': '2' })],
      initContainers: [{ ...asking({ cpu: '500m' }), restartPolicy: 'Always' }, asking({ cpu: '1' })],
      overhead: { cpu: '250m', memory: '1Mi' },
    }),
    { cpu: '1750m', 'example.com/gpu': '2', memory: '1Mi', pods: '1' },
  ],
  [
    'requests, and not limits',
    pod({ containers: [{ name: 'main', resources: { limits: { cpu: '8' }, requests: { cpu: '1' } } }] }),
    { cpu: '1', pods: '1' },
  ],
  [
    'requests of the pod as a whole',
    pod({ containers: [asking({ cpu: '1' })], resources: { requests: { cpu: '3' } } }),
    { cpu: '3', pods: '1' },
  ],
  [
    'a pod that shrinks and has not shrunk yet',
    pod(
      { containers: [asking({ cpu: '1' })] },
      { containerStatuses: [{ name: 'main', resources: { requests: { cpu: '2' } } }] },
    ),
    { cpu: '2', pods: '1' },
  ],
  ['a finished pod', pod({ containers: [asking({ cpu: '1' })] }, { phase: 'Succeeded' }), {}],
  ['a failed pod', pod({ containers: [asking({ cpu: '1' })] }, { phase: 'Failed' }), {}],
  [
    'less than nothing',
    pod({ containers: [asking({ cpu: '-5' }), asking({ cpu: '1' })] }),
    { cpu: '1', pods: '1' },
  ],
])('%s', (_what, what, cost) => {
  expect(formatAmounts(costOf(what))).toEqual(cost);
});

test.each(['NaN', 'Infinity', '', '1e999', '0x10', '9'.repeat(40), '{}'])('%j is no amount', (cpu) => {
  expect(() => costOf(pod({ containers: [asking({ cpu })] }))).toThrow(/not a quantity/u);
});

test('a resource by a name that means something to JavaScript is a resource', () => {
  const requests = JSON.parse('{"__proto__":"1","constructor":"2"}') as object;
  expect([...costOf(pod({ containers: [asking(requests)] }))]).toEqual([
    ['__proto__', 1000n],
    ['constructor', 2000n],
    ['pods', 1000n],
  ]);
});
