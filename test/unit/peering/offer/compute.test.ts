import { expect, test } from '@jest/globals';
import type { SharingPolicySpec } from '../../../../src/api/sharing-policy.ts';
import type { Node, Pod, ResourceList } from '../../../../src/api/wire.ts';
import { parseMilli } from '../../../../src/lib/quantity.ts';
import { checkOffer } from '../../../../src/peering/offer/check.ts';
import { computeOffer, type OfferTerms } from '../../../../src/peering/offer/compute.ts';
import { freeOf, type Promises } from '../../../../src/peering/offer/free.ts';
import type { Stock } from '../../../../src/peering/offer/stock.ts';
import { anOffer, consumer, NOW_MS, provider, signed } from '../support/offers.ts';
import { aNode, aPod, lendingPolicy, stockOf } from '../support/stock.ts';
import { fc } from '../../../support/property.ts';

const ME = consumer.clusterID;
const OTHER = 'b'.repeat(26);
const tenants = { mine: ME, theirs: OTHER, old: 'by-hand' };

const promises = (
  promised: Record<string, ResourceList>,
  pools: Record<string, Record<string, string>> = {},
): Promises =>
  new Map(
    Object.entries(promised).map(([peer, resources]) => [
      peer,
      { resources, ...(pools[peer] && { nodeSelector: pools[peer] }) },
    ]),
  );

function termsOf(
  stock: Stock,
  spec: Partial<SharingPolicySpec> = {},
  promised: Record<string, ResourceList> = {},
  pools: Record<string, Record<string, string>> = {},
): OfferTerms {
  return computeOffer(stock, lendingPolicy(spec), {
    consumer: ME,
    promised: promises(promised, pools),
  });
}

interface Row {
  nodes?: Node[];
  pods?: Pod[];
  spec?: Partial<SharingPolicySpec>;
  promised?: Record<string, ResourceList>;
  offered: ResourceList;
}

const gpus = (count: string): Node =>
  aNode(`g${count}`, { allocatable: { cpu: '4', memory: '8Gi', pods: '100', 'nvidia.com/gpu': count } });

test.each<[string, Row]>([
  ['all that is free', { offered: { cpu: '4', memory: '8Gi', pods: '100' } }],
  ['a share of it', { spec: { sharePercent: 50 }, offered: { cpu: '2', memory: '4Gi', pods: '50' } }],
  ['a share of nothing', { spec: { sharePercent: 0 }, offered: { cpu: '0', memory: '0', pods: '0' } }],
  [
    'half by default',
    { spec: { sharePercent: undefined } as object, offered: { cpu: '2', memory: '4Gi', pods: '50' } },
  ],
  [
    'nothing of a share that is no number',
    { spec: { sharePercent: Number.NaN }, offered: { cpu: '0', memory: '0', pods: '0' } },
  ],
  [
    'what our own pods leave, rounded down',
    {
      pods: [aPod('shop/a', 'n', { cpu: '1001m', memory: '1' })],
      offered: { cpu: '2990m', memory: '8191Mi', pods: '99' },
    },
  ],
  [
    'what another was promised is gone before its pods come',
    { promised: { [OTHER]: { cpu: '3', pods: '10' } }, offered: { cpu: '1', memory: '8Gi', pods: '90' } },
  ],
  [
    'and not gone twice when they have come',
    {
      pods: [aPod('theirs/a', 'n', { cpu: '2' })],
      promised: { [OTHER]: { cpu: '3', pods: '10' } },
      offered: { cpu: '1', memory: '8Gi', pods: '90' },
    },
  ],
  [
    'but what they use beyond the promise is',
    {
      pods: [aPod('theirs/a', 'n', { cpu: '2', memory: '1Gi' })],
      promised: { [OTHER]: { cpu: '1', pods: '10' } },
      offered: { cpu: '2', memory: '7Gi', pods: '90' },
    },
  ],
  [
    'pods of a tenant that people made count as they run',
    { pods: [aPod('old/a', 'n', { cpu: '1' })], offered: { cpu: '3', memory: '8Gi', pods: '99' } },
  ],
  [
    "the asking peer's own pods and promise count as free for it",
    {
      pods: [aPod('mine/a', 'n', { cpu: '2' })],
      promised: { [ME]: { cpu: '3', memory: '8Gi' } },
      offered: { cpu: '4', memory: '8Gi', pods: '100' },
    },
  ],
  [
    'never less than nothing',
    {
      pods: [aPod('shop/a', 'n', { cpu: '9', memory: '1Gi' })],
      promised: { [OTHER]: { pods: '1000' } },
      offered: { cpu: '0', memory: '0', pods: '0' },
    },
  ],
  [
    'no more than the limits',
    {
      spec: { limits: { cpu: '1500m', memory: '1Ti' } },
      offered: { cpu: '1500m', memory: '8Gi', pods: '100' },
    },
  ],
  [
    'storage as far as it is limited',
    {
      spec: { limits: { storage: '1Ti' } },
      offered: { cpu: '4', memory: '8Gi', pods: '100', storage: '1Ti' },
    },
  ],
  [
    'nothing that is held back',
    {
      nodes: [gpus('2')],
      spec: { withhold: ['nvidia.com/gpu', 'storage'], limits: { storage: '1Ti' } },
      offered: { cpu: '4', memory: '8Gi', pods: '100' },
    },
  ],
  [
    'devices as whole ones, though each node has half of one to lend',
    {
      nodes: [gpus('1'), gpus('2')],
      spec: { sharePercent: 50 },
      offered: { cpu: '4', memory: '8Gi', pods: '100', 'nvidia.com/gpu': '1' },
    },
  ],
  [
    'no device of a policy alone',
    { spec: { limits: { 'nvidia.com/gpu': '4' } }, offered: { cpu: '4', memory: '8Gi', pods: '100' } },
  ],
  [
    'only what a peer may be offered',
    {
      nodes: [
        aNode('n', {
          allocatable: {
            cpu: '4',
            memory: '8Gi',
            pods: '100',
            'hugepages-2Mi': '4Mi',
            'hugepages-1Gi': '0',
            'attachable-volumes-x': '9',
            'x.kubernetes.io/y': '1',
          },
        }),
      ],
      offered: { cpu: '4', memory: '8Gi', pods: '100', 'hugepages-2Mi': '4Mi' },
    },
  ],
  ['nothing without a node', { nodes: [], offered: { cpu: '0', memory: '0', pods: '0' } }],
  [
    'nothing of a node on which no pod fits',
    {
      pods: [aPod('shop/a', 'n', { cpu: '4' })],
      offered: { cpu: '0', memory: '0', pods: '0' },
    },
  ],
])('offers %s', (_name, { nodes = [aNode('n')], pods = [], spec = {}, promised = {}, offered }) => {
  const { resources } = termsOf(stockOf(nodes, pods, { tenants }), spec, promised);
  expect(resources).toEqual({ 'ephemeral-storage': '0', ...offered });
});

test.each<[string, Node]>([
  ['is not Ready', aNode('n', { conditions: { Ready: 'False' } })],
  ['is not known to be Ready', aNode('n', { conditions: { Ready: 'Unknown' } })],
  ['is cordoned', aNode('n', { unschedulable: true })],
  ['keeps pods off', aNode('n', { taint: 'NoSchedule' })],
  ['drives pods away', aNode('n', { taint: 'NoExecute' })],
  ['is virtual', aNode('n', { labels: { 'tributary.dev/node-type': 'virtual-node' } })],
  ['has no memory left', aNode('n', { conditions: { MemoryPressure: 'True' } })],
  ['has no disk left', aNode('n', { conditions: { DiskPressure: 'True' } })],
  ['has no processes left', aNode('n', { conditions: { PIDPressure: 'True' } })],
  ['has no network', aNode('n', { conditions: { NetworkUnavailable: 'True' } })],
  ['is not selected', aNode('n', { labels: { pool: 'private' } })],
])('a node that %s lends nothing', (_name, node) => {
  const lending = aNode('m', { labels: { pool: 'lent' }, taint: 'PreferNoSchedule' });
  const { resources, shapes } = termsOf(stockOf([node, lending]), { nodeSelector: { pool: 'lent' } });
  const alone = node.metadata.labels?.['pool'] === undefined ? termsOf(stockOf([node])) : undefined;
  expect(resources).toEqual({ cpu: '4', memory: '8Gi', pods: '100', 'ephemeral-storage': '0' });
  expect(shapes).toHaveLength(1);
  expect(alone?.shapes ?? []).toEqual([]);
});

test('a promise that other nodes keep takes nothing of these, pods that run on these do', () => {
  const [ours, theirs] = [aNode('a', { labels: { pool: 'a' } }), aNode('b', { labels: { pool: 'b' } })];
  const stock = stockOf(
    [ours, theirs],
    [aPod('theirs/x', 'a', { cpu: '1' }), aPod('theirs/y', 'b', { cpu: '1' })],
    { tenants },
  );
  const cpu = (selected: Record<string, string> | undefined): string | undefined =>
    termsOf(
      stock,
      { nodeSelector: { pool: 'a' } },
      { [OTHER]: { cpu: '3' } },
      selected && { [OTHER]: selected },
    ).resources['cpu'];
  expect([{ pool: 'b' }, { pool: 'a' }, undefined].map(cpu)).toEqual(['3', '1', '1']);
});

test('nodes that look the same are one shape, the largest first, and show only what they may', () => {
  const zone = (name: string): Record<string, string> => ({
    'topology.kubernetes.io/zone': name,
    'kubernetes.io/hostname': name,
    'node-role.kubernetes.io/worker': '',
    'example.com/disk': 'ssd',
    secret: 'x',
  });
  const nodes = [
    aNode('a1', { labels: zone('a') }),
    aNode('b1', { labels: zone('b'), architecture: 'arm64' }),
    aNode('a2', { labels: zone('a') }),
    aNode('a3', { labels: zone('a'), allocatable: { cpu: '16', memory: '1Gi', pods: '10' } }),
  ];
  const spec = { nodeLabels: ['example.com/disk', 'node-role.kubernetes.io/worker'] };
  const shown = (name: string): object => ({
    'example.com/disk': 'ssd',
    'topology.kubernetes.io/zone': name,
  });
  const small = { cpu: '4', memory: '8Gi', pods: '100' };
  const linux = { operatingSystem: 'linux' };
  expect(termsOf(stockOf(nodes), spec).shapes).toEqual([
    {
      count: 1,
      architecture: 'amd64',
      ...linux,
      resources: { cpu: '16', memory: '1Gi', pods: '10' },
      labels: shown('a'),
    },
    { count: 2, architecture: 'amd64', ...linux, resources: small, labels: shown('a') },
    { count: 1, architecture: 'arm64', ...linux, resources: small, labels: shown('b') },
  ]);
});

test('very many different nodes become few shapes, and little is lost', () => {
  const nodes = Array.from({ length: 1000 }, (_, index) =>
    aNode(`n${index}`, {
      allocatable: {
        cpu: `${16_000 + 13 * index}m`,
        memory: `${65_536 + 97 * index}Mi`,
        pods: `${100 + (index % 50)}`,
      },
    }),
  );
  const { shapes, resources } = termsOf(stockOf(nodes));
  const sum = nodes.reduce(
    (total, { status }) => total + parseMilli(status?.allocatable?.['cpu'] ?? '0'),
    0n,
  );
  expect(shapes.length).toBeLessThanOrEqual(64);
  expect(shapes.reduce((total, { count }) => total + count, 0)).toBe(1000);
  expect(Number(parseMilli(resources['cpu'] ?? '0')) / Number(sum)).toBeGreaterThan(0.75);
});

test('classes only by name, labels only of those who may, images only if shared, features that all have', () => {
  const storage = (name: string): { name: string; provisioner: string } => ({
    name,
    provisioner: 'x.csi.com',
  });
  const stock = stockOf(
    [
      aNode('a', { images: ['b:1', 'a:1'], declaredFeatures: ['X', 'Y'], kubeletVersion: 'v1.36.10-gke.1' }),
      aNode('b', { images: ['a:1', 'c d'], declaredFeatures: ['Y', 'Z'], kubeletVersion: 'v1.36.9' }),
    ],
    [],
    { storageClasses: [storage('slow'), storage('fast')], ingressClasses: ['nginx', 'other'] },
  );
  expect(termsOf(stock)).toMatchObject({
    classes: {},
    labels: {},
    images: [],
    prices: {},
    keepForSeconds: 86_400,
  });
  const spec: Partial<SharingPolicySpec> = {
    storageClasses: ['fast', 'gone'],
    ingressClasses: ['nginx'],
    loadBalancerClasses: ['example.com/lb'],
    labels: { site: 'basel', 'kubernetes.io/arch': 'lie', 'tributary.dev/x': 'y' },
    prices: { cpu: { amount: '0.04', currency: 'EUR' }, magic: { amount: '1', currency: 'EUR' } },
    shareImages: true,
    podSecurity: 'restricted',
    keepForSeconds: 60,
  };
  expect(termsOf(stock, spec)).toMatchObject({
    classes: { storage: [storage('fast')], ingress: ['nginx'], loadBalancer: ['example.com/lb'] },
    labels: { site: 'basel' },
    images: ['a:1', 'b:1'],
    prices: { cpu: { amount: '0.04', currency: 'EUR' } },
    podSecurity: 'restricted',
    keepForSeconds: 60,
    kubernetesVersion: '1.36.9',
    declaredFeatures: ['Y'],
  });
});

test('the policy shows what is free in all, and a quota can shut what was not promised', () => {
  const stock = stockOf([gpus('2')], [aPod('mine/a', 'g2', { cpu: '1' })], { tenants });
  const promised = promises({ [OTHER]: { cpu: '2' } });
  expect(freeOf(stock, lendingPolicy({ sharePercent: 20 }), promised)).toEqual({
    cpu: '1',
    'ephemeral-storage': '0',
    memory: '8Gi',
    'nvidia.com/gpu': '2',
    pods: '99',
  });
});

const amounts = fc.record(
  {
    cpu: fc.nat(100_000).map((milli) => `${milli}m`),
    memory: fc.oneof(
      fc.nat(1e9).map((bytes) => `${bytes}Ki`),
      fc.constant('9Ei'),
    ),
    pods: fc.nat(300).map(String),
    'ephemeral-storage': fc.nat(1e6).map((size) => `${size}Mi`),
    'nvidia.com/gpu': fc.nat(9).map(String),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<ResourceList>;

const worlds = fc.record({
  nodes: fc.array(
    fc.record({
      allocatable: amounts,
      zone: fc.constantFrom('a', 'b'),
      arch: fc.constantFrom('amd64', 'arm64', ''),
    }),
    { maxLength: 6 },
  ),
  pods: fc.array(
    fc.record({
      namespace: fc.constantFrom('own', ...Object.keys(tenants)),
      node: fc.nat(6),
      requests: amounts,
    }),
    { maxLength: 8 },
  ),
  promised: fc.dictionary(fc.constantFrom(ME, OTHER), amounts),
  spec: fc.record(
    {
      sharePercent: fc.oneof(fc.integer({ min: -5, max: 120 }), fc.double()),
      limits: amounts,
      withhold: fc.subarray(['cpu', 'nvidia.com/gpu', 'memory']),
      labels: fc.dictionary(fc.string(), fc.string()),
      nodeLabels: fc.array(fc.string()),
      loadBalancerClasses: fc.array(fc.string()),
    },
    { requiredKeys: [] },
  ),
});

test('whatever there is: no more than is free, never negative, and always an offer that passes the check', () => {
  fc.assert(
    fc.property(worlds, ({ nodes, pods, promised, spec }) => {
      const real = nodes.map(({ allocatable, zone, arch }, index) =>
        aNode(`n${index}`, {
          allocatable,
          architecture: arch,
          labels: { 'topology.kubernetes.io/zone': zone },
        }),
      );
      const bound = pods.map(({ namespace, node, requests }, index) =>
        aPod(`${namespace}/p${index}`, `n${node}`, requests),
      );
      const stock = stockOf(real, bound, { tenants });
      const terms = termsOf(stock, spec, promised);
      const allocatable = (resource: string): bigint =>
        nodes.reduce((sum, node) => sum + parseMilli(node.allocatable[resource] ?? '0'), 0n);
      const own = (resource: string): bigint =>
        pods
          .filter(({ namespace, node }) => namespace === 'own' && node < nodes.length)
          .reduce((sum, { requests }) => sum + parseMilli(requests[resource] ?? '0'), 0n);
      for (const [resource, amount] of Object.entries(terms.resources)) {
        expect(parseMilli(amount)).toBeGreaterThanOrEqual(0n);
        // A node that is over-committed takes nothing from the others, so only the bound from above is exact.
        expect(parseMilli(amount)).toBeLessThanOrEqual(allocatable(resource));
        const owed = allocatable(resource) - own(resource) - parseMilli(promised[OTHER]?.[resource] ?? '0');
        if (nodes.length === 1 && resource !== 'pods') {
          expect(parseMilli(amount)).toBeLessThanOrEqual(owed > 0n ? owed : 0n);
        }
        const share = BigInt(Math.max(0, Math.min(100, Math.floor(spec.sharePercent ?? 100) || 0)));
        expect(parseMilli(amount) * 100n).toBeLessThanOrEqual(allocatable(resource) * share);
      }
      const offer = anOffer({ ...terms });
      const context = { provider, consumer: ME, lastGeneration: undefined, nowMs: NOW_MS };
      expect(checkOffer(signed(offer), context)).toEqual(offer);
    }),
    { numRuns: 500 },
  );
});
