import { expect, test } from '@jest/globals';

import type { OffloadedCluster } from '../../../src/api/namespace-offloading.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import { eventsFor, readyCondition, statusEntry } from '../../../src/offloading/status.ts';

const WHY = 'no new pods are sent there: cpu: 0.03 EUR asked, at most 0.01 EUR wanted';

const node = (name: string, reason: 'AsExpected' | 'Closed'): VirtualNode =>
  ({
    metadata: { name, labels: {} },
    spec: {
      kubeconfigSecretRef: { namespace: 's', name },
      resources: {},
      labels: { 'tributary.dev/cluster': 'turin' },
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'shop-x' }],
    },
    status: { conditions: [{ type: 'Ready', status: 'True', reason, message: WHY, lastTransitionTime: '' }] },
  }) as unknown as VirtualNode;

const entryOf = (...selected: VirtualNode[]): OffloadedCluster =>
  statusEntry({
    homeNamespace: 'shop',
    cluster: 'id',
    isPeer: true,
    virtualNodes: selected,
    selected,
    draining: [],
    atPeer: { state: 'Mapped', tenantNamespace: 'shop-x' },
  });
const closed = entryOf(node('a', 'Closed'));
const open: OffloadedCluster = { ...entryOf(node('a', 'AsExpected')), clusterName: 'milan' };

test('the namespace is in a cluster that takes no new pods, and the entry says why it takes none', () => {
  expect(closed).toMatchObject({
    phase: 'Ready',
    reason: 'VirtualNodeClosed',
    message: WHY,
    remoteNamespace: 'shop-x',
  });
  expect(entryOf(node('a', 'Closed'), node('b', 'AsExpected'))).toMatchObject({ reason: 'AsExpected' });
});

test('Ready stays True, and says which clusters take no new pods', () => {
  expect(readyCondition({ clusters: [closed, open] })).toMatchObject({
    status: 'True',
    reason: 'AsExpected',
    message: `in turin (${WHY}), milan`,
  });
});

test('where none takes new pods, that is the reason, and a warning', () => {
  const ready = readyCondition({ clusters: [closed] });
  expect(ready).toMatchObject({ status: 'True', reason: 'VirtualNodeClosed', message: `in turin (${WHY})` });
  const news = eventsFor({ ready: 'AsExpected', clusters: [open] }, { ready, clusters: [closed] });
  expect(news).toEqual([{ type: 'Warning', reason: 'VirtualNodeClosed', message: ready.message }]);
});
