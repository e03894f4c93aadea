import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { PodSpec } from '../../../src/api/wire.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { DOWN, FakeNetwork } from './support/network.ts';
import { World } from './support/world.ts';

/** Which DNS remote pods ask, as it becomes known. */

let world: World;
let network: FakeNetwork;
beforeEach(async () => {
  world = await new World().up();
  network = new FakeNetwork();
  world.network = network;
});
afterEach(async () => world.down());

const dnsOf = (name: string): Partial<PodSpec> => {
  const { dnsPolicy, dnsConfig } = (world.body(name)?.spec ?? {}) as PodSpec;
  return { ...(dnsPolicy && { dnsPolicy }), ...(dnsConfig && { dnsConfig }) };
};
const open = { kind: 'Open', ranges: ['10.96.0.0/16'] } as const;

test('a pod waits until it is known, and then asks that of home; home shows what its owner wrote', async () => {
  world.dns = { nameservers: ['10.96.0.10'], domain: 'cluster.local' };
  network.set({ homeDns: { kind: 'Unknown', reason: 'PeerHasNoViewOfUs', message: 'not told yet' } });
  await world.start();
  world.addPod('web', { dnsPolicy: 'ClusterFirst' });
  world.addPod('alone', { dnsPolicy: 'Default' });
  await world.until('one waits, the other does not', () => {
    return world.events.includes('MissingReference: not told yet') && world.body('alone') !== undefined;
  });
  expect(world.body('web')).toBeUndefined();
  network.set({ homeDns: open });
  await world.settled();
  expect(dnsOf('web')).toMatchObject({ dnsPolicy: 'None', dnsConfig: { nameservers: ['10.96.0.10'] } });
  expect(dnsOf('alone')).toEqual({ dnsPolicy: 'Default' });
  expect(world.home.storage.get('pods', 'shop/web')?.spec).toMatchObject({ dnsPolicy: 'ClusterFirst' });
  const writes = world.recordWrites();
  network.set({ homeDns: { kind: 'NotChosen' } });
  await world.clock.advance(5000);
  await world.settled();
  expect(writes().filter((line) => line.includes('/pods'))).toEqual([]);
});

test('where no DNS of home can be asked the pod asks the one over there, and says why', async () => {
  world.dns = { nameservers: ['169.254.20.10'], domain: 'cluster.local' };
  const lines: string[] = [];
  world.log = createLogger({ level: 'warn', now: () => 0, write: (line) => lines.push(line) });
  await world.start();
  network.set({ homeDns: open });
  world.addPod('web', { dnsPolicy: 'ClusterFirst' });
  await world.settled();
  network.set({ state: DOWN });
  network.set({ state: { kind: 'Up' } });
  expect(lines.filter((line) => line.includes('--cluster-dns'))).toHaveLength(1);
  expect(dnsOf('web')).toEqual({ dnsPolicy: 'ClusterFirst' });
  const [said, ...more] = world.events.filter((event) => event.startsWith('ForeignDNS: '));
  expect(said).toContain('--cluster-dns');
  expect(more).toEqual([]);
});
