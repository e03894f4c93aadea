import { expect, test } from '@jest/globals';
import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import { findCluster } from '../../../../src/cli/peering/foreign-clusters.ts';

const MILAN = { metadata: { name: 'mine', uid: '1' }, spec: { clusterID: 'milan' } } as ForeignCluster;

test('who names an unknown cluster is sent to those that are known', () => {
  expect(() => findCluster([MILAN], 'company')).toThrow(
    /^no ForeignCluster has the name or ClusterID "company"; see: tributary peerings$/,
  );
});

test('where none is known, it says how to make one known', () => {
  expect(() => findCluster([], 'company')).toThrow(
    /^no ForeignCluster has the name or ClusterID "company"; no other cluster is known here\. Make it known with a ForeignCluster \(spec\.clusterID, spec\.endpoint\), or peer with it: tributary peer ENDPOINT$/,
  );
});
