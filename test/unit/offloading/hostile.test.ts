import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { namespaces, pods } from '../../../src/api/resources.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { nextLookMs } from '../../../src/offloading/drain.ts';
import { OffloadWorld } from './support/offload-world.ts';

/** What users of a namespace, and time, may do to the removal of an offloading. */

const OWNED = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }],
};
const LET_IN = { annotations: { 'tributary.dev/strategy': 'LocalAndRemote' } };

let world: OffloadWorld;

beforeEach(async () => {
  world = await new OffloadWorld().up();
});
afterEach(async () => world.down());

test('a namespace that was deleted and made again gets no pod of the one before', async () => {
  await world.virtualNode('milan', 'milan');
  await world.start();
  await world.offload();
  await world.untilReady('AsExpected');
  world.dead.add('milan');
  await world.pod('bare', 'milan', LET_IN);
  await world.remove();
  await world.until('a journal', async () => (await world.journals()) === 1);
  await world.until('the pod ends', async () => {
    const { metadata } = await world.client.get(pods, { name: 'bare', namespace: 'shop' });
    return metadata.deletionTimestamp !== undefined;
  });
  await world.stop();
  const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
  // It may be overdue by now, and gone.
  await world.client
    .patch(namespaceOffloadings, { name: 'offloading', namespace: 'shop' }, freed)
    .catch(ignoring('NotFound'));
  await world.client.delete(pods, { name: 'bare', namespace: 'shop' }, { gracePeriodSeconds: 0 });
  await world.client.delete(namespaces, { name: 'shop' });
  await world.namespace('shop');
  await world.start();
  await world.until('the journal is dropped', async () => (await world.journals()) === 0);
  expect(await world.podNames()).toEqual([]);
});

// A pod of more than a mebibyte fits into no Secret; and whoever may write admission policies can forbid any deletion.
test('a pod that cannot be sent home keeps neither the others nor the removal', async () => {
  await world.virtualNode('milan', 'milan');
  await world.start();
  await world.offload();
  await world.untilReady('AsExpected');
  await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
  await world.pod('large', 'milan', LET_IN);
  await world.pod('other', 'milan', OWNED);
  const isRefused = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'POST' && path.endsWith('/secrets');
  world.api.fault({ match: isRefused, times: Infinity, status: 422 });
  await world.remove();
  await world.until('the other one has gone', async () => (await world.podNames()).length === 1);
  await world.untilGone();
  expect(await world.podNames()).toEqual(['large@milan']);
  expect(world.events.find((line) => line.startsWith('Pod/large NotBroughtHome'))).toBeDefined();
  expect(world.events.some((line) => line.includes('LeftBehind'))).toBe(true);
});

// Of a dead provider the pods may never end, and each look lists them all.
test.each([
  [0, 2000],
  [40_000, 2000],
  [200_000, 10_000],
  [86_400_000, 60_000],
])('what has been left for %i ms is looked at again after %i ms', (leftForMs, wait) => {
  expect(nextLookMs(leftForMs)).toBe(wait);
});
