import { expect, test } from '@jest/globals';

import type { NamespaceOffloading } from '../../../../src/api/namespace-offloading.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { admit } from '../../../../src/offloading/admission/decide.ts';

const meta = { uid: 'u', resourceVersion: '', creationTimestamp: '' };
const pod = (labels: Record<string, string> = {}): Pod => ({
  metadata: { ...meta, name: 'web', labels },
  spec: { containers: [] },
});
const offloading = (podStrategy: 'Local' | 'Remote'): NamespaceOffloading => ({
  metadata: { ...meta, name: 'offloading', namespace: 'shop' },
  spec: { podStrategy },
});

test.each([
  ['of a Local namespace', pod(), offloading('Local')],
  ['with the label that keeps it', pod({ 'tributary.dev/offload': 'false' }), offloading('Remote')],
])('where a taint keeps nobody away, a pod %s is kept on real nodes by its affinity', (_, one, by) => {
  const facts = { offloading: by, failedNodes: [], nowMs: 0 };
  expect(admit(one, { ...facts, isOpen: false }).patch).toEqual([]);
  const real = { key: 'tributary.dev/node-type', operator: 'NotIn', values: ['virtual-node'] };
  const nodeSelectorTerms = [{ matchExpressions: [real] }];
  const requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms };
  expect(admit(one, { ...facts, isOpen: true }).patch).toEqual([
    {
      op: 'add',
      path: '/spec/affinity',
      value: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } },
    },
    { op: 'add', path: '/metadata/annotations', value: { 'tributary.dev/strategy': 'Local' } },
  ]);
});

test.each([
  ['no node is known yet', [], true],
  ['every node lets in all pods', [false, false], false],
  ['one of the nodes has its taint', [false, true], true],
])('where %s, a pod of a Remote namespace tolerates the taint or not', (_, taints, tolerates) => {
  const selected = taints.map((isTainted, i) => ({ name: `n${i}`, labels: {}, isTainted }));
  const { patch } = admit(pod(), {
    offloading: offloading('Remote'),
    failedNodes: [],
    selected,
    isOpen: true,
    nowMs: 0,
  });
  const toleration = { key: 'tributary.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' };
  const added = { op: 'add', path: '/spec/tolerations', value: [toleration] };
  expect(patch.filter(({ path }) => path === '/spec/tolerations')).toEqual(tolerates ? [added] : []);
});
