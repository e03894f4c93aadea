import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Ages } from '../../../../src/lib/ages.ts';
import { namespaces, pods } from '../../../../src/api/resources.ts';
import type { Namespace } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { endOverduePods, lookAtEndingMs } from '../../../../src/hosting/tenants/overdue-pods.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const DAY = 24 * 3600;

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock });
  client = api.client();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

async function ending(): Promise<Namespace> {
  const name = 'rome-shop';
  await client.create(namespaces, { metadata: { name, finalizers: ['example.com/never'] } });
  for (const [pod, namespace] of [
    ['slow', name],
    ['other', 'elsewhere'],
  ] as const) {
    api.seed(pods, {
      metadata: { name: pod, namespace },
      spec: { nodeName: 'real', containers: [], terminationGracePeriodSeconds: DAY },
    });
    await client.delete(pods, { name: pod, namespace }, { gracePeriodSeconds: DAY });
  }
  await client.delete(namespaces, { name });
  return client.get(namespaces, { name });
}

test('a grace of a day holds the namespace of a peer for a minute, and pods elsewhere stay as they are', async () => {
  const namespace = await ending();
  const { signal } = new AbortController();
  await clock.advance(59_000);
  await endOverduePods({ client, ages: new Ages(clock) }, namespace, signal);
  expect((await client.list(pods)).items).toHaveLength(2);
  await clock.advance(2000);
  await endOverduePods({ client, ages: new Ages(clock) }, namespace, signal);
  expect((await client.list(pods)).items.map(({ metadata }) => metadata.name)).toEqual(['other']);
  expect(lookAtEndingMs([namespace])).toBe(20_000);
});

test('a namespace that does not end is left alone', async () => {
  const namespace = await client.create(namespaces, { metadata: { name: 'lives' } });
  api.seed(pods, { metadata: { name: 'web', namespace: 'lives' }, spec: { containers: [] } });
  await clock.advance(3_600_000);
  await endOverduePods({ client, ages: new Ages(clock) }, namespace, new AbortController().signal);
  expect((await client.list(pods)).items).toHaveLength(1);
  expect(lookAtEndingMs([namespace])).toBe(Infinity);
});

test('a pod that may not be deleted keeps no other from its end, and is told of', async () => {
  const namespace = await ending();
  const { name } = namespace.metadata;
  for (let at = 0; at < 40; at += 1) {
    api.seed(pods, { metadata: { name: `web-${at}`, namespace: name }, spec: { containers: [] } });
  }
  await clock.advance(61_000);
  api.fault({ match: ({ method, path }) => method === 'DELETE' && path.endsWith('/slow'), status: 403 });
  await expect(
    endOverduePods({ client, ages: new Ages(clock) }, namespace, new AbortController().signal),
  ).rejects.toThrow('403');
  const left = (await client.list(pods, { namespace: name })).items;
  expect(left.map(({ metadata }) => metadata.name)).toEqual(['slow']);
});
