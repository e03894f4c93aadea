import { expect, test } from '@jest/globals';

import type { NodeShape } from '../../../../src/api/offer.ts';
import type { ResourceList } from '../../../../src/api/wire.ts';
import { parseMilli } from '../../../../src/lib/quantity.ts';
import { virtualNodePlans } from '../../../../src/peering/offer/virtual-node-plans.ts';
import { fc } from '../../../support/property.ts';
import { anOffer } from '../support/offers.ts';

const shape = (count: number, resources: ResourceList, more: Partial<NodeShape> = {}): NodeShape => ({
  count,
  resources,
  architecture: 'amd64',
  operatingSystem: 'linux',
  ...more,
});
const zone = (name: string): Record<string, string> => ({ 'topology.kubernetes.io/zone': name });

const offer = anOffer({
  resources: { cpu: '12', memory: '20Gi', pods: '30', 'a.com/gpu': '2', storage: '1Ti' },
  shapes: [
    shape(
      1,
      { cpu: '8', memory: '4Gi', pods: '10' },
      { architecture: 'arm64', labels: { ...zone('a'), x: '1' } },
    ),
    shape(2, { cpu: '2', memory: '8Gi', pods: '10', 'a.com/gpu': '1' }, { labels: { ...zone('a'), x: '2' } }),
  ],
  labels: { site: 'basel' },
  declaredFeatures: ['F'],
});

test('Aggregate: one node with all that was accepted, and the labels that hold everywhere', () => {
  const accepted = { ...offer.resources, cpu: '6' };
  expect(virtualNodePlans(offer, accepted)).toEqual([
    {
      suffix: '',
      resources: { cpu: '6', memory: '20Gi', pods: '30', 'a.com/gpu': '2' },
      nodeSizes: offer.shapes.map(({ resources }) => resources),
      labels: { ...zone('a'), site: 'basel', 'kubernetes.io/arch': 'amd64', 'kubernetes.io/os': 'linux' },
      declaredFeatures: ['F'],
    },
  ]);
});

test('PerNode: each as its node, with its labels', () => {
  const plans = virtualNodePlans(offer, offer.resources, 'PerNode');
  const big = plans.filter(({ labels }) => labels['kubernetes.io/arch'] === 'arm64');
  const small = plans.filter(({ labels }) => labels['kubernetes.io/arch'] === 'amd64');
  expect(big.map(({ resources }) => resources)).toEqual([{ cpu: '8', memory: '4Gi', pods: '10' }]);
  expect(small.map(({ resources }) => resources)).toEqual([
    { cpu: '2', memory: '8Gi', pods: '10', 'a.com/gpu': '1' },
    { cpu: '2', memory: '8Gi', pods: '10', 'a.com/gpu': '1' },
  ]);
  expect(small[0]?.labels).toEqual({
    ...zone('a'),
    x: '2',
    site: 'basel',
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
  });
  expect(small[0]?.suffix).toMatch(/^[0-9a-f]{6}-1$/);
});

test('PerNode: all shrink alike where less was accepted, and the last device stays', () => {
  const plans = virtualNodePlans(offer, { cpu: '3', memory: '5Gi', pods: '10', 'a.com/gpu': '1' }, 'PerNode');
  const sum = (resource: string): bigint =>
    plans.reduce((total, { resources }) => total + parseMilli(resources[resource] ?? '0'), 0n);
  expect(['cpu', 'memory', 'pods', 'a.com/gpu'].map(sum)).toEqual(
    ['3', '5Gi', '10', '1'].map((amount) => parseMilli(amount)),
  );
  expect(plans.filter(({ resources }) => resources['cpu'] === '500m')).toHaveLength(2);
  expect(plans.filter(({ resources }) => resources['cpu'] === '2')).toHaveLength(1);
});

test('names keep to the kind and the place in it, whatever else comes and goes', () => {
  const kind = (name: string, ...cpus: string[]): NodeShape[] =>
    cpus.map((cpu) => shape(1, { cpu, memory: '1Gi', pods: '9' }, { labels: zone(name) }));
  const plan = (shapes: NodeShape[], maxNodes?: number): Map<string, string | undefined> => {
    const all = anOffer({ resources: { cpu: '999', memory: '999Gi', pods: '999' }, shapes });
    const plans = virtualNodePlans(all, all.resources, 'PerNode', maxNodes);
    return new Map(
      plans.map(({ suffix, labels, resources }) => [
        suffix,
        `${Object.values(labels)[0]} ${resources['cpu']}`,
      ]),
    );
  };
  const first = plan(kind('a', '4', '3'));
  expect(plan(kind('a', '3', '4'))).toEqual(first);
  const more = plan([...kind('b', '9'), ...kind('a', '4', '3', '2')]);
  for (const [suffix, what] of first) expect(more.get(suffix)).toBe(what);
  expect(more.size).toBe(4);
  const two = plan([...kind('b', '9'), ...kind('a', '4', '3', '2')], 2);
  expect(new Set(two.values())).toEqual(new Set(['a 4', 'b 9']));
});

test('nothing behind it: an empty node as a whole, and no nodes one by one', () => {
  const empty = anOffer({ resources: { cpu: '0', memory: '0', pods: '0' }, shapes: [] });
  expect(virtualNodePlans(empty, empty.resources)).toEqual([
    { suffix: '', resources: { cpu: '0', memory: '0', pods: '0' }, nodeSizes: [], labels: {} },
  ]);
  expect(virtualNodePlans(empty, empty.resources, 'PerNode')).toEqual([]);
});

const RESOURCES = ['cpu', 'memory', 'pods', 'a.com/gpu'] as const;
const quantities = (most: number): fc.Arbitrary<ResourceList> =>
  fc.record({
    cpu: fc.nat(most * 1000).map((milli) => `${milli}m`),
    memory: fc.nat(most).map((size) => `${size}Gi`),
    pods: fc.nat(most).map(String),
    'a.com/gpu': fc.nat(most).map(String),
  });

test('never more than was accepted, never more on one node than its shape, never more nodes than wanted', () => {
  const shapes = fc.array(
    fc.record({
      count: fc.integer({ min: 1, max: 5 }),
      resources: quantities(64),
      arch: fc.constantFrom('amd64', 'arm64'),
    }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(shapes, quantities(200), fc.integer({ min: 1, max: 20 }), (kinds, accepted, maxNodes) => {
      const all = anOffer({
        resources: accepted,
        shapes: kinds.map(({ count, resources, arch }) => shape(count, resources, { architecture: arch })),
      });
      const plans = virtualNodePlans(all, accepted, 'PerNode', maxNodes);
      const nodes = kinds.reduce((sum, { count }) => sum + count, 0);
      expect(plans).toHaveLength(Math.min(maxNodes, nodes));
      expect(new Set(plans.map(({ suffix }) => suffix)).size).toBe(plans.length);
      for (const resource of RESOURCES) {
        const each = plans.map(({ resources }) => parseMilli(resources[resource] ?? '0'));
        const total = each.reduce((sum, milli) => sum + milli, 0n);
        expect(total).toBeLessThanOrEqual(parseMilli(accepted[resource] ?? '0'));
      }
      for (const { resources, labels } of plans) {
        const fits = all.shapes.some(
          (one) =>
            one.architecture === labels['kubernetes.io/arch'] &&
            RESOURCES.every(
              (name) => parseMilli(resources[name] ?? '0') <= parseMilli(one.resources[name] ?? '0'),
            ),
        );
        expect(fits).toBe(true);
      }
    }),
  );
});
