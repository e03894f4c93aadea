import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { nodes } from '../../../../src/api/resources.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { parseQuantity } from '../../../../src/lib/quantity.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { FakeClock } from '../../../support/fake-clock.ts';
import type { LendingWorld } from '../../../support/peering/lending-world.ts';
import { startLending, stopLending } from '../../../support/peering/simulated-lending.ts';

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;
let world: LendingWorld;

beforeEach(async () => {
  ({ clock, api, client, world } = await startLending());
});

afterEach(async () => stopLending({ clock, api, client, world }));

test('peers share what is free and come to rest: no rounds of offers without end', async () => {
  await world.policy({ sharePercent: 50, thresholdPercent: 1 });
  const peers = Array.from({ length: 6 }, () => world.peer());
  const offers = new Map<string, number>();
  // Each accepts whatever is offered, at once, as an automatic policy would.
  const end = world.lending.onChange((clusterID) => {
    const peer = peers.find(({ id }) => id === clusterID);
    const { generation } = peer?.told.offer?.offer ?? {};
    if (peer === undefined || generation === undefined) return;
    if (!peer.told.grant?.contract?.text.includes(`"generation":${generation},`)) {
      offers.set(`${clusterID}/${generation}`, generation);
      void peer.accept().catch(() => undefined);
    }
  });
  await Promise.all(peers.map(async (peer) => peer.ask()));
  for (const peer of peers) await peer.granted('Active');
  // Everything moves at once.
  await client.patch(
    nodes,
    { name: 'node-1' },
    { type: 'merge', body: { status: { allocatable: { cpu: '80' } } } },
    { subresource: 'status' },
  );
  const most = (): number =>
    Math.max(...peers.map((peer) => Number.parseFloat(peer.told.offer?.offer.resources['cpu'] ?? '0')));
  const isAtRest = async (): Promise<boolean> => {
    const before = offers.size;
    await clock.advance(500);
    return offers.size === before && most() >= 10;
  };
  await clock.until('at rest for half a second', isAtRest, 20_000);
  end();
  expect(offers.size).toBeLessThan(6 * 25);
  const promised = await Promise.all(
    peers.map(async (peer) => parseQuantity((await peer.object()).status?.promised?.['cpu'] ?? '0')),
  );
  expect(promised.reduce((sum, cpu) => sum + cpu)).toBeLessThanOrEqual(80);
});
