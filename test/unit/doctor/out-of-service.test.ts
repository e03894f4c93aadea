import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import { condition, facts } from './support/facts.ts';

const TAINT = 'node.kubernetes.io/out-of-service';

const findingOf = (status: string, taints: object[]): object | undefined => {
  const node = {
    metadata: { name: 'v' },
    spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } },
    status: { nodeName: 'milan', conditions: [condition('Ready', status, 'AsExpected')] },
  };
  const given = facts({
    virtualNodes: [node],
    nodes: [{ metadata: { name: 'milan' }, spec: { taints } }],
  });
  return examine(given).find(({ check }) => check === 'virtual-nodes');
};

test('a virtual node that answers again, and still counts as off', () => {
  expect(findingOf('True', [{ key: TAINT, effect: 'NoExecute' }])).toMatchObject({
    level: 'warning',
    cameBack: expect.stringContaining('keeps all pods away'),
    run: `kubectl taint node milan ${TAINT}-`,
  });
});

test.each<[string, string, object[], string]>([
  ['one that is off', 'False', [{ key: TAINT, effect: 'NoExecute' }], 'problem'],
  ['one with taints of others', 'True', [{ key: 'tributary.dev/virtual-node', effect: 'NoSchedule' }], 'ok'],
])('%s is as its condition says', (_, status, taints, level) => {
  expect(findingOf(status, taints)).toMatchObject({ level });
});
