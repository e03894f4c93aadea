import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  namespaces,
  persistentVolumeClaims,
  pods,
  type ResourceType,
} from '../../../../src/api/resources.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { Draft, KubeObject } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld } from '../../../support/peering/lending-world.ts';

/** Time is the test's own here: what waits, for how long, and what happens then. */

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let world: LendingWorld;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ types: [peeringRequests, sharingPolicies], clock });
  client = api.client();
  world = new LendingWorld(client, { clock, quotaPatienceMs: 0 });
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
});

afterEach(async () => {
  await world.stop();
  await client.close();
  await api.stop();
});

/** Lets so much time pass in steps, as timers are set while it does. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) await clock.advance(Math.min(left, 1000));
}

const holdTenant = async (name: string): Promise<void> => {
  const body = { metadata: { finalizers: ['example.com/never'] } };
  await client.patch(namespaces, { name }, { type: 'merge', body });
};

test('a namespace that never ends is named, and the request goes without it', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  await holdTenant(rome.tenant());
  await rome.ask(null);
  await rome.granted('Ended');
  await clock.until('the account is gone', async () => !(await rome.hasAccount()));
  await pass(60_000);
  expect((await rome.object()).status?.phase).toBe('Ending');
  expect(world.events.some(({ reason }) => reason === 'NamespaceStuck')).toBe(false);
  await pass(35_000);
  await clock.until('called stuck', async () => {
    const { conditions = [] } = (await rome.object()).status ?? {};
    return conditions.some(({ type, reason }) => type === 'TenantReady' && reason === 'NamespaceStuck');
  });
  expect(world.events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'NamespaceStuck' }));
  await pass(40_000);
  await clock.until('the request is gone', () => rome.told.grant === undefined);
  expect(await world.exists(rome.tenant())).toBe(true);
});

test('a pod that may not be deleted holds neither the request for ever nor the other namespaces', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered({ namespaces: ['bank', 'shop'] });
  for (const home of ['bank', 'shop']) {
    await holdTenant(rome.tenant(home));
    const where = { name: 'web', namespace: rome.tenant(home), finalizers: ['example.com/never'] };
    api.seed(pods, { metadata: where, spec: { nodeName: 'node-1', containers: [] } });
  }
  const path = `/namespaces/${rome.tenant('bank')}/pods/web`;
  api.fault({ match: (it) => it.method === 'DELETE' && it.path.endsWith(path), status: 403, times: 1e6 });
  await rome.ask(null);
  await rome.granted('Ended');
  await pass(135_000);
  await clock.until('the request is gone', () => rome.told.grant === undefined);
  expect(world.events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'NamespaceStuck' }));
  expect(api.count(new RegExp(`^DELETE .*/${rome.tenant()}/pods/web`))).toBeGreaterThan(0);
});

test('a denied peer whose namespace never ends stays denied, without rights', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  await holdTenant(rome.tenant());
  world.intent(rome.id, 'Disabled');
  await rome.granted('Ended');
  expect(rome.told.grant).toMatchObject({ reason: 'DeniedHere' });
  await pass(100_000);
  await clock.until('called stuck', () => world.events.some(({ reason }) => reason === 'NamespaceStuck'));
  const body = { metadata: { finalizers: null } };
  await client.patch(namespaces, { name: rome.tenant() }, { type: 'merge', body });
  await rome.granted('Denied');
});

test('a peer that comes back while its namespace still ends waits for that', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  await holdTenant(rome.tenant());
  world.intent(rome.id, 'Disabled');
  await rome.granted('Ended');
  world.intent(rome.id, 'Auto');
  await rome.offered();
  await rome.accept();
  await clock.until(
    'waits',
    () => rome.told.grant?.message?.includes('of an earlier contract to end') === true,
  );
  expect(await rome.hasAccount()).toBe(false);
  await client.patch(
    namespaces,
    { name: rome.tenant() },
    { type: 'merge', body: { metadata: { finalizers: null } } },
  );
  await rome.granted('Active');
});

test('offers are renewed before they expire, also while nothing moves', async () => {
  await world.policy({ offerSeconds: 600 });
  const rome = world.peer();
  await rome.peered();
  const first = rome.told.offer?.offer;
  await pass(390_000);
  expect(rome.told.offer?.offer).toEqual(first);
  await pass(15_000);
  await clock.until('renewed', () => (rome.told.offer?.offer.generation ?? 0) > (first?.generation ?? 0));
  expect(rome.told.grant).toMatchObject({ state: 'Active' });
});

test('who has said that it wants nothing may take it back for two seconds', async () => {
  await world.stop();
  world = await new LendingWorld(client, { clock, quotaPatienceMs: 0, withdrawalGraceMs: 2000 }).start();
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  await rome.ask(null);
  await rome.accept(null);
  await pass(1000);
  await rome.ask();
  await rome.accept();
  await pass(5000);
  expect(rome.told.grant).toMatchObject({ state: 'Active' });
  expect(api.count(/^DELETE/)).toBe(0);
  await rome.ask(null);
  await pass(3000);
  await clock.until('ended', () => rome.told.grant === undefined);
});

test('saying so again and again puts off no revocation', async () => {
  await world.stop();
  world = await new LendingWorld(client, { clock, quotaPatienceMs: 0, withdrawalGraceMs: 2000 }).start();
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  await rome.ask();
  await rome.ask(null);
  world.intent(rome.id, 'Disabled');
  await clock.until('revoked, and no time has passed', async () => !(await rome.hasAccount()));
});

/** The peer accepts, and its tenant cannot be made until the returned function is called. */
async function standStill(peer: ReturnType<typeof world.peer>): Promise<() => void> {
  await peer.ask();
  await peer.offered();
  const relent = api.fault({
    times: 1000,
    status: 403,
    match: ({ method, path }) => method === 'PATCH' && path.endsWith('/resourcequotas/tributary'),
  });
  await peer.accept();
  await clock.until('shown', () => peer.told.grant?.message?.includes('cannot be set up: ') === true);
  expect((await peer.object()).status).toMatchObject({ phase: 'Accepted' });
  return relent;
}

test('what stands in the way of a tenant is shown, and once it is gone the tenant is made', async () => {
  await world.policy();
  const rome = world.peer();
  const relent = await standStill(rome);
  expect(await rome.hasAccount()).toBe(false);
  relent();
  await pass(6000);
  await rome.granted('Active');
});

test('a policy that keeps pods from the API server of their home holds before the contract is in force', async () => {
  await world.policy({ homeApiServer: 'Forbid' });
  const rome = world.peer();
  const forbids = (): boolean => world.lending.forbidsHomeApiServer(rome.id);
  const relent = await standStill(rome);
  expect(forbids()).toBe(true);
  relent();
  await pass(6000);
  await rome.granted('Active');
  expect(forbids()).toBe(true);
  await world.changePolicy({ homeApiServer: 'Allow' });
  await clock.until('allowed', () => !forbids());
  await world.changePolicy({ homeApiServer: 'Forbid' });
  await clock.until('forbidden again', forbids);
});

test('a stranger that has gone is forgotten after a day; one that a person has spoken of is not', async () => {
  await world.policy({ approval: 'Manual' });
  const [rome, paris, oslo] = [world.peer(), world.peer(), world.peer()];
  for (const peer of [rome, paris, oslo]) {
    await peer.ask();
    await clock.until('known', () => peer.told.grant?.reason === 'WaitingForApproval');
  }
  await client.patch(
    peeringRequests,
    { name: paris.id },
    { type: 'merge', body: { spec: { approval: 'Denied' } } },
  );
  world.linked.delete(rome.id);
  world.linked.delete(paris.id);
  await paris.granted('Denied');
  for (let hour = 0; hour < 26; hour++) await clock.advance(3600_000);
  await clock.until('forgotten', async () => (await client.list(peeringRequests)).items.length === 2);
  const names = (await client.list(peeringRequests)).items.map(({ metadata }) => metadata.name);
  expect(names.toSorted()).toEqual([paris.id, oslo.id].toSorted());
});

test('where there is no room for strangers, one that has gone makes room', async () => {
  const strangers = Array.from({ length: 200 }, () => world.peer());
  for (const stranger of strangers) await stranger.ask();
  const last = world.peer();
  await expect(last.ask()).rejects.toThrow('200 clusters wait');
  world.linked.delete(strangers[3]?.id ?? '');
  await last.ask();
  await clock.until('the one is gone', async () => {
    const { items } = await client.list(peeringRequests);
    const names = new Set(items.map(({ metadata }) => metadata.name));
    return names.has(last.id) && !names.has(strangers[3]?.id ?? '');
  });
});

test('tokens are handed out while a contract is in force, not too fast, and their end is shown coarsely', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  const { signal } = new AbortController();
  const expires = '2026-01-01T01:00:00Z';
  api.fault({
    times: 100,
    match: ({ path }) => path.endsWith('/token'),
    body: JSON.stringify({ metadata: {}, status: { token: 'secret-token', expirationTimestamp: expires } }),
  });
  const ask = async (): Promise<unknown> => world.lending.credential(rome.identity, signal);
  expect(await ask()).toEqual({ token: 'secret-token', expires });
  expect(api.log.at(-1)).toContain(`/namespaces/tributary-peers/serviceaccounts/${rome.id}/token`);
  for (let more = 0; more < 9; more++) await ask();
  await expect(ask()).rejects.toMatchObject({ code: 'TooManyRequests', retryAfterMs: 10_000 });
  await clock.advance(10_000);
  await ask();
  await clock.until('shown', async () => (await rome.object()).status?.credentialExpires === expires);
  const shown = JSON.stringify([await rome.object(), world.events]);
  expect(shown).not.toContain('secret-token');
});

/** `onEnd: Keep`: what a contract leaves behind, and for how long. */

test('rights go at once, namespaces stay for their time; coming back takes them over', async () => {
  await world.policy({ onEnd: 'Keep', keepForSeconds: 3600 });
  const rome = world.peer();
  await rome.peered();
  await rome.ask(null);
  await clock.until('ended', () => rome.told.grant === undefined);
  expect(await rome.hasAccount()).toBe(false);
  const kept = await client.get(namespaces, { name: rome.tenant() });
  const until = Date.parse(kept.metadata.annotations?.['tributary.dev/keep-until'] ?? '');
  expect(until - clock.now()).toBeGreaterThan(3500_000);
  await rome.peered();
  const again = await client.get(namespaces, { name: rome.tenant() });
  expect(again.metadata.uid).toBe(kept.metadata.uid);
  expect(again.metadata.annotations).not.toHaveProperty(['tributary.dev/keep-until']);
});

const metadata = { name: 'one' };
test.each([
  ['a pod', pods, { metadata, spec: { containers: [{ name: 'web', image: 'web' }] } }],
  ['data', persistentVolumeClaims, { metadata }],
] as [string, ResourceType<KubeObject>, Draft<KubeObject>][])(
  'a namespace goes before its time, but not while %s is in it',
  async (_, type, body) => {
    await world.policy({ onEnd: 'Keep', keepForSeconds: 3600 });
    const rome = world.peer();
    await rome.peered();
    const namespace = rome.tenant();
    await client.create(type, { ...body, metadata: { ...body.metadata, namespace } });
    await rome.ask(null);
    await clock.until('ended', () => rome.told.grant === undefined);
    await pass(700_000);
    expect(await world.exists(namespace)).toBe(true);
    await client.delete(type, { namespace, name: 'one' });
    const emptied = clock.now();
    await clock.until('gone', async () => !(await world.exists(namespace)), 700_000);
    expect(clock.now() - emptied).toBeLessThan(660_000);
  },
);

test('kept namespaces go when their time is up, without a request that stands for them', async () => {
  await world.policy({ onEnd: 'Keep', keepForSeconds: 600 });
  const rome = world.peer();
  await rome.peered();
  await client.create(pods, {
    metadata: { ...metadata, namespace: rome.tenant() },
    spec: { containers: [{ name: 'web', image: 'web' }] },
  });
  await rome.ask(null);
  await clock.until('ended', () => rome.told.grant === undefined);
  await pass(590_000);
  expect(await world.exists(rome.tenant())).toBe(true);
  await pass(15_000);
  await clock.until('gone', async () => !(await world.exists(rome.tenant())));
});
