import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { type ForeignCluster, foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../../src/api/peering-request.ts';
import { namespaces } from '../../../src/api/resources.ts';
import { perform } from '../../../src/dashboard/perform.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const { signal } = new AbortController();

let api: FakeApi;
let client: KubeClient;
beforeEach(() => {
  api = new FakeApi({ types: [foreignClusters, namespaceOffloadings, peeringRequests] });
  client = api.client();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

describe('a namespace comes home', () => {
  const OFFLOADINGS = 'namespaceoffloadings.tributary.dev';
  const offloaded = (origin: string | undefined, label: string | undefined): void => {
    const labels = { ...(label !== undefined && { 'tributary.dev/offload': label }) };
    api.seed(namespaces, { metadata: { name: 'shop', labels } });
    api.seed(namespaceOffloadings, {
      metadata: {
        namespace: 'shop',
        name: 'offloading',
        ...(origin !== undefined && { labels: { 'tributary.dev/offloading-origin': origin } }),
      },
    });
  };
  const unoffload = async (): Promise<string> =>
    perform({ do: 'unoffload', namespace: 'shop' }, { client, signal });
  const after = async (): Promise<unknown> => {
    const { metadata } = await client.get(namespaces, { name: 'shop' });
    return [
      metadata.labels?.['tributary.dev/offload'],
      api.storage.get(OFFLOADINGS, 'shop/offloading') !== undefined,
    ];
  };

  test.each([
    ['a person', undefined, undefined, [undefined, false]],
    ['a person, with a label that would do it again', undefined, 'true', [undefined, false]],
    // The role cluster removes it.
    ['a label', 'label', 'true', [undefined, true]],
    ['the selector of an operator', 'selector', undefined, ['false', true]],
  ])('that was offloaded by %s', async (_by, origin, label, expected) => {
    offloaded(origin, label);
    expect(await unoffload()).toBe('Namespace shop comes home.');
    expect(await after()).toEqual(expected);
  });

  test('but one of a tether only with its end', async () => {
    offloaded('tether', undefined);
    await expect(unoffload()).rejects.toThrow(
      'the tether of this cluster has forwarded shop; end it with: tributary untether',
    );
    expect(await after()).toEqual([undefined, true]);
  });

  test('also for who may not read namespaces', async () => {
    api.fault({
      match: ({ method, path }) => method === 'GET' && path === '/api/v1/namespaces/shop',
      status: 403,
    });
    offloaded('label', 'true');
    expect(await unoffload()).toBe('Namespace shop comes home.');
    expect(await after()).toEqual([undefined, true]);
  });
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
