import { expect, test } from '@jest/globals';

import type { NamespaceOffloading, OffloadedCluster } from '../../../../src/api/namespace-offloading.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import type { Condition } from '../../../../src/api/wire.ts';
import { failedNodesOf } from '../../../../src/offloading/admission/node-facts.ts';
import { byStrategy, forgeWebhooks } from '../../../../src/offloading/admission/webhook.ts';
import type { SelectedNamespaces } from '../../../../src/offloading/short-form.ts';

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

const forgedAll = (
  offloadings: NamespaceOffloading[],
  selected?: SelectedNamespaces,
  isOpen = false,
): ReturnType<typeof forgeWebhooks> =>
  forgeWebhooks({
    namespaces: byStrategy(offloadings, 'own'),
    systemNamespace: 'own',
    selected,
    isOpen,
    place: (path) => ({ clientConfig: { url: `https://127.0.0.1:1${path}` }, bundle: 'PEM' }),
  });

/** Of the objects; those of labels are always there. */
const forged = (offloadings: NamespaceOffloading[]): ReturnType<typeof forgeWebhooks> =>
  forgedAll(offloadings).filter(({ name }) => !name.includes('.label.'));

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

test('labels are asked about from the first moment of a namespace, each strategy at a path of its own', () => {
  const [local, both, remote] = forgedAll([offloading('far', { podStrategy: 'Remote' })]).filter(({ name }) =>
    name.includes('.label.'),
  );
  expect([local, both, remote].map((one) => [one?.name, one?.failurePolicy, one?.clientConfig.url])).toEqual([
    ['local.label.offloading.tributary.dev', 'Ignore', 'https://127.0.0.1:1/mutate-pods/local'],
    [
      'local-and-remote.label.offloading.tributary.dev',
      'Ignore',
      'https://127.0.0.1:1/mutate-pods/local-and-remote',
    ],
    ['remote.label.offloading.tributary.dev', 'Fail', 'https://127.0.0.1:1/mutate-pods/remote'],
  ]);
  expect(both?.namespaceSelector?.matchExpressions).toEqual([
    { key: 'tributary.dev/offload', operator: 'In', values: ['true', 'LocalAndRemote'] },
    { key: 'tributary.dev/peer', operator: 'DoesNotExist' },
    // Its object says more than its label, and our own namespace never leaves.
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['far', 'own'] },
  ]);
  for (const one of [local, both, remote]) {
    expect(one?.matchConditions?.[0]?.expression).toBe("!request.namespace.matches('^(kube|tributary)-')");
  }
});

test('where a taint keeps nobody away, pods that are to stay home are asked about, too', () => {
  const names = (isOpen: boolean): (string[] | undefined)[] =>
    forgedAll([offloading('here', { podStrategy: 'Local' })], undefined, isOpen).map(({ matchConditions }) =>
      matchConditions?.map(({ name }) => name),
    );
  const always = ['not-bound', 'not-of-a-daemon-set'];
  const byLabel = ['not-of-the-cluster', ...always];
  expect(names(true)).toEqual([always, byLabel, byLabel, byLabel]);
  expect(names(false)).toEqual([
    [...always, 'tolerates-virtual-nodes'],
    [...byLabel, 'tolerates-virtual-nodes'],
    [...byLabel, 'not-kept-home'],
    [...byLabel, 'not-kept-home'],
  ]);
});

test('so is what the operator selects, with its strategy, where no label says otherwise', () => {
  const selector = {
    matchLabels: { team: 'a' },
    matchExpressions: [{ key: 'old', operator: 'DoesNotExist' as const }],
  };
  const all = forgedAll([], { selector, podStrategy: 'Remote' });
  const [one, ...others] = all.filter(({ name }) => name.includes('.selector.'));
  expect(others).toEqual([]);
  expect(one).toMatchObject({ name: 'remote.selector.offloading.tributary.dev', failurePolicy: 'Fail' });
  expect(one?.namespaceSelector?.matchExpressions?.slice(0, 3)).toEqual([
    { key: 'tributary.dev/offload', operator: 'DoesNotExist' },
    { key: 'team', operator: 'In', values: ['a'] },
    { key: 'old', operator: 'DoesNotExist' },
  ]);
});

test('virtual nodes of clusters that have failed, or are about to lose the namespace', () => {
  const cluster = (phase: OffloadedCluster['phase'], ...virtualNodes: string[]): OffloadedCluster => ({
    cluster: phase,
    virtualNodes,
    phase,
    reason: 'AsExpected',
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
  expect(failedNodesOf({ ...offloading('shop'), status: { clusters } }, selected, 0)).toEqual([
    'milan-2',
    'rome',
    'rome-2',
    'bern',
  ]);
  expect(failedNodesOf(undefined, [], 0)).toEqual([]);
});

test.each([
  ['not Ready for a moment', 'False', 19_000, []],
  ['not Ready for long', 'False', 20_000, ['milan']],
  ['Ready again, which the object does not say yet', 'True', 60_000, []],
  ['by a clock that is behind', 'False', -5_000, []],
] as const)('a virtual node that is %s', (_what, status, forMs, expected) => {
  const since = Date.parse('2026-01-01T00:00:00Z');
  const ready: Condition = {
    type: 'Ready',
    status,
    reason: 'NotAuthorized',
    message: '',
    lastTransitionTime: new Date(since).toISOString(),
  };
  const milan: VirtualNode = {
    metadata: { name: 'milan', uid: 'm', resourceVersion: '1', creationTimestamp: '' },
    spec: { kubeconfigSecretRef: { namespace: 's', name: 'milan' }, resources: {} },
    status: { conditions: [ready] },
  };
  const cluster: OffloadedCluster = {
    cluster: 'm',
    virtualNodes: ['milan'],
    phase: 'Failed',
    reason: 'VirtualNodeNotReady',
  };
  const shop = { ...offloading('shop'), status: { clusters: [cluster] } };
  expect(failedNodesOf(shop, [milan], since + forMs)).toEqual(expected);
});
