import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { LABEL_PROVIDER } from '../../../../src/api/names.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import type { ConfigMap } from '../../../../src/api/wire.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { World } from '../support/world.ts';

/** Several virtual nodes of one provider run pods of one namespace, so they share a tenant namespace. */

const VIRTUAL_NODES = 'virtualnodes.tributary.dev';
const labels = { [LABEL_PROVIDER]: 'milan' };
const WITH_CONFIG = { volumes: [{ name: 'config', configMap: { name: 'settings' } }] };

let world: World;
beforeEach(async () => {
  world = await new World().up();
  const rome = world.home.storage.get(VIRTUAL_NODES, 'rome');
  if (rome === undefined) throw new Error('no VirtualNode');
  world.home.storage.update(VIRTUAL_NODES, { ...rome, metadata: { ...rome.metadata, labels } });
  world.home.seed(virtualNodes, { metadata: { name: 'ostia', labels }, spec: rome.spec as never });
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' }, data: { a: '1' } });
  await Promise.all([world.start('rome'), world.start('ostia')]);
});
afterEach(async () => world.down());

const isRunning = (name: string): boolean => world.status(name)?.['phase'] === 'Running';
const copy = (): ConfigMap | undefined => world.foreign.storage.get('configmaps', 'tenant/settings');

async function pass(ms: number): Promise<void> {
  await world.clock.advance(ms);
}

test('a copy is of both, and stays until the last pod that uses it has gone', async () => {
  world.addPod('first', WITH_CONFIG);
  await world.until('the first runs', () => isRunning('first'));
  world.addPod('second', { ...WITH_CONFIG, nodeName: 'ostia' });
  await world.until('the second runs', () => isRunning('second'));
  expect(world.events.filter((event) => event.startsWith('NameTaken'))).toEqual([]);

  const uid = copy()?.metadata.uid;
  world.deletePod('first');
  await world.until('the first has gone', () => world.status('first') === undefined);
  await pass(200_000);
  expect(copy()).toMatchObject({ data: { a: '1' }, metadata: { uid } });
  world.home.storage.update('configmaps', {
    ...world.home.storage.get('configmaps', 'shop/settings'),
    data: { a: '2' },
  } as never);
  await world.until('the copy follows', () => copy()?.data?.['a'] === '2');

  world.deletePod('second');
  await world.until('nobody uses it', () => copy() === undefined);
});

test('both at once: neither finds the name taken', async () => {
  for (let index = 0; index < 10; index++) {
    world.addPod(`web-${index}`, { ...WITH_CONFIG, nodeName: index % 2 === 0 ? 'rome' : 'ostia' });
  }
  const all = Array.from({ length: 10 }, (_, index) => `web-${index}`);
  await world.until('all run', () => all.every(isRunning));
  expect(world.events.filter((event) => event.startsWith('NameTaken'))).toEqual([]);
});
