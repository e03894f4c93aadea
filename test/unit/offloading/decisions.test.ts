import { describe, expect, test } from '@jest/globals';

import type {
  NamespaceOffloading,
  OffloadedCluster,
  PodStrategy,
} from '../../../src/api/namespace-offloading.ts';
import type { VirtualNode, VirtualNodeSpec } from '../../../src/api/virtual-node.ts';
import type { KubeObject, ObjectMeta, Pod, PodSpec } from '../../../src/api/wire.ts';
import { drainAction, type DrainContext } from '../../../src/offloading/drain.ts';
import { shortFormAction, type ShortFormAction } from '../../../src/offloading/short-form.ts';
import { type ClusterFacts, statusEntry, eventsFor, readyCondition } from '../../../src/offloading/status.ts';
import { isSelected, whyNotOffloadable } from '../../../src/offloading/view.ts';

const meta = (more: Partial<ObjectMeta> & { name: string }): ObjectMeta => ({
  uid: 'uid',
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
  ...more,
});
const namespace = (labels: Record<string, string> = {}, more: Partial<ObjectMeta> = {}): KubeObject => ({
  metadata: meta({ name: 'shop', labels, ...more }),
});
const offloading = (
  spec: NamespaceOffloading['spec'] = {},
  more: Partial<ObjectMeta> = {},
): NamespaceOffloading => ({ metadata: meta({ name: 'offloading', namespace: 'shop', ...more }), spec });

describe('short form', () => {
  const ours = (
    origin: string,
    podStrategy = 'LocalAndRemote',
    more: Partial<ObjectMeta> = {},
  ): NamespaceOffloading =>
    offloading(
      { podStrategy: podStrategy as 'Remote' },
      { labels: { 'tributary.dev/offloading-origin': origin }, ...more },
    );
  const act = (
    label: string | undefined,
    existing: NamespaceOffloading | undefined,
    more: { selector?: PodStrategy; refusal?: string; leaving?: boolean } = {},
  ): ShortFormAction =>
    shortFormAction({
      namespace: namespace(
        label === undefined ? { team: 'a' } : { team: 'a', 'tributary.dev/offload': label },
        {
          ...(more.leaving === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
        },
      ),
      offloading: existing,
      selected: more.selector && { selector: { matchLabels: { team: 'a' } }, podStrategy: more.selector },
      refusal: more.refusal,
    });
  const created = (origin: string, podStrategy: string): object => ({
    kind: 'Create',
    draft: {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'NamespaceOffloading',
      metadata: {
        name: 'offloading',
        namespace: 'shop',
        labels: { 'tributary.dev/offloading-origin': origin },
      },
      spec: { podStrategy },
    },
  });
  const NOTHING = { kind: 'Nothing' };

  test.each<[string, ShortFormAction, object]>([
    ['no wish', act(undefined, undefined), NOTHING],
    ['no wish, after a tether', act(undefined, ours('tether', 'Remote')), { kind: 'Delete' }],
    ['true, after a tether', act('true', ours('tether', 'Remote')), { kind: 'Delete' }],
    ['true', act('true', undefined), created('label', 'LocalAndRemote')],
    ['Local', act('Local', undefined), created('label', 'Local')],
    ['Remote', act('Remote', undefined), created('label', 'Remote')],
    ['LocalAndRemote', act('LocalAndRemote', undefined), created('label', 'LocalAndRemote')],
    [
      'the selector',
      act(undefined, undefined, { selector: 'LocalAndRemote' }),
      created('selector', 'LocalAndRemote'),
    ],
    [
      'the selector with a strategy',
      act(undefined, undefined, { selector: 'Remote' }),
      created('selector', 'Remote'),
    ],
    [
      'label before selector',
      act('Remote', undefined, { selector: 'LocalAndRemote' }),
      created('label', 'Remote'),
    ],
    ['false before selector', act('false', undefined, { selector: 'LocalAndRemote' }), NOTHING],
    [
      'false takes ours away',
      act('false', ours('selector'), { selector: 'LocalAndRemote' }),
      { kind: 'Delete' },
    ],
    [
      'a member of every object',
      act('constructor', undefined),
      expect.objectContaining({ kind: 'Complain' }),
    ],
    [
      'a wrong word changes nothing',
      act('remote', ours('label')),
      expect.objectContaining({
        reason: 'OffloadLabelInvalid',
        message: expect.stringMatching(
          /unknown value "remote".*go where they went before; allowed: true, .*Remote/,
        ),
      }),
    ],
    ['as it is', act('Remote', ours('label', 'Remote')), NOTHING],
    [
      'another strategy',
      act('Remote', ours('label')),
      { kind: 'Patch', body: { metadata: { uid: 'uid' }, spec: { podStrategy: 'Remote' } } },
    ],
    [
      'label instead of selector',
      act('true', ours('selector')),
      {
        kind: 'Patch',
        body: { metadata: { uid: 'uid', labels: { 'tributary.dev/offloading-origin': 'label' } } },
      },
    ],
    ['label gone', act(undefined, ours('label')), { kind: 'Delete' }],
    [
      'label gone, selector takes over',
      act(undefined, ours('label'), { selector: 'LocalAndRemote' }),
      expect.objectContaining({ kind: 'Patch' }),
    ],
    ['a person’s', act('Remote', offloading()), NOTHING],
    ['a person’s, without label', act(undefined, offloading()), NOTHING],
    ['ours, on its way out', act('Remote', ours('label', 'Local', { deletionTimestamp: 'x' })), NOTHING],
    ['a namespace on its way out', act('true', undefined, { leaving: true }), NOTHING],
    [
      'refused',
      act('true', undefined, { refusal: 'no' }),
      { kind: 'Complain', reason: 'OffloadingRefused', message: 'no' },
    ],
    ['refused, asked by nobody', act(undefined, undefined, { refusal: 'no', selector: 'Remote' }), NOTHING],
    ['refused since', act('true', ours('label'), { refusal: 'no' }), { kind: 'Delete' }],
  ])('%s', (_what, action, expected) => expect(action).toEqual(expected));
});

test.each([
  ['shop', {}, undefined],
  ['default', {}, undefined],
  ['kubeless', {}, undefined],
  ['kube-public', {}, 'holds parts of this cluster'],
  ['tributary-anything', {}, 'holds parts of this cluster'],
  ['ours', {}, 'holds parts of this cluster'],
  ['tenant', { 'tributary.dev/peer': 'abc' }, 'belongs to the peer abc'],
])('refused: %s %j', (name, labels, expected) => {
  const refusal = whyNotOffloadable({ metadata: meta({ name, labels }) }, 'ours');
  if (expected === undefined) expect(refusal).toBeUndefined();
  else expect(refusal).toContain(expected);
});

describe('a cluster', () => {
  const MAPPING = { homeNamespace: 'shop', tenantNamespace: 'shop-x' };
  const node = (
    name: string,
    spec: Partial<VirtualNodeSpec> = {},
    ready: 'True' | 'False' | 'Unsaid' = 'True',
  ): VirtualNode => ({
    metadata: meta({ name }),
    spec: { kubeconfigSecretRef: { namespace: 's', name }, resources: {}, ...spec },
    ...(ready !== 'Unsaid' && {
      status: {
        conditions: [{ type: 'Ready', status: ready, reason: 'R', message: 'why', lastTransitionTime: 'x' }],
      },
    }),
  });
  const facts = (more: Partial<ClusterFacts>): ClusterFacts => {
    const selected = more.selected ?? [node('milan', { namespaces: [MAPPING] })];
    return {
      homeNamespace: 'shop',
      cluster: 'id',
      isPeer: true,
      virtualNodes: selected,
      draining: [],
      atPeer: { state: 'Mapped', tenantNamespace: 'shop-x' },
      ...more,
      selected,
    };
  };
  test.each<[string, Partial<ClusterFacts>, string]>([
    ['all well', {}, 'Ready AsExpected shop-x'],
    ['no word', { atPeer: undefined }, 'Pending WaitingForProvider -'],
    [
      'name taken',
      { atPeer: { state: 'Withheld', reason: 'NameTaken', message: 'm' } },
      'Failed NameTaken -',
    ],
    [
      'name taken by what ends soon',
      { atPeer: { state: 'Withheld', reason: 'NameTaken', message: 'm', ending: true } },
      'Pending NameTaken -',
    ],
    [
      'naming refused',
      { atPeer: { state: 'Withheld', reason: 'NamingNotAllowed', message: '' } },
      'Failed NamingNotAllowed -',
    ],
    ['not mapped yet', { selected: [node('milan')] }, 'Pending WaitingForProvider shop-x'],
    [
      'agent not started',
      { selected: [node('milan', { namespaces: [MAPPING] }, 'Unsaid')] },
      'Pending VirtualNodeNotReady shop-x',
    ],
    [
      'not ready',
      { selected: [node('milan', { namespaces: [MAPPING] }, 'False')] },
      'Failed VirtualNodeNotReady shop-x',
    ],
    [
      'one of two is ready',
      { selected: [node('a', { namespaces: [MAPPING] }, 'False'), node('b', { namespaces: [MAPPING] })] },
      'Ready AsExpected shop-x',
    ],
    ['by hand, mapped', { isPeer: false, atPeer: undefined }, 'Ready AsExpected shop-x'],
    [
      'by hand, not mapped',
      { isPeer: false, atPeer: undefined, selected: [node('milan')] },
      'Failed NotMapped -',
    ],
    [
      'left',
      { selected: [], virtualNodes: [node('milan', { namespaces: [MAPPING] })] },
      'Ending Ending shop-x',
    ],
  ])('%s', (_what, more, expected) => {
    const { phase, reason, remoteNamespace = '-' } = statusEntry(facts(more));
    expect(`${phase} ${reason} ${remoteNamespace}`).toBe(expected);
  });

  test('the nodes of an entry are in order, and its name is that of their label', () => {
    const labels = { 'tributary.dev/cluster': 'Milan' };
    const entry = statusEntry(facts({ selected: [node('b'), node('a', { labels })] }));
    expect([entry.virtualNodes, entry.clusterName]).toEqual([['a', 'b'], 'Milan']);
  });

  test('a name that is taken is waited for, too', () => {
    const atPeer = { state: 'Withheld', reason: 'NameTaken', message: 'm' } as const;
    expect(statusEntry(facts({ atPeer })).message).toMatch(/^m; make .*Suffixed.* or wait: it is given/u);
  });

  test('a virtual node that is being left is shown beside those that are selected', () => {
    const { virtualNodes, phase, message } = statusEntry(facts({ draining: ['a'] }));
    expect([virtualNodes, phase, message]).toEqual([
      ['a', 'milan'],
      'Ready',
      'no longer selected: pods on a end',
    ]);
  });

  test('selection sees what the Node will have, and no VirtualNode that is on its way out', () => {
    const select = (spec: NamespaceOffloading['spec'], one: VirtualNode): boolean =>
      isSelected(offloading(spec), one);
    const typed = { clusterSelector: { matchLabels: { 'tributary.dev/node-type': 'virtual-node' } } };
    expect(select({}, node('a'))).toBe(true);
    expect(select(typed, node('a'))).toBe(true);
    expect(
      select({ clusterSelector: { matchLabels: { 'tributary.dev/virtual-node': 'b' } } }, node('a')),
    ).toBe(false);
    const leaving = { ...node('a'), metadata: meta({ name: 'a', deletionTimestamp: 'x' }) };
    expect(select({}, leaving)).toBe(false);
  });
});

describe('verdict', () => {
  const entry = (
    cluster: string,
    phase: OffloadedCluster['phase'],
    reason: OffloadedCluster['reason'] = 'NotMapped',
  ): OffloadedCluster => ({
    cluster,
    virtualNodes: [],
    phase,
    reason,
    message: 'why',
  });
  const [ready, pending, failed, ending] = (['Ready', 'Pending', 'Failed', 'Ending'] as const).map((phase) =>
    entry(phase, phase),
  ) as [OffloadedCluster, OffloadedCluster, OffloadedCluster, OffloadedCluster];
  test.each<[string, OffloadedCluster[], string, string]>([
    ['none', [], 'False', 'NoClusterSelected'],
    ['only one that is left', [ending], 'False', 'NoClusterSelected'],
    ['ready', [ready], 'True', 'AsExpected'],
    ['ready, one left', [ready, ending], 'True', 'AsExpected'],
    ['pending', [ready, pending], 'False', 'InProgress'],
    ['some failed', [ready, failed], 'False', 'SomeClustersFailed'],
    ['failed and pending', [pending, failed], 'False', 'SomeClustersFailed'],
    ['all failed', [failed, ending], 'False', 'AllClustersFailed'],
  ])('%s', (_what, clusters, status, reason) =>
    expect(readyCondition({ clusters })).toMatchObject({ status, reason }),
  );

  test('without any cluster it says whether the labels or the peering must change', () => {
    const selective = { clusters: [], isSelective: true };
    expect(readyCondition({ ...selective, hasVirtualNodes: true }).message).toContain('spec.clusterSelector');
    // Labels are not to blame where there is nothing to choose from.
    expect(readyCondition(selective).message).toMatch(/^there is no virtual node.*tributary peer/);
    expect(readyCondition({ clusters: [ending] }).message).toMatch(
      /^Ending: being left; besides, there is no other virtual node/,
    );
    expect(readyCondition({ clusters: [] }).message).toMatch(/^there is no virtual node.*foreignclusters/);
  });

  test('pods at home count when all else is well', () => {
    expect(readyCondition({ clusters: [ready], atHome: 'two' })).toMatchObject({
      status: 'False',
      reason: 'PodsAtHome',
      message: 'two',
    });
    expect(readyCondition({ clusters: [pending], atHome: 'two' }).reason).toBe('InProgress');
  });

  test('ending and refused come first', () => {
    expect(readyCondition({ clusters: [ready], isEnding: true, refusal: 'x' }).reason).toBe('Ending');
    expect(readyCondition({ clusters: [ready], refusal: 'x' })).toMatchObject({
      reason: 'SystemNamespace',
      message: 'x',
    });
  });

  interface Change {
    before?: string;
    clusters: OffloadedCluster[];
    now: OffloadedCluster[];
  }
  const AGAIN = 'AllClustersFailed';
  test.each<[string, Change, string[]]>([
    ['first', { clusters: [], now: [ready] }, ['Normal AsExpected']],
    ['the same again', { before: 'AsExpected', clusters: [ready], now: [ready] }, []],
    [
      'a failure',
      { before: 'AsExpected', clusters: [ready], now: [ready, failed] },
      ['Warning NotMapped', 'Warning SomeClustersFailed'],
    ],
    ['the same failure', { before: AGAIN, clusters: [failed], now: [failed] }, []],
    [
      'another cause',
      { before: AGAIN, clusters: [failed], now: [entry('Failed', 'Failed', 'NameTaken')] },
      ['Warning NameTaken'],
    ],
    [
      'a second one',
      { before: AGAIN, clusters: [failed], now: [failed, entry('x', 'Failed')] },
      ['Warning NotMapped'],
    ],
  ])('news: %s', (_what, { before, clusters, now }, expected) => {
    const news = eventsFor(
      { ready: before, clusters },
      { ready: readyCondition({ clusters: now }), clusters: now },
    );
    expect(news.map((one) => `${one.type} ${one.reason}`)).toEqual(expected);
  });
});

const pod = (more: Partial<ObjectMeta> = {}, spec: Partial<PodSpec> = {}, phase = 'Running'): Pod => ({
  metadata: meta({ name: 'p', namespace: 'shop', ...more }),
  spec: { containers: [], ...spec },
  status: { phase },
});
const owner = (kind: string, name = 'o', controller = true): Partial<ObjectMeta> => ({
  ownerReferences: [{ apiVersion: 'v1', kind, name, uid: 'u', controller }],
});
const LET_IN = { annotations: { 'tributary.dev/strategy': 'Remote' } };

describe('what a drain does with a pod', () => {
  const there = { nodeName: 'milan' };
  const context: DrainContext = {
    nodes: { peers: new Set(['milan']), byHand: new Set(['mine']) },
    onRemoval: 'Return',
    since: Date.UTC(2026, 0, 2),
    isRemoved: true,
  };
  const LATER = { creationTimestamp: '2026-01-03T00:00:00Z' };
  test.each<[string, Pod, Partial<DrainContext>, string]>([
    ['at home', pod({}, { nodeName: 'real' }), {}, 'Stay'],
    ['bare', pod({}, there), {}, 'Remake'],
    ['bare, to end', pod({}, there), { onRemoval: 'End' }, 'Delete'],
    ['bare, finished', pod({}, there, 'Failed'), {}, 'Delete'],
    ['owned', pod(owner('ReplicaSet'), there), {}, 'Delete'],
    ['owned, by nobody who replaces it', pod(owner('Workflow', 'w', false), there), {}, 'Remake'],
    ['a daemon', pod(owner('DaemonSet'), there), {}, 'Stay'],
    ['by hand, let in', pod(LET_IN, { nodeName: 'mine' }), {}, 'Remake'],
    ['by hand, of its own accord', pod({}, { nodeName: 'mine' }), {}, 'Stay'],
    ['waiting, let in', pod({ ...LET_IN, ...owner('ReplicaSet') }, {}, 'Pending'), {}, 'Delete'],
    ['waiting, of its own accord', pod({}, {}, 'Pending'), {}, 'Stay'],
    ['waiting, one cluster left', pod(LET_IN, {}, 'Pending'), { isRemoved: false }, 'Stay'],
    ['made since, let in', pod({ ...LET_IN, ...LATER }, there), {}, 'Remake'],
    ['made since, of its own accord', pod(LATER, there), {}, 'Stay'],
  ])('%s', (_what, one, more, expected) => expect(drainAction(one, { ...context, ...more })).toBe(expected));
});
