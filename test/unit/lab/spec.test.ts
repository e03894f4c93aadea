import { describe, expect, test } from '@jest/globals';

import { resolveSpec } from '../../../lab/spec.ts';

const lab = {
  name: 'lab',
  workload: 'containers',
  underlay: { subnet: 3 },
  runDirectory: '/run/lab',
  dataDirectory: '/data/lab',
} as const;

describe('resolveSpec', () => {
  test('gives clusters ranges of their own', () => {
    const { clusters } = resolveSpec({ ...lab, clusters: [{ name: 'home', nodes: 2 }, { name: 'foreign' }] });
    expect(clusters).toEqual([
      {
        name: 'home',
        podCidr: '10.244.0.0/16',
        serviceCidr: '10.96.0.0/16',
        workload: 'containers',
        segment: 0,
        metricsServer: true,
        storage: false,
        hardenedRuntime: false,
        networkPolicies: false,
        flags: {},
        podPlayers: 4,
        nodeCount: 2,
        nodes: [
          { name: 'home-1', address: '172.30.3.11', netns: 'tl-lab-home-1', podCidr: '10.244.0.0/24' },
          { name: 'home-2', address: '172.30.3.12', netns: 'tl-lab-home-2', podCidr: '10.244.1.0/24' },
        ],
      },
      {
        name: 'foreign',
        podCidr: '10.245.0.0/16',
        serviceCidr: '10.97.0.0/16',
        workload: 'containers',
        segment: 0,
        metricsServer: true,
        storage: false,
        hardenedRuntime: false,
        networkPolicies: false,
        flags: {},
        podPlayers: 4,
        nodeCount: 1,
        nodes: [
          { name: 'foreign-1', address: '172.30.3.41', netns: 'tl-lab-foreign-1', podCidr: '10.245.0.0/24' },
        ],
      },
    ]);
  });

  test('lets clusters have the same ranges', () => {
    const ranges = { podCidr: '10.50.0.0/16', serviceCidr: '10.60.0.0/16' };
    const { clusters } = resolveSpec({
      ...lab,
      clusters: [
        { name: 'a', ...ranges },
        { name: 'b', ...ranges },
      ],
    });
    expect(clusters.map(({ podCidr, serviceCidr }) => ({ podCidr, serviceCidr }))).toEqual([ranges, ranges]);
    expect(clusters.map(({ nodes }) => nodes[0]?.podCidr)).toEqual(['10.50.0.0/24', '10.50.0.0/24']);
  });

  test('kwok has nodes only by number, and no metrics', () => {
    const { clusters } = resolveSpec({ ...lab, workload: 'kwok', clusters: [{ name: 'home', nodes: 100 }] });
    expect(clusters[0]).toMatchObject({ nodeCount: 100, nodes: [], metricsServer: false });
  });

  test('a kwok cluster among containers has the node of its control plane, in its segment', () => {
    const { clusters } = resolveSpec({
      ...lab,
      clusters: [{ name: 'home' }, { name: 'far', nodes: 3, workload: 'kwok', segment: 1 }],
    });
    expect(clusters[1]).toMatchObject({ workload: 'kwok', nodeCount: 3, metricsServer: false });
    expect(clusters[1]?.nodes).toMatchObject([{ name: 'far-1', address: '172.31.3.41' }]);
  });

  test.each([-1, 4, 0.5])('there is no segment %d', (segment) => {
    expect(() => resolveSpec({ ...lab, clusters: [{ name: 'far', segment }] })).toThrow(/segment/);
  });

  test('a lab of kwok has no network to be divided', () => {
    const clusters = [{ name: 'far', segment: 1 }];
    expect(() => resolveSpec({ ...lab, workload: 'kwok', clusters })).toThrow(/no network/);
  });

  test.each([0, -1, 1.5, 31])('%d real nodes are refused', (nodes) => {
    expect(() => resolveSpec({ ...lab, clusters: [{ name: 'home', nodes }] })).toThrow(/node/);
  });
});
