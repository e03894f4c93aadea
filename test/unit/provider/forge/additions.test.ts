import { expect, test } from '@jest/globals';
import { ANNOTATION_APPLIED } from '../../../../src/api/names.ts';
import type { PodAdditions } from '../../../../src/api/pod-additions.ts';
import { appliedOf } from '../../../../src/provider/forge/applied.ts';
import { nextChange } from '../../../../src/provider/forge/change.ts';
import type { ForgeContext } from '../../../../src/provider/forge/context.ts';
import { saidBy } from '../../../../src/provider/forge/context.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { CONTEXT, homePod, remotePod } from '../support/pods.ts';

const EDGE = { key: 'edge', operator: 'Exists' };
const ADDED: PodAdditions = {
  nodeSelector: { pool: 'rented' },
  tolerations: [EDGE, { operator: 'Exists' }, { key: 'tributary.dev/virtual-node', operator: 'Exists' }],
  runtimeClassName: 'hardened',
  labels: { cost: 'rent', tier: 'low', 'tributary.dev/home-uid': 'forged', 'x.tributary.dev/a': 'b' },
  annotations: { note: 'added', 'tributary.dev/applied': 'forged' },
};
const WITH: ForgeContext = { ...CONTEXT, podAdditions: ADDED };

test('a pod that says nothing gets all of it, but nothing that is ours, and no toleration of everything', () => {
  const { metadata, spec } = forgePod(homePod(), WITH);
  const bare = forgePod(homePod(), CONTEXT);
  expect(metadata.labels).toEqual({ ...bare.metadata.labels, cost: 'rent', tier: 'low' });
  expect(metadata.annotations).toEqual({ ...bare.metadata.annotations, note: 'added' });
  expect(spec).toEqual({
    ...bare.spec,
    nodeSelector: { pool: 'rented' },
    runtimeClassName: 'hardened',
    tolerations: [EDGE],
  });
});

test('what the pod itself says comes first; its node selector speaks of nodes at home', () => {
  const other = { key: 'edge', operator: 'Equal', value: 'a' };
  const home = homePod({
    metadata: { labels: { tier: 'high' }, annotations: { note: 'own' } },
    spec: { runtimeClassName: 'own', nodeSelector: { pool: 'home' }, tolerations: [other, EDGE] },
  });
  const { metadata, spec } = forgePod(home, WITH);
  expect(metadata.labels).toMatchObject({ tier: 'high', cost: 'rent' });
  expect(metadata.annotations).toMatchObject({ note: 'own' });
  expect(spec).toMatchObject({
    runtimeClassName: 'own',
    nodeSelector: { pool: 'rented' },
    tolerations: [other, EDGE],
  });
});

test('a label that home takes away again gives way to the one that was added', () => {
  const before = homePod({ metadata: { labels: { tier: 'high', old: 'x' }, annotations: { note: 'own' } } });
  const remote = remotePod(before, {
    metadata: { annotations: { [ANNOTATION_APPLIED]: JSON.stringify(appliedOf(before)) } },
  });
  expect(nextChange(homePod(), remote, WITH)?.patch).toMatchObject({
    metadata: { labels: { tier: 'low', old: null }, annotations: { note: 'added' } },
  });
});

test('the VirtualNode says what is added', () => {
  const virtualNode = {
    metadata: { name: 'rome', uid: 'v', resourceVersion: '1', creationTimestamp: '' },
    spec: {
      kubeconfigSecretRef: { namespace: 'a', name: 'b' },
      resources: {},
      labels: { 'example.com/cloud': 'x' },
      podAdditions: ADDED,
      priorityClasses: ['quiet'],
    },
  };
  const said = saidBy(virtualNode);
  expect(said.priorityClasses).toEqual(['quiet']);
  expect(said.podAdditions).toEqual(ADDED);
  expect([said.nodeHas?.('example.com/cloud'), said.nodeHas?.('rack')]).toEqual([true, false]);
});
