import { afterEach, expect, test } from '@jest/globals';
import 'reflect-metadata';

import type { NetworkDocument } from '../../../../src/api/peer-documents.ts';
import { type Clock, systemClock } from '../../../../src/lib/clock.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Delivery } from '../../../../src/peering/link/delivery.ts';
import { DocumentPaces } from '../../../../src/peering/link/document-paces.ts';
import type { DocumentChanges, Documents } from '../../../../src/peering/protocol/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { linked, PeeringNode, type PeeringNodeOptions } from '../../../support/peering/peering-node.ts';

/** The network's document on a link: a third side, which neither makes nor keeps a peering. */

let nodes: PeeringNode[] = [];
afterEach(async () => {
  await Promise.all(nodes.map(async (node) => node.stop()));
  nodes = [];
});

const key = Buffer.alloc(32, 7).toString('base64');
const prefix = (index: number): string => `100.${64 + (index >> 8)}.${index & 255}.0/24`;
const networkOf = (count: number): NetworkDocument => ({
  publicKey: key,
  endpoints: ['192.0.2.1:51820'],
  pods: ['10.244.0.0/16'],
  external: ['10.70.0.0/20'],
  transit: Array.from({ length: count }, (_, index) => prefix(index)),
  views: Array.from({ length: count }, (_, index) => ({ prefix: prefix(index), as: prefix(count + index) })),
  presharedHalf: key,
});

interface Side {
  node: PeeringNode;
  says: { network?: NetworkDocument };
  heard: DocumentChanges[];
}

async function start(options: PeeringNodeOptions = {}, refuse?: () => void): Promise<Side> {
  const side: Pick<Side, 'says' | 'heard'> = { says: {}, heard: [] };
  const network = {
    documents: (): Pick<Documents, 'network'> => side.says,
    received: async (_peer: unknown, changes: DocumentChanges): Promise<void> => {
      refuse?.();
      side.heard.push(changes);
      await Promise.resolve();
    },
  };
  const node = await new PeeringNode({ ...options, registry: { ...options.registry, network } }).start();
  nodes.push(node);
  return { node, ...side };
}

test('is carried beside the others, a thousand prefixes and views long', async () => {
  const [one, two] = [await start(), await start()];
  one.says.network = networkOf(1_024);
  one.node.dial(two.node);
  await eventually('it arrived', () => two.heard.length > 0);
  expect(two.heard).toEqual([{ network: networkOf(1_024) }]);
  expect(two.node.lastHeard(one.node)).not.toHaveProperty('network');
  delete one.says.network;
  one.node.registry.publish(two.node.id);
  await eventually('it was taken back', () => two.heard.length > 1);
  expect(two.heard[1]).toEqual({ network: null });
});

test('is not said by, and not heard by, a cluster without a network', async () => {
  const one = await start();
  const plain = await new PeeringNode().start();
  nodes.push(plain);
  one.says.network = networkOf(1);
  one.node.dial(plain);
  await linked(one.node, plain);
  await eventually('all was said', () => plain.heard.length > 0 && one.heard.length > 0);
  expect(one.heard).toEqual([{ network: null }]);
  expect(plain.lastHeard(one.node)).toEqual({ request: null, acceptance: null, offer: null, grant: null });
});

test('of a stranger keeps no link alive', async () => {
  const clock: Clock = { ...systemClock };
  const [one, stranger] = [await start({ registry: { reapMs: 50, clock } }), await start()];
  stranger.says.network = networkOf(1);
  one.node.dial(stranger.node);
  await eventually('it arrived', () => one.heard.length > 0);
  one.node.registry.setTargets([]);
  await eventually('the link ended', () => one.node.registry.view(stranger.node.id) === undefined);
});

test('that cannot be taken yet is handed over again while its sender is linked, and then forgotten', async () => {
  const clock = new FakeClock();
  let isPresent = true;
  let calls = 0;
  const nothing = async (): Promise<void> => Promise.resolve();
  const delivery = new Delivery({
    peer: { clusterID: 'p', publicKey: new Uint8Array(32) },
    isPresent: () => isPresent,
    lending: { received: nothing },
    borrowing: { received: nothing },
    network: {
      received: async () => {
        calls++;
        return Promise.reject(new TributaryError('Unavailable', 'not peered'));
      },
    },
    paces: new DocumentPaces(clock),
    clock,
    random: () => 0.5,
    log: silentLogger,
  });
  const told: (string | undefined)[] = [];
  delivery.give(
    { request: null, network: networkOf(1) },
    (problem) => told.push(problem),
    () => undefined,
  );
  await settle();
  expect(told).toEqual(['not peered']);
  await clock.advance(10_000);
  expect(calls).toBeGreaterThan(2);
  expect(delivery.isIdle).toBe(false);
  isPresent = false;
  await clock.advance(120_000);
  expect(delivery.isIdle).toBe(true);
});
