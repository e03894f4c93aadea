import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { type ForeignCluster, foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { peeringRequests } from '../../../src/api/peering-request.ts';
import { perform } from '../../../src/dashboard/perform.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const { signal } = new AbortController();

let api: FakeApi;
let client: KubeClient;
beforeEach(() => {
  api = new FakeApi({ types: [foreignClusters, peeringRequests] });
  client = api.client();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

const seed = (spec: ForeignCluster['spec']): void => {
  api.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN, ...spec } });
  api.seed(peeringRequests, { metadata: { name: MILAN }, spec: { clusterID: MILAN, namespaces: [] } });
};
const specOf = async (): Promise<ForeignCluster['spec']> =>
  (await client.get(foreignClusters, { name: 'mine' })).spec;
const approve = async (): Promise<string> =>
  perform({ do: 'approve', what: 'request', name: MILAN }, { client, signal });

test('who lets a cluster in takes back what an end of an earlier peering has left for it', async () => {
  seed({ outgoing: 'Disabled', incoming: 'Disabled' });
  expect(await approve()).toBe(
    `PeeringRequest ${MILAN}: Approved. ForeignCluster mine no longer says incoming: Disabled.`,
  );
  expect(await specOf()).toEqual({ clusterID: MILAN, outgoing: 'Disabled' });
});

test('who may do no more than approve has approved, and is told what is left', async () => {
  seed({ incoming: 'Disabled' });
  api.fault({ match: ({ path }) => path.includes('/foreignclusters'), status: 403 });
  expect(await approve()).toContain('Approved. If its ForeignCluster says incoming: Disabled, somebody');
});

test('who denies lifts nothing', async () => {
  seed({ incoming: 'Disabled' });
  await perform({ do: 'deny', what: 'request', name: MILAN }, { client, signal });
  expect(await specOf()).toEqual({ clusterID: MILAN, incoming: 'Disabled' });
});

test.each<[string, ForeignCluster['spec'], ForeignCluster['spec']]>([
  ['both directions were ended', { outgoing: 'Disabled', incoming: 'Disabled' }, { outgoing: 'Enabled' }],
  [
    'it was forbidden to use this cluster',
    { outgoing: 'Auto', incoming: 'Disabled' },
    { outgoing: 'Enabled', incoming: 'Disabled' },
  ],
])('who peers with a cluster that is known, where %s', async (_what, before, after) => {
  seed(before);
  await perform({ do: 'peer', endpoint: 'a:1', clusterID: MILAN }, { client, signal });
  expect(await specOf()).toEqual({ clusterID: MILAN, endpoint: 'a:1', ...after });
});
