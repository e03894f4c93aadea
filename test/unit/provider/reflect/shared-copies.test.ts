import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { guestNetworkPolicies } from '../../../../src/api/guest-network-policy.ts';
import { LABEL_PROVIDER } from '../../../../src/api/names.ts';
import { configMaps, networkPolicies, secrets, services } from '../../../../src/api/resources.ts';
import { type NamespaceMapping, type VirtualNode, virtualNodes } from '../../../../src/api/virtual-node.ts';
import { FakeNetwork } from '../support/network.ts';
import { type Running, World } from '../support/world.ts';

/** Virtual nodes of one provider share a tenant namespace and the copies in it, and leave it one by one. */

const VIRTUAL_NODES = 'virtualnodes.tributary.dev';
const labels = { [LABEL_PROVIDER]: 'milan' };
const MAPPING: NamespaceMapping = {
  homeNamespace: 'shop',
  tenantNamespace: 'tenant',
  reflection: [
    { resource: 'configmaps', policy: 'All' },
    { resource: 'secrets', policy: 'All' },
  ],
};
const KINDS = ['services', 'configmaps', 'secrets', 'guestnetworkpolicies.tributary.dev'];
type Name = 'rome' | 'ostia';

let world: World;
const agents = new Map<Name, Running>();
beforeEach(async () => {
  world = await new World({ types: [guestNetworkPolicies] }).up();
  world.network = new FakeNetwork();
  const spec = { ...virtualNode('rome').spec, namespaces: [MAPPING] };
  const rome = world.home.storage.get(VIRTUAL_NODES, 'rome');
  world.home.storage.update(VIRTUAL_NODES, {
    ...rome,
    metadata: { ...rome?.metadata, labels },
    spec,
  } as never);
  world.home.seed(virtualNodes, { metadata: { name: 'ostia', labels }, spec });
  const metadata = { namespace: 'shop', name: 'web' };
  world.home.seed(configMaps, { metadata, data: { a: '1' } });
  world.home.seed(secrets, { metadata, data: {} });
  world.home.seed(services, { metadata, spec: { ports: [{ port: 80 }] } });
  world.home.seed(networkPolicies, { metadata, spec: { podSelector: { matchLabels: { app: 'web' } } } });
  await start('rome', 'ostia');
  await world.until('all copies are there', () => found() === KINDS.length);
  await world.until('both have said so', () => looksAfter('rome') && looksAfter('ostia'));
});
afterEach(async () => world.down());

const virtualNode = (name: Name): VirtualNode =>
  world.home.storage.get(VIRTUAL_NODES, name) as unknown as VirtualNode;
const looksAfter = (name: Name): boolean => (virtualNode(name).status?.namespaces ?? []).length > 0;
const copies = (): (string | undefined)[] =>
  KINDS.map((kind) => world.foreign.storage.get(kind, 'tenant/web')?.metadata.uid);
const found = (): number => copies().filter((uid) => uid !== undefined).length;

async function start(...names: Name[]): Promise<void> {
  for (const name of names) agents.set(name, await world.start(name));
}
const stop = async (...names: Name[]): Promise<void> => {
  for (const name of names) await agents.get(name)?.stop();
};

function take(name: Name, namespaces: NamespaceMapping[] = []): void {
  const node = virtualNode(name);
  world.home.storage.update(VIRTUAL_NODES, { ...node, spec: { ...node.spec, namespaces } } as never);
}

/** What changes over there in that time, Leases of home aside. */
async function changes(pass: () => Promise<void>): Promise<string[]> {
  const before = world.foreign.log.length;
  await pass();
  const isChange = (line: string): boolean => !line.startsWith('GET ') && !line.includes('/leases');
  return world.foreign.log.slice(before).filter(isChange);
}
const left = async (name: Name): Promise<void> => world.until(`${name} has left`, () => !looksAfter(name));

test('who leaves lets the copies be, and the last one deletes them', async () => {
  const ostiaLeaves = async (): Promise<void> => {
    take('ostia');
    await left('ostia');
    await world.clock.advance(100_000);
  };
  expect(await changes(ostiaLeaves)).toEqual([]);
  expect(looksAfter('rome')).toBe(true);
  take('rome');
  await left('rome');
  expect(found()).toBe(0);
});

test('a virtual node that is deleted lets them be, and those who stay keep them up to date', async () => {
  const before = copies();
  const ostiaGoes = async (): Promise<void> => {
    world.home.storage.remove(VIRTUAL_NODES, 'ostia');
    await world.clock.advance(100_000);
  };
  expect(await changes(ostiaGoes)).toEqual([]);
  world.home.storage.remove('services', 'shop/web');
  await world.until('the Service has gone', () => copies()[0] === undefined);
  expect(copies().slice(1)).toEqual(before.slice(1));
  world.home.storage.remove(VIRTUAL_NODES, 'rome');
  await world.until('nothing is left', () => found() === 0);
});

test.each([
  ['taken out', (name: Name) => take(name)],
  ['deleted', (name: Name) => world.home.storage.remove(VIRTUAL_NODES, name)],
])('both at once, %s: nothing is left behind', async (_how, leave) => {
  leave('rome');
  leave('ostia');
  await world.until('nothing is left', () => found() === 0);
});

test('pods that still run keep them, although nobody has the namespace any more', async () => {
  world.addPod('web');
  await world.until('the pod runs', () => world.status('web')?.['phase'] === 'Running');
  const waits = async (): Promise<void> => {
    take('rome');
    take('ostia');
    await world.clock.advance(100_000);
  };
  // By rules alone nothing is brought there any more.
  expect((await changes(waits)).filter((line) => !/configmaps|secrets/u.test(line))).toEqual([]);
  expect(copies()[0]).toBeDefined();
  world.deletePod('web');
  await Promise.all([left('rome'), left('ostia')]);
  expect(found()).toBe(0);
});

test('pods of who leaves end in peace', async () => {
  world.addPod('web', { nodeName: 'ostia' });
  await world.until('the pod runs', () => world.status('web')?.['phase'] === 'Running');
  const before = copies();
  take('ostia');
  await world.clock.advance(100_000);
  expect(looksAfter('ostia')).toBe(true);
  world.deletePod('web');
  await world.until('the pod has gone', () => world.status('web') === undefined);
  await world.until('ostia has left', () => !looksAfter('ostia'), 5_000);
  expect(copies()).toEqual(before);
});

test('an agent that is killed while it leaves lets them be when it is back', async () => {
  await stop('ostia');
  const comesBack = async (): Promise<void> => {
    take('ostia');
    await start('ostia');
    await left('ostia');
  };
  expect(await changes(comesBack)).toEqual([]);
});

test('an agent that does not run inherits them, and deletes them when it is back', async () => {
  await stop('rome');
  take('ostia');
  await left('ostia');
  take('rome');
  await world.clock.advance(100_000);
  expect(found()).toBe(KINDS.length);
  await start('rome');
  await left('rome');
  expect(found()).toBe(0);
});

test('both are taken out while no agent runs', async () => {
  await stop('rome', 'ostia');
  take('rome');
  take('ostia');
  await start('ostia', 'rome');
  await Promise.all([left('rome'), left('ostia')]);
  expect(found()).toBe(0);
});

test('who comes back has them as they were', async () => {
  const before = copies();
  take('ostia');
  await left('ostia');
  take('ostia', [MAPPING]);
  await world.until('ostia is back', () => looksAfter('ostia'));
  take('rome');
  await left('rome');
  expect(copies()).toEqual(before);
});

test('an agent that may read no other VirtualNode leaves as if there were none', async () => {
  await stop('rome', 'ostia');
  world.home.fault({
    match: ({ query }) => query.get('labelSelector')?.startsWith(LABEL_PROVIDER) === true,
    times: Infinity,
    status: 403,
  });
  take('ostia');
  await start('ostia');
  await left('ostia');
  expect(found()).toBe(0);
});
