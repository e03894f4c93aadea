import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HOME_LEASE, LABEL_HOME_UID } from '../../../src/api/names.ts';
import { configMaps, leases, serviceAccounts } from '../../../src/api/resources.ts';
import type { PodSpec } from '../../../src/api/wire.ts';
import { FakeNetwork } from './support/network.ts';
import { World } from './support/world.ts';

/** The etcd of one of the two clusters is restored from a backup, while the agent runs or between two of its lives. */

const KEEP_MS = 120_000;
const LEASES = 'leases.coordination.k8s.io';
let world: World;
beforeEach(async () => {
  world = await new World().up();
  world.keepMs = KEEP_MS;
  const spec = { leaseDurationSeconds: 40 };
  world.foreign.seed(leases, { metadata: { name: HOME_LEASE, namespace: 'tenant' }, spec });
});
afterEach(async () => world.down());

const uidOf = (name: string): string | undefined => world.body(name)?.metadata.uid;
const told = (reason: string): boolean => world.events.some((event) => event.startsWith(`${reason}: `));
/** In which each Lease is renewed, and notes the other one. */
const renewals = async (): Promise<void> => world.clock.advance(45_000);

/** Connections break, as when an API server starts again. */
function restore(side: 'home' | 'foreign', goBack: () => void): void {
  goBack();
  world[side].cut();
}

/** A pod `old` that the backup knows, and a pod `new` that it does not. */
async function rolledOut(): Promise<{ goBack: () => void; stop: () => Promise<void> }> {
  const agent = await world.start();
  world.addPod('old');
  await world.settled();
  await renewals();
  const goBack = world.home.storage.snapshot();
  world.addPod('new');
  await world.settled();
  await renewals();
  return { goBack, stop: async () => agent.stop() };
}

test.each(['while the agent runs', 'between two lives of the agent'])(
  'home restored %s: what it has lost runs on for a while',
  async (when) => {
    const { goBack, stop } = await rolledOut();
    const isStopped = when.startsWith('between');
    const before = [uidOf('old'), uidOf('new')];
    if (isStopped) await stop();
    restore('home', goBack);
    if (isStopped) await world.start();
    await world.until('it is told', () => told('HomeRestored'));
    await world.clock.advance(KEEP_MS / 2);
    expect([uidOf('old'), uidOf('new')]).toEqual(before);
    await world.until('what nobody has asked for is gone', () => uidOf('new') === undefined);
    expect(uidOf('old')).toBe(before[0]);
  },
);

test('the notice outlives the agent that has made it', async () => {
  const { goBack, stop } = await rolledOut();
  restore('home', goBack);
  await world.until('it is told', () => told('HomeRestored'));
  // It is written with the next renewal.
  await renewals();
  await stop();
  const before = uidOf('new');
  await world.start();
  await world.clock.advance(30_000);
  expect(uidOf('new')).toBe(before);
  await world.until('what nobody has asked for is gone', () => uidOf('new') === undefined);
});

test('a pod of the same name is given the body that runs', async () => {
  const { goBack } = await rolledOut();
  const before = uidOf('new');
  restore('home', goBack);
  await world.until('it is told', () => told('HomeRestored'));
  const uid = world.addPod('new');
  await world.until('adopted', () => world.body('new')?.metadata.labels?.[LABEL_HOME_UID] === uid);
  await world.until('it runs', () => world.status('new')?.['phase'] === 'Running');
  await world.clock.advance(2 * KEEP_MS);
  expect(uidOf('new')).toBe(before);
});

/** As the service-account admission makes it: called otherwise in each pod. */
const withToken = (letters: string): Partial<PodSpec> => ({
  volumes: [
    {
      name: `kube-api-access-${letters}`,
      projected: { sources: [{ serviceAccountToken: { path: 'token' } }] },
    },
  ],
});

/** Of a pod `new` with a token, and the home pod that has it now. */
function tokensOf(first: string): { holder: () => unknown; lose: () => void; asked: () => number } {
  const key = `tenant/tributary-token-${first}`;
  return {
    holder: () => world.foreign.storage.get('secrets', key)?.metadata.labels?.[LABEL_HOME_UID],
    lose: () => world.foreign.storage.remove('secrets', key),
    asked: () => world.home.log.filter((line) => /^POST .*default\/token/u.test(line)).length,
  };
}

test.each(['while the agent runs', 'between two lives of the agent'])(
  'home restored %s: a pod that takes over a body has its tokens in the Secret that the body mounts',
  async (when) => {
    world.home.seed(serviceAccounts, { metadata: { namespace: 'shop', name: 'default' } });
    const network = new FakeNetwork();
    network.set({ homeApiServer: { kind: 'At', address: '100.99.1.14', port: 443 } });
    world.network = network;
    const agent = await world.start();
    await renewals();
    const goBack = world.home.storage.snapshot();
    const first = world.addPod('new', withToken('abcde'));
    await world.settled();
    await renewals();
    const { holder, lose, asked } = tokensOf(first);
    const [body, before] = [uidOf('new'), asked()];
    const isStopped = when.startsWith('between');
    if (isStopped) await agent.stop();
    restore('home', goBack);
    const second = world.addPod('new', withToken('fghij'));
    if (isStopped) await world.start();
    await world.until('its tokens are there', () => holder() === second);
    expect(asked()).toBeGreaterThan(before);
    lose();
    await world.until('they are there again after the provider lost them', () => holder() === second);
    await world.clock.advance(2 * KEEP_MS);
    expect([uidOf('new'), holder()]).toEqual([body, second]);
    expect(world.foreign.storage.get('secrets', `tenant/tributary-token-${second}`)).toBeUndefined();
    world.deletePod('new');
    await world.until('they are gone with the pod', () => holder() === undefined);
  },
);

test('one that somebody deletes after the restore goes at once', async () => {
  const { goBack } = await rolledOut();
  restore('home', goBack);
  await world.until('it is told', () => told('HomeRestored'));
  await world.clock.advance(10_000);
  const before = world.clock.monotonic();
  world.deletePod('old', { force: true });
  await world.until('it is gone', () => uidOf('old') === undefined);
  expect(world.clock.monotonic() - before).toBeLessThan(KEEP_MS / 4);
  expect(uidOf('new')).toBeDefined();
});

test('a ConfigMap that home has lost stays with the body that uses it', async () => {
  await world.start();
  await renewals();
  const goBack = world.home.storage.snapshot();
  world.home.seed(configMaps, { metadata: { name: 'settings', namespace: 'shop' }, data: { a: '1' } });
  const envFrom = [{ configMapRef: { name: 'settings' } }];
  world.addPod('new', { containers: [{ name: 'main', image: 'web:1', envFrom }] });
  await world.settled();
  await renewals();
  restore('home', goBack);
  await world.until('it is told', () => told('HomeRestored'));
  const copy = (): unknown => world.foreign.storage.get('configmaps', 'tenant/settings');
  const isKept = (): boolean => copy() !== undefined || uidOf('new') === undefined;
  await world.until('the body is gone', () => {
    expect(isKept()).toBe(true);
    return uidOf('new') === undefined;
  });
  await world.until('the copy is gone', () => copy() === undefined);
});

test.each(['while the agent runs', 'between two lives of the agent'])(
  'the provider restored %s: what it has lost fails at home, what came back goes',
  async (when) => {
    const agent = await world.start();
    world.addPod('old');
    world.addPod('ended');
    await world.settled();
    await renewals();
    const goBack = world.foreign.storage.snapshot();
    world.deletePod('ended', { force: true });
    world.addPod('new');
    await world.settled();
    await renewals();
    const before = uidOf('old');
    const isStopped = when.startsWith('between');
    if (isStopped) await agent.stop();
    restore('foreign', goBack);
    if (isStopped) await world.start();
    await world.until('it is told', () => told('ForeignClusterRestored'));
    await world.until('the lost one has failed', () => world.status('new')?.['reason'] === 'RemotePodLost');
    await world.until('what came back is gone', () => uidOf('ended') === undefined);
    expect(uidOf('old')).toBe(before);
  },
);

test('where the new history has overtaken the lost one, watches go on, and nothing is missed', async () => {
  const { goBack } = await rolledOut();
  const before = [uidOf('old'), uidOf('new')];
  goBack();
  for (let index = 0; index < 200; index++) {
    world.home.seed(configMaps, { metadata: { name: `later-${index}`, namespace: 'shop' } });
  }
  await world.until('it is told', () => told('HomeRestored'));
  await world.clock.advance(KEEP_MS / 2);
  expect([uidOf('old'), uidOf('new')]).toEqual(before);
  await world.until('what nobody has asked for is gone', () => uidOf('new') === undefined);
});

test('a body that is kept makes room for a pod that the provider has no room for', async () => {
  const { goBack } = await rolledOut();
  const before = uidOf('old');
  restore('home', goBack);
  await world.until('it is told', () => told('HomeRestored'));
  await world.clock.advance(10_000);
  const match = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'POST' && path.endsWith('/pods') && uidOf('new') !== undefined;
  const message = 'exceeded quota: tributary, requested: pods=1, used: pods=2, limited: pods=2';
  world.foreign.fault({ match, times: Infinity, status: 403, message });
  const began = world.clock.monotonic();
  world.addPod('next');
  await world.until('there is room', () => uidOf('next') !== undefined);
  expect(world.clock.monotonic() - began).toBeLessThan(KEEP_MS / 2);
  expect([uidOf('old'), uidOf('new')]).toEqual([before, undefined]);
});

test('the note of another virtual node of home counts, too', async () => {
  const { goBack, stop } = await rolledOut();
  await stop();
  goBack();
  // Of a Node whose Lease home has, with fewer renewals than noted.
  const { metadata } = world.home.seed(leases, { metadata: { name: 'milan', namespace: 'kube-node-lease' } });
  const lease = world.foreign.storage.get(LEASES, `tenant/${HOME_LEASE}`);
  if (lease === undefined) throw new Error('no Lease');
  const holderIdentity = `milan ${metadata.uid.slice(0, 8)}.7`;
  world.foreign.storage.update(LEASES, { ...lease, spec: { ...lease.spec, holderIdentity } });
  await world.start();
  await world.until('it is told', () => told('HomeRestored'));
  expect(uidOf('new')).toBeDefined();
});

test('a Lease that somebody has deleted is no restore', async () => {
  await rolledOut();
  world.home.storage.remove(LEASES, 'kube-node-lease/rome');
  world.foreign.storage.remove(LEASES, `tenant/${HOME_LEASE}`);
  world.foreign.seed(leases, { metadata: { name: HOME_LEASE, namespace: 'tenant' } });
  await renewals();
  await renewals();
  expect([told('HomeRestored'), told('ForeignClusterRestored')]).toEqual([false, false]);
});
