import { describe, expect, test } from '@jest/globals';
import {
  asksForItself,
  hasBody,
  homeAdvice,
  isKeptAway,
  isRefusedForGood,
  workloadOf,
} from '../../../src/api/sent-abroad.ts';
import type { Pod, PodSpec } from '../../../src/api/wire.ts';

const NOW = '2026-01-01T00:00:00Z';
const TOLERATION = { key: 'tributary.dev/virtual-node', operator: 'Exists' } as const;

const required = (key: string, operator: string, values?: string[]): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key, operator, ...(values && { values }) }] }],
      },
    },
  },
});

interface More {
  metadata?: Partial<Pod['metadata']>;
  status?: NonNullable<Pod['status']>;
}

const pod = (spec: Partial<PodSpec>, { metadata = {}, status = {} }: More = {}): Pod => ({
  metadata: {
    name: 'hello-6f-x',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: NOW,
    ...metadata,
  },
  spec: { containers: [], ...spec },
  status: { phase: 'Pending', ...status },
});

const owned = (kind: string, name: string, labels = {}): More => ({
  metadata: {
    labels,
    ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: 'o', controller: true }],
  },
});
const OF_DEPLOYMENT = owned('ReplicaSet', 'hello-6f', { 'pod-template-hash': '6f' });
const refused = (reason: string): More => ({
  status: { phase: 'Pending', conditions: [{ type: 'tributary.dev/Offloaded', status: 'False', reason }] },
});

describe('what to change', () => {
  test.each<[string, Pod, string]>([
    [
      'the Deployment of docs/by-hand.md',
      pod(
        { ...required('tributary.dev/virtual-node', 'In', ['foreign']), tolerations: [TOLERATION] },
        OF_DEPLOYMENT,
      ),
      'take the nodeAffinity tributary.dev/virtual-node and the toleration of tributary.dev/virtual-node out of the pod template of Deployment hello',
    ],
    [
      'a nodeSelector',
      pod({ nodeSelector: { 'tributary.dev/node-type': 'virtual-node' } }, owned('StatefulSet', 'db')),
      'take the nodeSelector tributary.dev/node-type out of the pod template of StatefulSet db',
    ],
    [
      'the host name of the virtual node, and a toleration of everything',
      pod({
        nodeName: 'milan',
        nodeSelector: { 'kubernetes.io/hostname': 'milan', disk: 'fast' },
        tolerations: [{ operator: 'Exists' }],
      }),
      'take the nodeSelector kubernetes.io/hostname and the toleration of everything out of it, and make it anew',
    ],
    [
      'nothing that can be seen',
      pod({ nodeName: 'milan', ...required('tributary.dev/node-type', 'NotIn', ['virtual-node']) }),
      'delete it; if the next one gets there, too, look for a nodeName in it',
    ],
  ])('%s', (_what, one, advice) => {
    expect(homeAdvice(one)).toBe(advice);
    expect(asksForItself(one)).toBe(!advice.startsWith('delete'));
  });

  test('a ReplicaSet of its own is named as such', () => {
    expect(workloadOf(pod({}, owned('ReplicaSet', 'hello')))).toBe('ReplicaSet hello');
  });
});

describe('which pods are kept away', () => {
  const selecting = required('tributary.dev/virtual-node', 'Exists');
  test.each<[string, Pod, boolean]>([
    ['it was refused there', pod({}, refused('NamespaceNotOffloaded')), true],
    ['it waits for a node and asks for a virtual one', pod(selecting), true],
    ['it only tolerates virtual nodes', pod({ tolerations: [TOLERATION] }), false],
    ['it runs', pod(selecting, { status: { phase: 'Running', startTime: NOW } }), false],
    [
      'the webhook has let it in: others bring it home',
      pod(selecting, { metadata: { annotations: { 'tributary.dev/strategy': 'Remote' } } }),
      false,
    ],
    ['it goes', pod(selecting, { metadata: { deletionTimestamp: NOW } }), false],
    ['of a DaemonSet', pod(selecting, owned('DaemonSet', 'log')), false],
  ])('%s', (_what, one, expected) => {
    expect(isKeptAway(one)).toBe(expected);
  });
});

test.each<[string, Pod, { hasBody: boolean; isRefusedForGood: boolean }]>([
  ['new', pod({}), { hasBody: false, isRefusedForGood: false }],
  [
    'running',
    pod({}, { status: { phase: 'Running', startTime: NOW } }),
    { hasBody: true, isRefusedForGood: false },
  ],
  ['not offloaded', pod({}, refused('NamespaceNotOffloaded')), { hasBody: false, isRefusedForGood: true }],
  ['of a DaemonSet', pod({}, refused('DaemonSetNotOffloaded')), { hasBody: false, isRefusedForGood: true }],
  ['without room', pod({}, refused('ExceededQuota')), { hasBody: false, isRefusedForGood: false }],
])('what is over there of a pod: %s', (_what, one, expected) => {
  expect({ hasBody: hasBody(one), isRefusedForGood: isRefusedForGood(one) }).toEqual(expected);
});
