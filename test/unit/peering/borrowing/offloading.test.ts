import { afterEach, expect, test } from '@jest/globals';
import type { OffloadedNamespace } from '../../../../src/api/namespace-offloading.ts';
import type { NamespaceMapping, VirtualNode } from '../../../../src/api/virtual-node.ts';
import {
  type DesiredVirtualNode,
  updatedVirtualNode,
} from '../../../../src/peering/borrowing/virtual-node.ts';
import type { NamespaceOffloadings } from '../../../../src/peering/ports.ts';
import { VIRTUAL_NODES } from './support/fake-agents.ts';
import { policy, World } from './support/world.ts';

/** NamespaceOffloadings as the controller of them answers. */
class Offloadings implements NamespaceOffloadings {
  synced = true;
  #all: OffloadedNamespace[] = [];
  readonly #listeners = new Set<() => void>();

  of(): readonly OffloadedNamespace[] {
    return this.#all;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(...all: Partial<OffloadedNamespace>[]): void {
    this.#all = all.map((one) => ({ homeNamespace: 'shop', reflection: [], ...one }));
    this.tell();
  }

  tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

let world: World;
let offloadings: Offloadings;
afterEach(async () => world.down());

const up = async (): Promise<World> => {
  offloadings = new Offloadings();
  world = await new World({ offloadings }).up();
  world.intent = { wanted: true, namespaces: [], policy: policy({ namespaces: [] }) };
  return world;
};

const mappings = (): NamespaceMapping[] | undefined => world.virtualNode('milan')?.spec.namespaces;
/** The provider makes another offer for what it is asked now. */
const answered = async (what: string, isThere: () => boolean): Promise<void> => {
  // Not faster than an offer can be taken on a busy machine, else none ever is.
  let next = 0;
  await world.until(what, () => {
    if (world.clock.monotonic() > next) {
      next = world.clock.monotonic() + 500;
      world.provider.renew();
      world.say();
    }
    return isThere();
  });
};

test('a peering without a namespace has a virtual node; a namespace comes and goes', async () => {
  await up();
  const { borrowing } = await world.start();
  await world.established();
  expect(mappings()).toEqual([]);
  expect(world.provider.request?.namespaces).toEqual([]);
  expect(world.agents.running.get(world.id)?.namespaces).toEqual([]);
  expect(borrowing.mappingState(world.id, 'shop')).toBeUndefined();
  const heard: (string | undefined)[] = [];
  borrowing.onChange(() => heard.push(borrowing.mappingState(world.id, 'shop')?.state));

  offloadings.set({});
  await world.until('asked for', () => world.provider.request?.namespaces.join() === 'shop');
  await answered('mapped', () => mappings()?.length === 1);
  expect(mappings()).toEqual([{ homeNamespace: 'shop', tenantNamespace: 'shop-t' }]);
  await world.until('told', () => heard.includes('Mapped'));
  expect(borrowing.mappingState(world.id, 'shop')).toEqual({ state: 'Mapped', tenantNamespace: 'shop-t' });
  await world.until('the agent may enter', () =>
    Boolean(world.agents.running.get(world.id)?.namespaces.includes('shop')),
  );

  const held = (status: NamespaceMapping[]): void => {
    const { storage } = world.home;
    const object = storage.get(VIRTUAL_NODES, 'milan') as unknown as VirtualNode;
    storage.update(VIRTUAL_NODES, {
      ...object,
      status: { ...object.status, namespaces: status },
    } as never);
  };
  world.agents.dead = true;
  held([{ homeNamespace: 'shop', tenantNamespace: 'shop-t' }]);
  offloadings.set();
  await world.until('taken out', () => mappings()?.length === 0);
  await world.until('told', () => borrowing.mappingState(world.id, 'shop') === undefined);
  // The agent has not ended what runs there: it needs its rights.
  expect(world.provider.request?.namespaces).toEqual(['shop']);
  held([]);
  await world.until('no longer asked for', () => world.provider.request?.namespaces.length === 0);
});

test('rules for objects reach the virtual node, and change nothing else', async () => {
  await up();
  await world.start();
  offloadings.set({ reflection: [{ resource: 'configmaps', policy: 'All' }] });
  await world.established();
  await answered('mapped', () => mappings()?.length === 1);
  const rules = [{ group: '', resource: 'configmaps', policy: 'All' }];
  expect(mappings()?.[0]?.reflection).toEqual(rules);
  const contract = world.advertisement?.status?.contract;
  const requests = world.provider.requests.length;

  offloadings.set({ reflection: [{ resource: 'secrets', policy: 'None' }] });
  await world.until('other rules', () => mappings()?.[0]?.reflection?.[0]?.resource === 'secrets');
  offloadings.set({});
  await world.until('no rules', () => mappings()?.[0]?.reflection === undefined);
  expect(mappings()).toEqual([{ homeNamespace: 'shop', tenantNamespace: 'shop-t' }]);
  expect(world.advertisement?.status?.contract).toEqual(contract);
  expect(world.provider.requests).toHaveLength(requests);
});

test('a provider that knows nothing of names: what it calls otherwise is not used', async () => {
  await up();
  const { borrowing } = await world.start();
  offloadings.set({ remoteName: 'store' }, { homeNamespace: 'spare', remoteName: 'spare-t' });
  await world.established();
  expect(world.provider.request?.names).toEqual({ shop: 'store', spare: 'spare-t' });
  await answered('mapped', () => mappings()?.length === 1);
  expect(mappings()).toEqual([{ homeNamespace: 'spare', tenantNamespace: 'spare-t' }]);
  expect(borrowing.mappingState(world.id, 'shop')).toEqual({
    state: 'Withheld',
    reason: 'NamingNotAllowed',
    message: 'the provider calls it shop-t, not store, so it is not used',
  });
  await world.until(
    'the agent may enter',
    () => world.agents.running.get(world.id)?.namespaces.join() === 'spare',
  );
});

test('what the provider withholds is told with its cause; of what nobody wants nothing is told', async () => {
  await up();
  const { borrowing } = await world.start();
  world.provider.withheld = [
    { homeNamespace: 'shop', reason: 'NameTaken', message: 'store is another namespace here' },
    { homeNamespace: 'spare', reason: 'NameTaken' },
  ];
  world.provider.refuses = ['shop'];
  offloadings.set({ remoteName: 'store' });
  await world.established();
  await world.until('told', () => borrowing.mappingState(world.id, 'shop') !== undefined);
  expect(borrowing.mappingState(world.id, 'shop')).toEqual({
    state: 'Withheld',
    reason: 'NameTaken',
    message: 'the provider says: store is another namespace here',
  });
  expect(borrowing.mappingState(world.id, 'spare')).toBeUndefined();
  expect(mappings()).toEqual([]);
});

test('a name that is free soon is told as such', async () => {
  await up();
  const { borrowing } = await world.start();
  world.provider.withheld = [
    { homeNamespace: 'shop', reason: 'NameTaken', ending: true, message: 'shop-t has not ended yet' },
  ];
  world.provider.refuses = ['shop'];
  offloadings.set({});
  await world.established();
  await world.until('told', () => borrowing.mappingState(world.id, 'shop') !== undefined);
  expect(borrowing.mappingState(world.id, 'shop')).toEqual({
    state: 'Withheld',
    reason: 'NameTaken',
    ending: true,
    message: 'the provider says: shop-t has not ended yet',
  });
});

test('before NamespaceOffloadings are read nothing is said, and nothing taken back', async () => {
  await up();
  const first = await world.start();
  offloadings.set({});
  await world.established();
  await answered('mapped', () => mappings()?.length === 1);
  await first.stop();
  offloadings.synced = false;
  offloadings.set();
  const { borrowing } = await world.start();
  expect(() => borrowing.documents(world.id)).toThrow('not all that was agreed on is read yet');
  expect(borrowing.mappingState(world.id, 'shop')).toBeUndefined();
  offloadings.synced = true;
  offloadings.set({});
  await world.until('said', () => borrowing.documents(world.id).request?.namespaces.join() === 'shop');
  expect(mappings()).toHaveLength(1);
  expect(world.provider.request?.namespaces).toEqual(['shop']);
});

test('labels of the node: the cluster, the place, and what people say above all', async () => {
  await up();
  world.provider.more = {
    labels: { 'topology.kubernetes.io/region': 'north', 'example.com/tier': 'cheap' },
    classes: { ingress: ['nginx', 'upper/Class'], priority: ['quiet', 'batch', 'upper/Class'] },
  };
  world.intent = {
    ...world.intent,
    policy: policy({
      namespaces: [],
      nodeLabels: { 'example.com/tier': 'dear', 'example.com/own': 'yes' },
      ingressClasses: { web: 'haproxy' },
    }),
  };
  await world.start();
  await world.established();
  expect(world.virtualNode('milan')?.spec.labels).toEqual({
    'tributary.dev/cluster': 'Milan',
    'tributary.dev/provider': world.id,
    'topology.kubernetes.io/region': 'north',
    'kubernetes.io/arch': 'arm64',
    'kubernetes.io/os': 'linux',
    'example.com/tier': 'dear',
    'example.com/own': 'yes',
  });
  expect(world.virtualNode('milan')?.spec.ingressClasses).toEqual({
    web: 'haproxy',
    nginx: 'nginx',
  });
  expect(world.virtualNode('milan')?.spec.priorityClasses).toEqual(['batch', 'quiet']);
});

test('the effect of the taint is what the policy says, and without a policy what the VirtualNode says', async () => {
  await up();
  await world.start();
  await world.established();
  const effect = (): string | undefined => world.virtualNode('milan')?.spec.taintEffect;
  world.want({ policy: policy({ namespaces: [], taintEffect: 'None' }) });
  await world.until('None', () => effect() === 'None');
  world.want({ policy: policy({ namespaces: [] }) });
  await world.until('the default', () => effect() === 'NoSchedule');
});

test('what pods get there is what the policy says, and without a policy what the VirtualNode says', async () => {
  await up();
  await world.start();
  await world.established();
  const additions = (): unknown => world.virtualNode('milan')?.spec.podAdditions;
  const podAdditions = { labels: { cost: 'rent' } };
  world.want({ policy: policy({ namespaces: [], podAdditions }) });
  await world.until('added', () => JSON.stringify(additions()) === JSON.stringify(podAdditions));
  world.want({ policy: policy({ namespaces: [] }) });
  await world.until('no more', () => additions() === undefined);
  const milan = world.virtualNode('milan');
  if (milan === undefined) throw new Error('there is no virtual node');
  const own = { labels: { cost: 'own' } };
  const desired: DesiredVirtualNode = {
    name: 'milan',
    provider: milan.metadata.labels?.['tributary.dev/provider'] ?? '',
    kubeconfigSecretRef: milan.spec.kubeconfigSecretRef,
    resources: milan.spec.resources,
    labels: {},
    namespaces: [],
    ingressClasses: {},
    storageClasses: {},
    offeredStorageClasses: [],
    priorityClasses: [],
    device: false,
    closed: undefined,
  };
  const people = { ...milan, spec: { ...milan.spec, podAdditions: own } };
  expect(updatedVirtualNode(people, desired).spec.podAdditions).toEqual(own);
  expect(updatedVirtualNode(people, { ...desired, podAdditions: {} }).spec.podAdditions).toBeUndefined();
});

test('the virtual node bears the name of the policy of its provider, as it was said last', async () => {
  await up();
  world.provider.policy = 'guests';
  await world.start();
  await world.established();
  const named = (): string | undefined =>
    world.virtualNode('milan')?.metadata.annotations?.['tributary.dev/sharing-policy'];
  expect(named()).toBe('guests');
  world.provider.policy = 'friends';
  await answered('another name', () => named() === 'friends');
  world.provider.policy = undefined;
  world.provider.resources = { cpu: '4', memory: '8Gi', pods: '50' };
  await answered('another offer', () => world.virtualNode('milan')?.spec.resources['cpu'] === '4');
  expect(named()).toBe('friends');
});
