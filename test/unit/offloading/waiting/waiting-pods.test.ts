import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import { pods } from '../../../../src/api/resources.ts';
import type { DraftMeta } from '../../../../src/api/wire.ts';
import { avoiding } from '../../../../src/offloading/admission/avoid.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { OffloadWorld } from '../support/offload-world.ts';

const TIMEOUT_MS = 30_000;
const MARKS = { 'tributary.dev/strategy': 'LocalAndRemote', 'tributary.dev/avoids': 'milan' };

let world: OffloadWorld;
beforeEach(async () => {
  world = await new OffloadWorld().up();
  await world.virtualNode('milan', 'milan');
  await world.virtualNode('rome', 'rome');
});
afterEach(async () => world.down(), TIMEOUT_MS);

/** As the webhook has let it in. */
async function addPod(name: string, metadata: DraftMeta = {}): Promise<void> {
  const required = { nodeSelectorTerms: [{ matchExpressions: [avoiding(['milan'])] }] };
  await world.client.create(pods, {
    metadata: { namespace: 'shop', name, annotations: MARKS, ...metadata },
    spec: {
      containers: [{ name: 'app', image: 'app' }],
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
    },
    status: { phase: 'Pending' },
  });
  await world.client.patch(
    pods,
    { namespace: 'shop', name },
    { type: 'merge', body: { status: { phase: 'Pending' } } },
    { subresource: 'status' },
  );
}
const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'r', controller: true };
const evicted = (): string[] => world.api.log.filter((line) => line.includes('/eviction'));

test(
  'a cluster that is back: who waited without it is made anew, once',
  async () => {
    world.answer('milan', 'shop', { state: 'Withheld', reason: 'NameTaken', message: 'taken' });
    await world.start();
    await world.offload();
    await world.untilReady('SomeClustersFailed');
    await addPod('owned', { ownerReferences: [owner] });
    await addPod('bare');
    await addPod('placed', { ownerReferences: [owner] });
    await world.client.patch(
      pods,
      { namespace: 'shop', name: 'placed' },
      { type: 'merge', body: { spec: { nodeName: 'n1' } } },
    );
    await world.clock.advance(120_000);
    expect(await world.podNames()).toEqual(['bare@', 'owned@', 'placed@n1']);
    world.answer('milan', 'shop', undefined);
    world.answer('milan', 'shop', { state: 'Mapped', tenantNamespace: 'shop-there' });
    await world.untilReady('AsExpected');
    await world.until('the owned one goes', async () => !(await world.podNames()).includes('owned@'));
    const bare = (): AnyObject | undefined => world.api.storage.get('pods', 'shop/bare');
    const isAnother = (): boolean => bare()?.metadata.annotations?.['tributary.dev/remade-for'] !== undefined;
    await world.until('the bare one is another', isAnother);
    expect(bare()?.metadata.annotations).not.toHaveProperty('tributary.dev/avoids');
    expect(bare()?.spec).not.toHaveProperty('affinity');
    expect(await world.podNames()).toEqual(['bare@', 'placed@n1']);
    expect(evicted()).toEqual([expect.stringContaining('/pods/owned/eviction')]);
    expect(world.events.filter((line) => line.includes('MadeAnew')).toSorted()).toEqual([
      expect.stringMatching(/^Pod\/bare .*milan/u),
      expect.stringMatching(/^Pod\/owned .*milan/u),
    ]);
  },
  TIMEOUT_MS,
);

test(
  'an owner that is held off no longer: looked for when the time is over',
  async () => {
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    const until = new Date(world.clock.now() + 100_000).toISOString();
    const heldOff = [{ owner: 'ReplicaSet/web', virtualNode: 'milan', until }];
    await world.client.patch(
      namespaceOffloadings,
      { namespace: 'shop', name: 'offloading' },
      { type: 'merge', body: { status: { heldOff } } },
      { subresource: 'status' },
    );
    await addPod('owned', { ownerReferences: [owner] });
    await world.clock.advance(90_000);
    expect(await world.podNames()).toEqual(['owned@']);
    await world.until('it goes', async () => (await world.podNames()).length === 0);
  },
  TIMEOUT_MS,
);
