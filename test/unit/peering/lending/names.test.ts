import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { namespaces } from '../../../../src/api/resources.ts';
import { sharingPolicies, type SharingPolicySpec } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { FakeClock } from '../../../support/fake-clock.ts';
import type { LendingWorld, Peer } from '../../../support/peering/lending-world.ts';
import { startLending, stopLending } from '../../../support/peering/simulated-lending.ts';

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;
let world: LendingWorld;

beforeEach(async () => {
  ({ clock, api, client, world } = await startLending());
});

afterEach(async () => stopLending({ clock, api, client, world }));

const SameIfFree = {
  namespaceNaming: 'SameIfFree',
  namespaceNames: ['shop', 'store', 'web'],
} as const satisfies Partial<SharingPolicySpec>;
const offered = (peer: Peer): Record<string, string> =>
  Object.fromEntries(
    (peer.told.offer?.offer.namespaces ?? []).map((one) => [one.homeNamespace, one.tenantNamespace]),
  );
const withheld = (peer: Peer): Record<string, string> =>
  Object.fromEntries((peer.told.grant?.withheld ?? []).map((one) => [one.homeNamespace, one.reason]));
const agreesTo = async (peer: Peer, names: Record<string, string>): Promise<void> => {
  await clock.until(
    `offered ${JSON.stringify(names)}`,
    () => JSON.stringify(offered(peer)) === JSON.stringify(names),
  );
  const acceptance = peer.acceptance();
  await peer.accept(acceptance);
  await clock.until('in force', () => peer.told.grant?.contract?.text === acceptance.text);
};
const uidOf = async (name: string): Promise<string> => (await client.get(namespaces, { name })).metadata.uid;

test('a peering without namespaces is in force; one that comes and goes disturbs no other', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered({ namespaces: [] });
  expect(await rome.hasAccount()).toBe(true);
  expect((await rome.object()).status).toMatchObject({ phase: 'Established', tenantNamespaces: [] });

  await rome.ask({ namespaces: ['shop', 'web'] });
  await agreesTo(rome, { shop: rome.tenant(), web: rome.tenant('web') });
  await clock.until('made', async () => world.exists(rome.tenant('web')));
  const kept = await uidOf(rome.tenant());

  // A namespace takes its time to end.
  const held = await uidOf(rome.tenant('web'));
  const body = { metadata: { finalizers: ['example.com/slow'] } };
  await client.patch(namespaces, { name: rome.tenant('web') }, { type: 'merge', body });
  await rome.ask({ namespaces: ['shop'] });
  await agreesTo(rome, { shop: rome.tenant() });
  await clock.until('it ends', async () => {
    const { deletionTimestamp } = (await client.get(namespaces, { name: rome.tenant('web') })).metadata;
    return deletionTimestamp !== undefined;
  });
  expect((await rome.object()).status).toMatchObject({ phase: 'Established' });

  await rome.ask({ namespaces: ['shop', 'web'] });
  await clock.until('it has to wait', () => withheld(rome)['web'] === 'NameTaken');
  expect(rome.told.grant?.state).toBe('Active');
  expect(offered(rome)).toEqual({ shop: rome.tenant() });
  await client.patch(
    namespaces,
    { name: rome.tenant('web') },
    { type: 'merge', body: { metadata: { finalizers: null } } },
  );
  await agreesTo(rome, { shop: rome.tenant(), web: rome.tenant('web') });
  await clock.until('made anew', async () => world.exists(rome.tenant('web')));
  expect(await uidOf(rome.tenant('web'))).not.toBe(held);
  expect(await uidOf(rome.tenant())).toBe(kept);
  await clock.until('nothing is withheld', () => rome.told.grant?.withheld === undefined);
});

test('a name that is taken is withheld, and given when it is free', async () => {
  await world.policy(SameIfFree);
  await client.create(namespaces, { metadata: { name: 'store' } });
  const rome = world.peer();
  await rome.peered({ namespaces: ['shop', 'web'], names: { shop: 'store' } });
  expect(offered(rome)).toEqual({ web: 'web' });
  expect(rome.told.grant?.withheld).toEqual([
    { homeNamespace: 'shop', reason: 'NameTaken', message: 'store is another namespace here' },
  ]);
  expect((await rome.object()).spec.tenantNames).toEqual([
    { homeNamespace: 'shop', tenantNamespace: 'store' },
  ]);
  await client.delete(namespaces, { name: 'store' });
  await agreesTo(rome, { shop: 'store', web: 'web' });
  await clock.until('made', async () => world.exists('store'));

  // The wish is taken back: what is there keeps its name.
  await rome.ask({ namespaces: ['shop', 'web'] });
  await clock.until('stored', async () => (await rome.object()).spec.tenantNames === undefined);
  expect(offered(rome)).toEqual({ shop: 'store', web: 'web' });
});

test('a restart of the provider does not forget what names were asked for', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered({ namespaces: ['shop', 'web'], names: { shop: 'shop' } });
  expect(withheld(rome)).toEqual({ shop: 'NamingNotAllowed' });
  await world.stop();
  await world.start();
  await world.changePolicy({ maxPriority: 5 });
  await clock.until('looked at again', async () => {
    const { status } = await rome.object();
    return (
      status?.policyGeneration ===
      (await client.get(sharingPolicies, { name: 'everybody' })).metadata.generation
    );
  });
  expect(offered(rome)).toEqual({ web: rome.tenant('web') });
  expect(withheld(rome)).toEqual({ shop: 'NamingNotAllowed' });
});

test('no name is promised to two peers', async () => {
  await world.policy({ ...SameIfFree, sharePercent: 20 });
  const [rome, turin] = [world.peer(), world.peer()];
  const names = { shop: 'store' };
  await Promise.all([rome.ask({ names }), turin.ask({ names })]);
  await Promise.all([rome.offered(), turin.offered()]);
  const [first, second] = offered(rome)['shop'] === undefined ? [turin, rome] : [rome, turin];
  expect(offered(first)).toEqual(names);
  expect(offered(second)).toEqual({});
  await first.accept();
  await first.granted('Active');
  await second.accept();
  await second.granted('Active');
  expect(withheld(second)).toEqual({ shop: 'NameTaken' });

  await first.ask(null);
  await agreesTo(second, names);
  await clock.until('its own now', async () => {
    const { labels } = (await client.get(namespaces, { name: 'store' })).metadata;
    return labels?.['tributary.dev/peer'] === second.id;
  });
});
