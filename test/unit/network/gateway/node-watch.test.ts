import { expect, test } from '@jest/globals';

import { type NetworkNode, MOST_SILENT } from '../../../../src/api/own-network.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { NodeWatch } from '../../../../src/network/gateway/node-watch.ts';
import { network } from '../plan/facts.ts';

class World {
  readonly deaf = new Set<string>();
  readonly asked: string[] = [];
  readonly shown: number[] = [];
  nodes: NetworkNode[] = network.nodes;
  readonly watch: NodeWatch = new NodeWatch({
    log: silentLogger,
    knock: async (source, address) => {
      this.asked.push(`${source} ${address}`);
      return Promise.resolve(!this.deaf.has(address));
    },
    show: (silent) => void this.shown.push(silent),
  });

  look = async (nodeName = 'n1'): Promise<boolean> =>
    this.watch.look({ ...network, nodes: this.nodes }, nodeName);
}

test('asks each other node by VXLAN; one is silent after three misses, and at once no more', async () => {
  const world = new World();
  expect(world.watch.silent).toBeUndefined();
  expect(await world.look()).toBe(true);
  expect(world.asked).toEqual(['10.70.0.11 10.70.0.12']);
  expect(world.watch.silent).toEqual([]);
  world.deaf.add('10.70.0.12');
  expect([await world.look(), await world.look(), await world.look(), await world.look()]).toEqual([
    false,
    false,
    true,
    false,
  ]);
  expect(world.watch.silent).toEqual(['n2']);
  world.deaf.clear();
  expect(await world.look()).toBe(true);
  expect(world.watch.silent).toEqual([]);
  expect(world.shown).toEqual([0, 0, 0, 1, 1, 0]);
});

test('a node that has gone is forgotten', async () => {
  const world = new World();
  world.deaf.add('10.70.0.12');
  for (let round = 0; round < 3; round++) await world.look();
  world.nodes = network.nodes.slice(0, 1);
  expect(await world.look()).toBe(true);
  expect(world.watch.silent).toEqual([]);
});

test('asks nobody of another family, and nobody while its own node is not known', async () => {
  const world = new World();
  world.nodes = [...network.nodes, { name: 'n6', address: '172.31.0.6', external: 'fd00::6', pods: [] }];
  await world.look('new');
  expect(world.asked).toEqual([]);
  await world.look();
  expect(world.asked).toHaveLength(1);
});

test('a long list is cut', async () => {
  const world = new World();
  const [self] = network.nodes;
  const external = (index: number): string => `10.70.1.${index}`;
  const many = Array.from({ length: 2 * MOST_SILENT }, (_, index) => ({
    name: `m${1000 + index}`,
    address: '172.31.1.1',
    external: external(index),
    pods: [],
  }));
  world.nodes = self === undefined ? [] : [self, ...many];
  for (const node of many) world.deaf.add(node.external);
  for (let round = 0; round < 3; round++) await world.look();
  expect(world.watch.silent).toHaveLength(MOST_SILENT);
  expect(world.shown.at(-1)).toBe(2 * MOST_SILENT);
});
