import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { ForeignCluster, ForeignClusterStatus } from '../../../src/api/foreign-cluster.ts';
import { peeringMetrics } from '../../../src/peering/metrics.ts';

const cluster = (status: ForeignClusterStatus): ForeignCluster =>
  ({ metadata: { name: 'any' }, status }) as ForeignCluster;

test('a peer shows its link and the phase of each direction; who has not proved an identity shows nothing', async () => {
  const registry = new Registry();
  let clusters: ForeignCluster[] = [
    cluster({ clusterName: 'stranger' }),
    cluster({ clusterID: 'milan', link: { connected: true }, outgoing: { phase: 'Established' } }),
    // A second object for the same cluster.
    cluster({ clusterID: 'milan', outgoing: { phase: 'Denied' } }),
  ];
  peeringMetrics(registry, () => clusters);
  const series = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => !/^#|^$/u.test(line));
  expect(await series()).toEqual([
    'tributary_peering_connected{peer="milan"} 1',
    'tributary_peering_phase{peer="milan",direction="outgoing",phase="Established"} 1',
    'tributary_peering_phase{peer="milan",direction="incoming",phase="None"} 1',
  ]);
  clusters = [];
  expect(await series()).toEqual([]);
});
