import { expect, test } from '@jest/globals';

import type { NamespaceOffloading, OffloadedCluster } from '../../../../src/api/namespace-offloading.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import { byStrategy, failedNodesOf, forgeWebhooks } from '../../../../src/offloading/admission/webhook.ts';

const offloading = (
  namespace: string,
  spec: NamespaceOffloading['spec'] = {},
  deletionTimestamp?: string,
): NamespaceOffloading => ({
  metadata: {
    name: 'offloading',
    namespace,
    uid: namespace,
    resourceVersion: '1',
    creationTimestamp: '',
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
  },
  spec,
});

const forged = (offloadings: NamespaceOffloading[]): ReturnType<typeof forgeWebhooks> =>
  forgeWebhooks({
    namespaces: byStrategy(offloadings, 'own'),
    clientConfig: { url: 'https://127.0.0.1:1/mutate-pods' },
    bundle: 'PEM',
  });

test('each namespace comes to the webhook of its strategy, in an order that does not change', () => {
  const webhooks = forged([
    offloading('web'),
    offloading('far', { podStrategy: 'Remote' }),
    offloading('shop', { podStrategy: 'LocalAndRemote' }),
    offloading('here', { podStrategy: 'Local' }),
  ]);
  expect(
    webhooks.map(({ name, failurePolicy, namespaceSelector }) => [
      name,
      failurePolicy,
      namespaceSelector?.matchExpressions,
    ]),
  ).toEqual([
    ['local.offloading.tributary.dev', 'Ignore', [expect.objectContaining({ values: ['here'] })]],
    [
      'local-and-remote.offloading.tributary.dev',
      'Ignore',
      [expect.objectContaining({ values: ['shop', 'web'] })],
    ],
    ['remote.offloading.tributary.dev', 'Fail', [expect.objectContaining({ values: ['far'] })]],
  ]);
  for (const { timeoutSeconds, sideEffects, clientConfig } of webhooks) {
    expect([timeoutSeconds, sideEffects]).toEqual([2, 'None']);
    expect(clientConfig.caBundle).toBe(Buffer.from('PEM').toString('base64'));
  }
});

test.each([
  ['none', []],
  [
    'what holds the cluster’s own parts',
    ['kube-system', 'tributary-system', 'own'].map((name) => offloading(name, { podStrategy: 'Remote' })),
  ],
  ['what is being removed', [offloading('far', { podStrategy: 'Remote' }, '2026-01-01T00:00:00Z')]],
])('%s is nobody’s business', (_what, offloadings) => {
  expect(forged(offloadings)).toEqual([]);
});

test('virtual nodes of clusters that have failed, or are about to lose the namespace', () => {
  const cluster = (phase: OffloadedCluster['phase'], ...virtualNodes: string[]): OffloadedCluster => ({
    cluster: phase,
    virtualNodes,
    phase,
    reason: '',
  });
  const clusters = [
    cluster('Ready', 'milan', 'milan-2'),
    cluster('Failed', 'rome', 'rome-2'),
    cluster('Pending', 'oslo'),
    cluster('Ending', 'bern'),
  ];
  const selected = ['milan', 'rome', 'rome-2', 'oslo'].map((name): VirtualNode => {
    const metadata = { name, uid: name, resourceVersion: '1', creationTimestamp: '' };
    return { metadata, spec: { kubeconfigSecretRef: { namespace: 's', name }, resources: {} } };
  });
  // milan-2 is selected no more, and shown while its pods end.
  expect(failedNodesOf({ ...offloading('shop'), status: { clusters } }, selected)).toEqual([
    'milan-2',
    'rome',
    'rome-2',
    'bern',
  ]);
  expect(failedNodesOf(undefined, [])).toEqual([]);
});
