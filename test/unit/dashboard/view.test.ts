import { expect, test } from '@jest/globals';

import type { ForeignCluster } from '../../../src/api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../../../src/api/names.ts';
import type { ObjectMeta } from '../../../src/api/wire.ts';
import { countPods, type Facts } from '../../../src/dashboard/facts.ts';
import { type DashboardModel, SECTION_KINDS, type SectionKind } from '../../../src/dashboard/model.ts';
import { viewOf } from '../../../src/dashboard/view.ts';

const MILAN = 'm'.repeat(26);
const AT = '2026-01-01T00:00:00Z';

const meta = (name: string, more: Partial<ObjectMeta> = {}): ObjectMeta => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: AT,
  ...more,
});

const facts = (more: Partial<Facts> = {}): Facts => ({
  own: { clusterID: 'r'.repeat(26), clusterName: 'rome' },
  clusters: [],
  requests: [],
  offers: [],
  tunnels: [],
  virtualNodes: [],
  offloadings: [],
  modes: [],
  namespaces: [],
  pods: new Map(),
  ...more,
});
const seen = (more: Partial<Facts>, may: readonly SectionKind[] = SECTION_KINDS): DashboardModel =>
  viewOf(facts(more), { user: 'ann', may: new Set(may), events: [] });

const milan = (status: ForeignCluster['status'] = {}): ForeignCluster => ({
  metadata: meta('far'),
  spec: { clusterID: MILAN },
  status: { clusterName: 'milan', ...status },
});
const tunnel = {
  metadata: meta(MILAN),
  spec: { clusterID: MILAN, access: 'None', transit: 'None' },
} as const;
const request = {
  metadata: meta(MILAN),
  spec: { clusterID: MILAN, namespaces: ['shop'] },
  status: { phase: 'Pending', reason: 'WaitingForApproval' },
} as const;
const node = {
  metadata: meta('vn-1', { labels: { [LABEL_PROVIDER]: MILAN } }),
  spec: {
    nodeName: 'milan-1',
    kubeconfigSecretRef: { namespace: 'a', name: 'b' },
    resources: { cpu: '4', memory: '8Gi', pods: '10' },
  },
};
const onNode = (namespace: string, name: string): { metadata: { namespace: string }; node: string } => ({
  metadata: { namespace },
  node: name,
});

test('what is said about one cluster by several kinds is one cluster', () => {
  const { clusters } = seen({
    clusters: [milan()],
    tunnels: [tunnel],
    requests: [request as never],
    virtualNodes: [node],
  });
  expect(clusters).toHaveLength(1);
  expect(clusters[0]).toMatchObject({
    name: 'far',
    title: 'milan',
    request: { waits: true, namespaces: ['shop'] },
    tunnel: { isReady: false },
    nodes: [{ name: 'milan-1' }],
  });
});

test('a cluster of which only a request is known is shown, too', () => {
  expect(seen({ requests: [request as never] }).clusters).toMatchObject([
    { title: 'mmmmmmmm…', clusterID: MILAN },
  ]);
});

test('a request that a person has decided about waits no more', () => {
  const decided = { ...request, spec: { ...request.spec, approval: 'Denied' } };
  expect(seen({ requests: [decided as never] }).clusters[0]?.request).toMatchObject({
    waits: false,
    word: 'Denied',
  });
});

test('pods count where they are', () => {
  const pods = countPods([onNode('shop', 'milan-1'), onNode('shop', 'milan-1'), onNode('shop', 'real')]);
  const { clusters, namespaces } = seen({
    clusters: [milan()],
    virtualNodes: [node],
    namespaces: ['shop'],
    pods,
  });
  expect(clusters[0]?.pods).toBe(2);
  expect(namespaces[0]?.places).toMatchObject([
    { title: 'rome', pods: 1 },
    { clusterID: MILAN, pods: 2 },
  ]);
});

test.each(SECTION_KINDS.filter((kind) => kind !== 'events'))(
  'without the right to list %s nothing of it is shown',
  (kind) => {
    const all = {
      clusters: [milan({ outgoing: { phase: 'Established' } })],
      requests: [request as never],
      tunnels: [tunnel],
      virtualNodes: [node],
      offloadings: [{ metadata: meta('offloading', { namespace: 'shop' }), spec: {} }],
      modes: [
        { metadata: meta('cluster'), status: { phase: 'Tethered' as const, mode: 'Tethered' as const } },
      ],
      namespaces: ['weather'],
      pods: countPods([onNode('shop', 'milan-1')]),
    };
    const text = JSON.stringify(
      seen(
        all,
        SECTION_KINDS.filter((one) => one !== kind),
      ),
    );
    const marks: Partial<Record<SectionKind, string>> = {
      foreignclusters: 'Established',
      peeringrequests: 'WaitingForApproval',
      tunnels: '"tunnel"',
      virtualnodes: 'milan-1',
      namespaceoffloadings: 'LocalAndRemote',
      clustermodes: '"tether"',
      namespaces: 'weather',
      pods: '"pods":1',
    };
    const mark = marks[kind];
    if (mark === undefined) return;
    expect(JSON.stringify(seen(all))).toContain(mark);
    expect(text).not.toContain(mark);
  },
);

test('texts of peers are one line, short, and without characters that turn them around', () => {
  const message = `a\u202Eb\n${'x'.repeat(5000)}`;
  const [cluster] = seen({ clusters: [milan({ outgoing: { phase: 'Denied', message } })] }).clusters;
  expect(cluster?.outgoing.message).toMatch(/^a b x+…$/u);
  expect(cluster?.outgoing.message?.length).toBeLessThanOrEqual(500);
});

test('a thousand clusters are cut, and it is said how many there are', () => {
  const clusters = Array.from({ length: 1000 }, (_, i) => ({ metadata: meta(`c${i}`) }));
  const model = seen({ clusters });
  expect(model.clusters).toHaveLength(100);
  expect(model.more.clusters).toBe(1000);
});

test('events come with the newest first', () => {
  const event = (name: string, lastTimestamp: string): object => ({
    metadata: { namespace: 'shop', name },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web' },
    reason: name,
    lastTimestamp,
  });
  const events = [event('Old', AT), event('New', '2026-01-02T00:00:00Z')] as never;
  const { news } = viewOf(facts(), { user: 'ann', may: new Set(['events']), events });
  expect(news.map(({ reason, about }) => [reason, about])).toEqual([
    ['New', 'Pod shop/web'],
    ['Old', 'Pod shop/web'],
  ]);
});
