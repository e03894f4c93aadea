import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LABEL_PEER } from '../../../src/api/names.ts';
import { namespaceOffloadings, type NamespaceOffloading } from '../../../src/api/namespace-offloading.ts';
import { namespaces, pods } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import { OffloadWorld } from './support/offload-world.ts';

/** The controller against an API server in memory. */

const TIMEOUT_MS = 180_000;
const OWNED = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }],
};
const LET_IN = { annotations: { 'tributary.dev/strategy': 'LocalAndRemote' } };
const hasEvent = (world: OffloadWorld, text: string): boolean =>
  world.events.some((line) => line.includes(text));
const readyMessage = ({ status }: NamespaceOffloading): string | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.message;

let world: OffloadWorld;

beforeEach(async () => {
  world = await new OffloadWorld().up();
}, TIMEOUT_MS);
afterEach(async () => world.down(), TIMEOUT_MS);

describe('selection and status', () => {
  test('all virtual nodes by default; two of one provider are one entry', async () => {
    await world.virtualNode('milan-1', 'milan');
    await world.virtualNode('milan-2', 'milan');
    await world.virtualNode('paris', 'paris');
    await world.start();
    await world.offload();
    const { status } = await world.untilReady('AsExpected');
    expect(status?.clusters).toEqual([
      {
        cluster: 'milan',
        clusterName: 'milan',
        virtualNodes: ['milan-1', 'milan-2'],
        phase: 'Ready',
        reason: 'AsExpected',
        remoteNamespace: 'shop-there',
      },
      expect.objectContaining({ cluster: 'paris', phase: 'Ready' }),
    ]);
    expect(world.offloading.offloadingOf('shop')?.metadata.namespace).toBe('shop');
    expect(world.offloading.all()).toHaveLength(1);
  });

  test('nobody has the labels, then somebody has', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload({ clusterSelector: { matchLabels: { region: 'north' } } });
    expect(readyMessage(await world.untilReady('NoClusterSelected'))).toContain(
      'labels of spec.clusterSelector',
    );
    expect(world.offloading.of('milan')).toEqual([]);
    const labelled = { type: 'merge', body: { spec: { labels: { region: 'north' } } } } as const;
    await world.client.patch(virtualNodes, { name: 'milan' }, labelled);
    await world.untilReady('AsExpected');
    expect(hasEvent(world, 'NamespaceOffloading/offloading AsExpected')).toBe(true);
  });

  test('the taint of a virtual node that keeps nobody away is told', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    let told = 0;
    world.offloading.onChange(() => told++);
    expect(world.offloading.isOpen()).toBe(false);
    for (const taintEffect of ['None', 'NoSchedule', 'PreferNoSchedule'] as const) {
      const before = told;
      const chosen = { type: 'merge', body: { spec: { taintEffect } } } as const;
      await world.client.patch(virtualNodes, { name: 'milan' }, chosen);
      await world.until(taintEffect, () => told > before);
      expect(world.offloading.isOpen()).toBe(taintEffect !== 'NoSchedule');
    }
  });

  test('policies of this namespace that are stricter over there are named, and no longer when they are not', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    const told = async (stricterPolicies: object[]): Promise<void> => {
      const body = { status: { stricterPolicies } };
      await world.client.patch(
        virtualNodes,
        { name: 'milan' },
        { type: 'merge', body },
        { subresource: 'status' },
      );
    };
    const condition = async (): Promise<unknown> => {
      const { items } = await world.client.list(namespaceOffloadings);
      const found = items[0]?.status?.conditions?.find(({ type }) => type === 'NetworkPoliciesStricter');
      return found && `${found.status} ${found.reason}: ${found.message}`;
    };
    const causes = [1, 2, 3, 4, 5].map((rule) => `egress rule ${rule}: closed`);
    await told([
      { homeNamespace: 'shop', policy: 'deny', causes: causes.slice(0, 2) },
      { homeNamespace: 'other', policy: 'deny', causes },
    ]);
    await world.until('it is named', async () => (await condition()) !== undefined);
    const shown =
      'True PolicyStricterAbroad: milan: NetworkPolicy deny: egress rule 1: closed; egress rule 2: closed';
    expect(await condition()).toBe(shown);
    await told([{ homeNamespace: 'shop', policy: 'deny', causes }]);
    await world.until('more is named', async () => (await condition()) !== shown);
    expect(await condition()).toBe(
      `${shown}; egress rule 3: closed; and more. All is in status.stricterPolicies of VirtualNode milan`,
    );
    const many = Array.from({ length: 64 }, (_, at) => `${'x'.repeat(200)}-${at}`);
    await told(many.map((policy) => ({ homeNamespace: 'shop', policy, causes })));
    await world.until('all are named', async () => String(await condition()).includes('xxx'));
    expect(await condition()).toMatch(/\. All is in status\.stricterPolicies of VirtualNode milan$/u);
    await told([]);
    await world.until('it is named no longer', async () => (await condition()) === undefined);
  });

  test('a name that is taken over there fails that cluster, and says what to do', async () => {
    await world.virtualNode('milan', 'milan');
    await world.virtualNode('paris', 'paris');
    world.standings.set('paris/shop', {
      state: 'Withheld',
      reason: 'NameTaken',
      message: 'shop is another’s',
    });
    await world.start();
    await world.offload({ naming: 'Same' });
    await world.untilReady('SomeClustersFailed');
    await world.until('milan is ready', async () =>
      (await world.phases()).includes('milan Ready AsExpected'),
    );
    expect(await world.phases()).toContain('paris Failed NameTaken');
    expect(world.offloading.of('paris')).toEqual([
      { homeNamespace: 'shop', remoteName: 'shop', reflection: [] },
    ]);
    expect(
      hasEvent(world, 'NameTaken: in paris: NameTaken (shop is another’s; make the NamespaceOffloading anew'),
    ).toBe(true);
    world.answer('paris', 'shop', { state: 'Mapped', tenantNamespace: 'shop' });
    await world.untilReady('AsExpected');
  });

  test('no word from the provider yet', async () => {
    await world.virtualNode('milan', 'milan');
    world.standings.set('milan/shop', undefined);
    await world.start();
    await world.offload({ naming: 'Selected', remoteName: 'their-shop' });
    await world.untilReady('InProgress');
    expect(await world.phases()).toEqual(['milan Pending WaitingForProvider']);
    expect(world.offloading.of('milan')).toMatchObject([{ remoteName: 'their-shop' }]);
  });

  test('made by hand: mapped or not', async () => {
    await world.virtualNode('mapped', undefined, {
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'a' }],
    });
    await world.virtualNode('other');
    await world.start();
    await world.offload();
    await world.untilReady('SomeClustersFailed');
    expect(await world.phases()).toEqual(['mapped Ready AsExpected', 'other Failed NotMapped']);
  });

  test('heldOff is left alone', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    const heldOff = [{ owner: 'ReplicaSet/web', virtualNode: 'milan', until: '2030-01-01T00:00:00Z' }];
    const ref = { name: 'offloading', namespace: 'shop' };
    await world.client.patch(
      namespaceOffloadings,
      ref,
      { type: 'merge', body: { status: { heldOff } } },
      { subresource: 'status' },
    );
    await world.virtualNode('paris', 'paris');
    await world.until('paris is in', async () => (await world.clusters()).length === 2);
    expect((await world.get())?.status?.heldOff).toEqual(heldOff);
  });

  test('what does not change is not written', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    const before = (await world.get())?.metadata.resourceVersion;
    for (let times = 0; times < 5; times++) {
      const state = { state: 'Mapped', tenantNamespace: 'shop-there' } as const;
      world.answer('milan', 'shop', state);
      await world.clock.advance(1000);
    }
    expect((await world.get())?.metadata.resourceVersion).toBe(before);
  });
});

describe('never offloaded', () => {
  test.each([
    ['kube-system', {}],
    ['tributary-peers', {}],
    ['tenant', { [LABEL_PEER]: 'x' }],
  ])('%s', async (name, labels) => {
    await world.virtualNode('milan', 'milan');
    await world.namespace(name, { ...labels, 'tributary.dev/offload': 'true' });
    await world.start();
    await world.offload({}, name);
    const { metadata } = await world.untilReady('SystemNamespace', name);
    expect(metadata.finalizers ?? []).toEqual([]);
    expect(world.offloading.offloadingOf(name)).toBeUndefined();
    expect(world.offloading.of('milan')).toEqual([]);
    expect(world.offloading.all()).toEqual([]);
    await world.until('it is said on the namespace', () =>
      hasEvent(world, `Namespace/${name} OffloadingRefused`),
    );
  });
});

describe('short form', () => {
  const label = async (value: string | null): Promise<unknown> =>
    world.client.patch(
      namespaces,
      { name: 'shop' },
      { type: 'merge', body: { metadata: { labels: { 'tributary.dev/offload': value } } } },
    );

  test('comes and goes with the label, and follows it', async () => {
    await world.start();
    await label('true');
    expect(readyMessage(await world.untilReady('NoClusterSelected'))).toContain('there is no virtual node');
    expect((await world.get())?.spec.podStrategy).toBe('LocalAndRemote');
    await label('Remote');
    await world.until('the strategy follows', async () => (await world.get())?.spec.podStrategy === 'Remote');
    await label('yes');
    await world.until('told', () => hasEvent(world, 'Namespace/shop OffloadLabelInvalid'));
    expect((await world.get())?.spec.podStrategy).toBe('Remote');
    await label(null);
    await world.untilGone();
  });

  test('what a label stands for is known before the namespace and its object are', async () => {
    await world.namespace('tenant', { [LABEL_PEER]: 'x' });
    await world.start();
    const strategyOf = (namespace: string): string | undefined =>
      world.offloading.offloadingByShortForm(namespace, 'Remote')?.spec.podStrategy;
    expect(strategyOf('not-seen-yet')).toBe('Remote');
    expect(strategyOf('shop')).toBe('Remote');
    expect(strategyOf('tenant')).toBeUndefined();
    await world.offload({ podStrategy: 'LocalAndRemote' });
    await world.until('a person’s own object wins', () => strategyOf('shop') === 'LocalAndRemote');
    await world.untilReady('NoClusterSelected');
    const held = { type: 'merge', body: { metadata: { finalizers: ['test/wait'] } } } as const;
    await world.client.patch(namespaceOffloadings, { name: 'offloading', namespace: 'shop' }, held);
    await world.remove();
    await world.until('one that is being deleted lets nothing out', () => strategyOf('shop') === undefined);
  });

  test('a person’s own object wins', async () => {
    await world.offload({ podStrategy: 'Local' });
    await world.start();
    await label('Remote');
    await world.untilReady('NoClusterSelected');
    await label(null);
    await world.namespace('other', { 'tributary.dev/offload': 'true' });
    await world.untilReady('NoClusterSelected', 'other');
    expect((await world.get())?.spec.podStrategy).toBe('Local');
  });

  test('the operator’s selector; without it, next time, they go', async () => {
    await world.namespace('team-a', { team: 'a' });
    await world.namespace('home', { team: 'a', 'tributary.dev/offload': 'false' });
    await world.start({ selector: { matchLabels: { team: 'a' } }, podStrategy: 'Remote' });
    await world.untilReady('NoClusterSelected', 'team-a');
    expect((await world.get('team-a'))?.spec.podStrategy).toBe('Remote');
    expect((await world.get('team-a'))?.metadata.labels).toEqual({
      'tributary.dev/offloading-origin': 'selector',
    });
    expect(await world.get('home')).toBeUndefined();
    await world.stop();
    await world.start();
    await world.untilGone('team-a');
  });
});

describe('removal', () => {
  test('pods come home, then the mapping goes, then the object', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
    await world.pod('owned', 'milan', OWNED);
    await world.pod('bare', 'milan', LET_IN);
    await world.pod('done', 'milan', {}, 'Succeeded');
    await world.pod('home', 'real-1');
    await world.remove();
    await world.until('no longer in effect', () => world.offloading.offloadingOf('shop') === undefined);
    await world.untilGone();
    expect(await world.mappings('milan')).toEqual([]);
    expect(await world.podNames()).toEqual(['bare@', 'home@real-1']);
    await world.until('nothing is remembered', async () => (await world.journals()) === 0);
    expect(hasEvent(world, 'LeftBehind')).toBe(false);
  });

  test('onRemoval End: bare pods end', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload({ onRemoval: 'End' });
    await world.untilReady('AsExpected');
    await world.pod('bare', 'milan', LET_IN);
    await world.remove();
    await world.untilGone();
    expect(await world.podNames()).toEqual([]);
  });

  test('the mapping stays while pods end there', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
    await world.pod('slow', 'milan', { ...OWNED, finalizers: ['test/wait'] });
    await world.remove();
    await world.untilReady('Ending');
    expect(world.offloading.of('milan')).toMatchObject([{ homeNamespace: 'shop' }]);
    expect(await world.phases()).toEqual(['milan Ending Ending']);
    const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await world.client.patch(pods, { name: 'slow', namespace: 'shop' }, freed);
    await world.untilGone();
    expect(world.offloading.of('milan')).toEqual([]);
  });

  test('the other side is dead: it ends all the same, and says what may be left', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
    world.dead.add('milan');
    await world.pod('owned', 'milan', OWNED);
    await world.remove();
    await world.untilGone();
    expect(
      hasEvent(
        world,
        'LeftBehind: not waited for any longer; still mapped: milan (namespace shop-there); pods that have not ended: 1',
      ),
    ).toBe(true);
  });

  test('the controller is replaced on the way', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
    await world.pod('slow', 'milan', { ...OWNED, finalizers: ['test/wait'] });
    await world.remove();
    await world.untilReady('Ending');
    await world.stop();
    const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await world.client.patch(pods, { name: 'slow', namespace: 'shop' }, freed);
    await world.start();
    await world.untilGone();
    expect(await world.mappings('milan')).toEqual([]);
  });

  test('in a namespace that ends, nothing is made anew', async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.pod('bare', 'milan', LET_IN);
    await world.client.patch(
      namespaces,
      { name: 'shop' },
      { type: 'merge', body: { metadata: { finalizers: ['test/wait'] } } },
    );
    await world.client.delete(namespaces, { name: 'shop' });
    await world.until('no longer in effect', () => world.offloading.offloadingOf('shop') === undefined);
    // As the namespace controller does.
    await world.remove();
    await world.client.delete(pods, { name: 'bare', namespace: 'shop' });
    await world.untilGone();
    expect(await world.podNames()).toEqual([]);
    expect(await world.journals()).toBe(0);
  });
});

describe('another selector', () => {
  test('the cluster that is left ends, then vanishes', async () => {
    await world.virtualNode('milan', 'milan');
    await world.virtualNode('paris', 'paris');
    await world.start();
    const { metadata } = await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('paris')).includes('shop'));
    await world.pod('in-milan', 'milan', OWNED);
    await world.pod('in-paris', 'paris', { ...OWNED, finalizers: ['test/wait'] });
    const spec = { clusterSelector: { matchLabels: { 'tributary.dev/cluster': 'milan' } } };
    await world.client.patch(namespaceOffloadings, metadata, { type: 'merge', body: { spec } });
    await world.until('paris ends', async () => (await world.phases()).includes('paris Ending Ending'));
    expect(await world.mappings('paris')).toEqual(['shop']);
    const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await world.client.patch(pods, { name: 'in-paris', namespace: 'shop' }, freed);
    await world.until('paris vanishes', async () => (await world.clusters()).length === 1);
    expect(await world.mappings('paris')).toEqual([]);
    expect(await world.podNames()).toEqual(['in-milan@milan']);
  });
});

test('a namespace that was deleted and made again starts anew', async () => {
  await world.virtualNode('milan', 'milan');
  await world.start();
  const first = await world.offload();
  await world.untilReady('AsExpected');
  await world.remove();
  await world.untilGone();
  await world.client.delete(namespaces, { name: 'shop' });
  await world.namespace('shop');
  expect(world.offloading.of('milan')).toEqual([]);
  const second = await world.offload();
  await world.untilReady('AsExpected');
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
  await world.until('mapped again', async () => (await world.mappings('milan')).includes('shop'));
});
