import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { flowSchemas, namespaces, roleBindings, serviceAccounts } from '../../../../src/api/resources.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld, type Peer } from '../../../support/peering/lending-world.ts';
import { mortal } from '../../../support/mortal.ts';

/** Killed after each write that there is, and started again: always the same end. */

const OPTIONS = { quotaPatienceMs: 0 };

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [peeringRequests, sharingPolicies] });
  client = api.client();
});

afterEach(async () => {
  await client.close();
  await api.stop();
});

async function until(
  world: LendingWorld,
  isDone: () => boolean | Promise<boolean>,
  died: () => boolean,
): Promise<void> {
  await clock.until('done or dead', async () => died() || (await isDone()), 20_000);
  await world.stop();
}

/** As an automatic consumer does, on every link and after every change. */
function automatic(world: LendingWorld, peer: Peer): void {
  world.lending.onChange(() => {
    if (peer.told.offer !== undefined && peer.told.grant?.state === 'Pending')
      void peer.accept().catch(() => undefined);
  });
}

async function restarted(world: LendingWorld): Promise<LendingWorld> {
  const next = new LendingWorld(client, { clock, ...OPTIONS, identity: world.identity });
  await next.start();
  return next;
}

async function objects(): Promise<string[]> {
  const lists = [namespaces, roleBindings, flowSchemas, serviceAccounts].map((type) =>
    client.list(type as typeof namespaces),
  );
  const items = (await Promise.all(lists)).flatMap((list) => list.items);
  return items
    .filter(({ metadata }) => metadata.namespace === undefined || metadata.name !== 'default')
    .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    .toSorted((a, b) => a.localeCompare(b));
}

test('on the way to a contract', async () => {
  const setup = new LendingWorld(client, { clock });
  await setup.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await setup.policy();
  let kills = 0;
  for (let writes = 0; ; writes++) {
    const { client: dying, died } = mortal(client, writes);
    const world = await new LendingWorld(dying, { clock, ...OPTIONS }, client).start();
    const peer = world.peer();
    automatic(world, peer);
    await peer.ask();
    await until(world, () => peer.told.grant?.state === 'Active', died);
    if (!died()) break;
    kills++;
    const again = await restarted(world);
    const same = again.peer(peer.identity);
    automatic(again, same);
    await same.ask();
    if (same.told.offer !== undefined && same.told.grant?.state === 'Pending') await same.accept();
    await same.granted('Active');
    expect(await objects()).toEqual(
      [
        `FlowSchema tributary-peer-${peer.id}`,
        `Namespace ${peer.tenant()}`,
        'RoleBinding tributary-peer',
        'RoleBinding tributary-tenant-logs',
        `ServiceAccount ${peer.id}`,
      ].toSorted((a, b) => a.localeCompare(b)),
    );
    await same.ask(null);
    await clock.until('all gone', async () => (await objects()).length === 0);
    await clock.until('and the request', () => same.told.grant === undefined);
    await again.stop();
  }
  expect(kills).toBeGreaterThanOrEqual(8);
});

test('on the way out', async () => {
  const setup = new LendingWorld(client, { clock });
  await setup.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await setup.policy();
  let kills = 0;
  for (let writes = 0; ; writes++) {
    const first = await new LendingWorld(client, { clock, ...OPTIONS }).start();
    const peer = first.peer();
    await peer.peered();
    await first.stop();
    const { client: dying, died } = mortal(client, writes);
    const world = new LendingWorld(dying, { clock, ...OPTIONS, identity: first.identity }, client);
    await world.start();
    await world.peer(peer.identity).ask(null);
    await until(world, () => world.peer(peer.identity).told.grant === undefined, died);
    if (died()) {
      kills++;
      // The peer is dead as well: nobody says again that it wants nothing, but what has begun goes on.
      const again = await restarted(world);
      const same = again.peer(peer.identity);
      if (same.told.grant?.state === 'Active') await same.ask(null);
      await clock.until('ended', () => same.told.grant === undefined);
      await again.stop();
    }
    await clock.until('all gone', async () => (await objects()).length === 0);
    if (!died()) break;
  }
  expect(kills).toBeGreaterThanOrEqual(5);
});
