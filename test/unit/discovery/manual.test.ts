import { expect, test } from '@jest/globals';

import type { ForeignCluster } from '../../../src/api/foreign-cluster.ts';
import { ManualSource } from '../../../src/discovery/manual.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type CandidateSourceWorld, describeCandidateSource } from '../../contract/candidate-source.ts';
import { FakeCollection } from '../../support/fake-api/fake-collection.ts';

const OWN = 'own'.padEnd(26, 'z');

const objectOf = (
  name: string,
  spec: ForeignCluster['spec'],
  status: ForeignCluster['status'] = {},
): ForeignCluster => ({
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  ...(spec && { spec }),
  status,
});

async function makeWorld(): Promise<CandidateSourceWorld & { clusters: FakeCollection<ForeignCluster> }> {
  const clusters = new FakeCollection<ForeignCluster>();
  const source = new ManualSource({ clusters, ownClusterID: OWN, clock: systemClock });
  source.start(new AbortController().signal);
  return {
    source,
    clusters,
    ownClusterID: OWN,
    announce: async ({ clusterID, address, port }) => {
      clusters.set(objectOf(`of-${clusterID}`, { clusterID, endpoint: `${address}:${port}` }));
      return Promise.resolve();
    },
    withdraw: async (clusterID) => {
      clusters.delete(`of-${clusterID}`);
      return Promise.resolve();
    },
    // A ForeignCluster that discovery made, without an endpoint of its own.
    announceNonsense: async (label) => {
      clusters.set(objectOf(label, { clusterID: label.padEnd(26, 'x') }));
      return Promise.resolve();
    },
    fallSilent: async () => Promise.reject(new Error('it does not expire')),
    stop: async () => source.stop(),
  };
}

describeCandidateSource({ makeWorld, carriesDetails: false, expires: false });

test('an endpoint without a ClusterID is a candidate once the ID is proved', async () => {
  const world = await makeWorld();
  world.clusters.set(objectOf('milan', { endpoint: 'milan.example.org:6443' }));
  expect([...world.source.candidates()]).toEqual([]);
  const clusterID = 'milan'.padEnd(26, 'a');
  world.clusters.set(objectOf('milan', { endpoint: 'milan.example.org:6443' }, { clusterID }));
  expect([...world.source.candidates()]).toEqual([
    { clusterID, endpoints: ['milan.example.org:6443'], protocols: [], expiresAt: Infinity },
  ]);
});
