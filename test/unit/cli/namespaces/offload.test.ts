import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { NamespaceOffloadingStatus } from '../../../../src/api/namespace-offloading.ts';
import { namespaces, nodes, pods } from '../../../../src/api/resources.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { offloadCommand } from '../../../../src/cli/namespaces/offload.ts';
import { CliWorld } from '../support/cli-world.ts';
import { offloadingsOf, ORIGIN } from './support/offloading.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const TURIN = 'turin'.padEnd(26, 'b');

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  world.seed(namespaces, { metadata: { name: 'shop' } });
  virtualNode('milan', MILAN);
  virtualNode('turin', TURIN);
});
afterEach(async () => world.stop());

function virtualNode(name: string, provider?: string, ready: object = { status: 'True' }): void {
  world.seed(virtualNodes, {
    metadata: { name, ...(provider !== undefined && { labels: { 'tributary.dev/provider': provider } }) },
    spec: {
      resources: {},
      labels: { 'tributary.dev/cluster': name, tier: name === 'milan' ? 'gold' : 'tin' },
    },
    status: { conditions: [{ type: 'Ready', ...ready }] },
  });
  const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
  world.seed(nodes, {
    metadata: { name, labels: { 'tributary.dev/node-type': 'virtual-node' } },
    status: { allocatable },
  });
}

const { stored, existing, answers } = offloadingsOf(() => world);

const entry = (name: string, more: object = {}): object => ({
  cluster: name === 'milan' ? MILAN : TURIN,
  clusterName: name,
  virtualNodes: [name],
  remoteNamespace: `shop-${name}`,
  phase: 'Ready',
  reason: 'AsExpected',
  ...more,
});
const ready = (...clusters: object[]): NamespaceOffloadingStatus =>
  ({
    clusters,
    conditions: [{ type: 'Ready', status: 'True', reason: 'AsExpected', message: 'in all' }],
  }) as unknown as NamespaceOffloadingStatus;

test('ends when the clusters have it, and says where and how many pods could run', async () => {
  answers(ready(entry('milan'), entry('turin')));
  world.seed(pods, {
    metadata: { namespace: 'shop', name: 'web' },
    spec: {
      nodeName: 'milan',
      containers: [{ name: 'a', resources: { requests: { cpu: '500m', memory: '1Gi' } } }],
    },
    status: { phase: 'Running' },
  });
  const { code, out, err } = await world.run(offloadCommand, 'shop');
  expect([code, err]).toEqual([0, '']);
  expect(out).toBe(
    'NamespaceOffloading shop/offloading made\n' +
      'CLUSTER   NAMESPACE THERE   STATE   PODS FREE   CPU FREE   MEMORY FREE\n' +
      'milan     shop-milan        Ready   9           3.5        7Gi\n' +
      'turin     shop-turin        Ready   10          4          8Gi\n',
  );
  expect(stored()?.spec).toEqual({ podStrategy: 'LocalAndRemote' });
  expect((await world.run(offloadCommand, 'shop')).out).toContain('is unchanged\n');
});

test('of a cluster to which no new pods are sent it says why, and counts no room', async () => {
  const why = 'no new pods are sent there: cpu: 0.03 EUR asked, at most 0.01 EUR wanted';
  answers(ready(entry('rome', { reason: 'VirtualNodeClosed', message: why }), entry('turin')));
  virtualNode('rome', TURIN, { status: 'True', reason: 'Closed', message: why });
  const { code, out } = await world.run(offloadCommand, 'shop');
  expect(code).toBe(0);
  expect(out).toMatch(/\nrome +shop-rome +closed *\n/);
  expect(out).toContain(`\nrome: ${why}\n`);
});

test('names of clusters become ClusterIDs, which no provider can choose', async () => {
  answers(ready(entry('milan')));
  const line =
    'shop --strategy Remote --clusters milan --name-mapping store --existing-pods Move --when-away Home:5m';
  expect((await world.run(offloadCommand, line)).code).toBe(0);
  expect(stored()?.spec).toEqual({
    podStrategy: 'Remote',
    naming: 'Selected',
    remoteName: 'store',
    existingPods: 'Move',
    whenAway: { pods: 'Move', afterSeconds: 300, to: 'Home' },
    clusterSelector: {
      matchExpressions: [{ key: 'tributary.dev/provider', operator: 'In', values: [MILAN] }],
    },
  });
});

test('--dry-run prints what would be written, and writes nothing', async () => {
  const { code, out } = await world.run(offloadCommand, 'shop --clusters tier=gold --dry-run');
  expect(code).toBe(0);
  expect(out).toBe(`apiVersion: tributary.dev/v1alpha1
kind: NamespaceOffloading
metadata:
  name: offloading
  namespace: shop
spec:
  podStrategy: LocalAndRemote
  clusterSelector:
    matchLabels:
      tier: gold
`);
  expect(stored()).toBeUndefined();
});

test('while it waits it says for what, and after the time what is the matter', async () => {
  const pending = entry('milan', { phase: 'Pending', reason: 'WaitingForProvider' });
  const message = 'milan: WaitingForProvider';
  const conditions = [{ type: 'Ready', status: 'False', reason: 'InProgress', message }];
  answers({ clusters: [pending], conditions } as unknown as NamespaceOffloadingStatus);
  const { code, out, err } = await world.run(offloadCommand, 'shop --timeout 2s');
  expect(code).toBe(1);
  expect(out).toContain('  InProgress: milan: WaitingForProvider\n');
  expect(err).toContain(
    'Namespace shop is not ready in every cluster after 2 s. The role cluster goes on trying. To see why: kubectl -n shop describe namespaceoffloading',
  );
});

test('what no time would change ends it at once', async () => {
  const refused = entry('turin', { phase: 'Failed', reason: 'NameTaken', message: 'somebody has it' });
  answers({ clusters: [entry('milan'), refused], conditions: [] } as unknown as NamespaceOffloadingStatus);
  const { code, err } = await world.run(offloadCommand, 'shop --timeout 1h');
  expect([code, err]).toEqual([1, 'Not in turin: NameTaken: somebody has it\n']);
});

test('pods that were made earlier are named, with the way to move them', async () => {
  answers({ ...ready(entry('milan')), podsAtHome: 3 });
  expect((await world.run(offloadCommand, 'shop')).out).toContain(
    '3 pod(s) that were made earlier are on nodes here: they stay; to move them: ' +
      'tributary offload shop --existing-pods Move --overwrite\n',
  );
});

describe('what somebody has set', () => {
  test('is not changed without being told', async () => {
    existing({ podStrategy: 'Local', holdOffSeconds: 7 });
    answers(ready(entry('milan')));
    const refused = await world.run(offloadCommand, 'shop --strategy Remote');
    expect([refused.code, refused.err]).toEqual([
      1,
      'shop is offloaded already with podStrategy "Local"; to change that, add --overwrite\n',
    ]);
    expect(stored()?.spec).toEqual({ podStrategy: 'Local', holdOffSeconds: 7 });
    expect((await world.run(offloadCommand, 'shop --strategy Remote --overwrite')).code).toBe(0);
    expect(stored()?.spec).toEqual({ podStrategy: 'Remote', holdOffSeconds: 7 });
  });

  test('another placement is said to be for new pods only', async () => {
    existing({ placement: 'Hard' });
    answers(ready(entry('milan')));
    const { out } = await world.run(offloadCommand, 'shop --placement Soft --overwrite');
    expect(out).toContain('Placement Soft is for new pods. Pods of before keep the rules of Hard');
    expect((await world.run(offloadCommand, 'shop --placement Soft')).out).not.toContain('new pods');
  });

  test('a field that nobody has set is added, also to what a label has made', async () => {
    existing({ podStrategy: 'LocalAndRemote' }, { labels: { [ORIGIN]: 'label' } });
    answers(ready(entry('milan')));
    expect((await world.run(offloadCommand, 'shop --clusters milan')).code).toBe(0);
    expect(stored()?.metadata.labels).toEqual({ [ORIGIN]: 'label' });
    expect(stored()?.spec.clusterSelector).toBeDefined();
  });

  test('the strategy of what a label has made is taken over from the label', async () => {
    existing({ podStrategy: 'LocalAndRemote' }, { labels: { [ORIGIN]: 'label' } });
    answers(ready(entry('milan')));
    const refused = await world.run(offloadCommand, 'shop --strategy Remote');
    expect(refused.err).toContain('"LocalAndRemote", by its label; to change that, add --overwrite');
    expect((await world.run(offloadCommand, 'shop --strategy Remote --overwrite')).code).toBe(0);
    expect(stored()?.metadata.labels ?? {}).toEqual({});
  });

  test('a write of the role in between is no failure', async () => {
    existing({ podStrategy: 'Local' });
    answers(ready(entry('milan')));
    world.api.fault({ match: ({ method }) => method === 'PUT', status: 409, message: 'changed' });
    expect((await world.run(offloadCommand, 'shop --strategy Remote --overwrite')).code).toBe(0);
    expect(stored()?.spec.podStrategy).toBe('Remote');
  });
});

test.each([
  ['', 2, 'NAMESPACE is missing'],
  ['Shop', 2, 'NAMESPACE "Shop" is not a DNS name'],
  [
    'kube-system',
    2,
    'namespace kube-system holds parts of the cluster itself (kube-*, tributary-*) and never leaves it',
  ],
  ['none', 1, 'there is no namespace "none"; make it with: kubectl create namespace none'],
  ['guest', 2, `namespace guest is of the peer ${MILAN}: what a peer brings is not lent`],
  ['shop --strategy remote', 2, '--strategy must be one of Local, LocalAndRemote, Remote, not "remote"'],
  ['shop --existing-pods Evict', 2, '--existing-pods must be one of Stay, Move, not "Evict"'],
  ['shop --when-away Home', 2, '--when-away: "Home" is not Stay, Anywhere:DURATION or Home:DURATION'],
  ['shop --when-away Home:soon', 2, '--when-away: "soon" is not a duration from 0s'],
  ['shop --name-mapping Store', 2, '--name-mapping "Store" is not a DNS name'],
  ['shop --clusters ,', 2, '--clusters needs a name, or LABEL=VALUE'],
  ['shop --clusters milan,tier=gold', 2, '--clusters takes names or LABEL=VALUE, not both at once'],
  ['shop --clusters tier=gold,tier=tin', 2, 'a node has one value of tier, not both "gold" and "tin"'],
  ['shop --clusters -x=1', 2, '--clusters: "-x=1" is not LABEL=VALUE'],
  ['shop --clusters tier=lead', 1, 'no virtual node has the labels of --clusters; there are: milan, turin'],
  ['shop --clusters rome', 1, 'no cluster "rome" has a virtual node here; there are: milan, turin'],
  [
    'shop --clusters hand',
    2,
    'VirtualNode hand was made by hand: select it with --clusters tributary.dev/virtual-node=hand',
  ],
  ['shop --timeout soon', 2, '--timeout: "soon" is not a duration'],
])('offload %s: %i', async (line, code, message) => {
  if (message.includes('guest')) {
    world.seed(namespaces, { metadata: { name: 'guest', labels: { 'tributary.dev/peer': MILAN } } });
  }
  if (message.includes('by hand')) virtualNode('hand');
  const outcome = await world.run(offloadCommand, line);
  expect([outcome.code, outcome.out]).toEqual([code, '']);
  expect(outcome.err).toContain(message);
  expect(stored()).toBeUndefined();
});

test('without a virtual node nothing is begun', async () => {
  for (const name of ['milan', 'turin']) world.api.storage.remove('virtualnodes.tributary.dev', name);
  const { code, err } = await world.run(offloadCommand, 'shop');
  expect([code, err]).toEqual([
    1,
    'there is no virtual node, so no foreign cluster would take pods; peer with one first: tributary peer --help\n',
  ]);
  expect(stored()).toBeUndefined();
});

test.each([
  [
    { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] },
    'shop',
    'pods of shop are just coming home',
  ],
  [
    { labels: { [ORIGIN]: 'tether' } },
    'shop --strategy Remote',
    'the tether of this cluster decides where pods',
  ],
  [
    {},
    'shop --name-mapping Same',
    'naming of shop is "Suffixed" and cannot be changed; first: tributary unoffload shop',
  ],
])('what is there stands against it: %j', async (metadata, line, message) => {
  existing({ podStrategy: 'Local', naming: 'Suffixed' }, metadata);
  const { code, err } = await world.run(offloadCommand, `${line} --overwrite`);
  expect(code).toBe(1);
  expect(err).toContain(message);
});
