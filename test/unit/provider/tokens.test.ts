import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ANNOTATION_REFRESH_AT } from '../../../src/api/names.ts';
import { configMaps, serviceAccounts } from '../../../src/api/resources.ts';
import type { HomeApiServerView } from '../../../src/api/tunnel.ts';
import type { Pod, Volume } from '../../../src/api/wire.ts';
import { tokenKey } from '../../../src/provider/forge/tokens.ts';
import { FakeNetwork } from './support/network.ts';
import { World } from './support/world.ts';

/** Tokens of home for pods over there, and what they cost the home API server. */

let world: World;
let network: FakeNetwork;
beforeEach(async () => {
  world = await new World().up();
  world.home.seed(serviceAccounts, { metadata: { namespace: 'shop', name: 'default' } });
  network = new FakeNetwork();
  network.set({ homeApiServer: AT });
  world.network = network;
});
afterEach(async () => world.down());

const AT: HomeApiServerView = { kind: 'At', address: '100.99.1.14', port: 443 };
const NONE: HomeApiServerView = { kind: 'None', reason: 'ForbiddenByProvider', message: 'forbidden' };
const UNKNOWN: HomeApiServerView = { kind: 'Unknown', reason: 'PeerHasNoViewOfUs', message: 'not told yet' };

const volumeOf = (name: string): Volume => ({
  name,
  projected: { sources: [{ serviceAccountToken: { path: 'token' } }] },
});
const API = 'kube-api-access-x';
const BOTH: Pod['spec'] = {
  containers: [{ name: 'main', image: 'web:1' }],
  volumes: [volumeOf(API), volumeOf('vault')],
};
/** Of both tokens. */
const KEYS = [tokenKey(API, 'token'), tokenKey('vault', 'token')].toSorted();

const secretKey = (uid: string): string => `tenant/tributary-token-${uid}`;
const secretOf = (uid: string): ReturnType<World['body']> =>
  world.foreign.storage.get('secrets', secretKey(uid));
const keysOf = (uid: string): string[] => Object.keys(secretOf(uid)?.['data'] ?? {}).toSorted();
const asked = (): number =>
  world.home.log.filter((line) => /^POST .*\/serviceaccounts\/default\/token/u.test(line)).length;

async function passes(ms: number): Promise<void> {
  const until = world.clock.monotonic() + ms;
  await world.until('time has passed', () => world.clock.monotonic() > until);
}

/** As the provider, who may write what it wants into what is in its own cluster. */
function makeDue(uid: string): void {
  const secret = secretOf(uid);
  if (secret === undefined) return;
  // Another time each time: it is a change.
  const due = new Date(world.foreign.log.length).toISOString();
  const annotations = { ...secret.metadata.annotations, [ANNOTATION_REFRESH_AT]: due };
  world.foreign.storage.update('secrets', { ...secret, metadata: { ...secret.metadata, annotations } });
}

/** After each change of a Secret over there. */
function onSecrets(act: () => unknown): void {
  world.foreign.storage.subscribe(({ resource, current }) => {
    if (resource === 'secrets' && current !== undefined) setImmediate(act);
  });
}

test.each([
  ['says at each renewal that the next one is due', (uid: string): unknown => onSecrets(() => makeDue(uid))],
  [
    'deletes each token',
    (uid: string): unknown => onSecrets(() => world.foreign.storage.remove('secrets', secretKey(uid))),
  ],
  [
    'takes none, and calls the old one outdated again and again',
    (uid: string): unknown => {
      const match = ({ method, path }: { method: string; path: string }): boolean => {
        const isOurs = method === 'PUT' && path.endsWith(uid);
        if (isOurs) setImmediate(() => makeDue(uid));
        return isOurs;
      };
      return world.foreign.fault({ match, times: Infinity, status: 409 });
    },
  ],
])('a provider that %s costs the home API server little', async (_, spoil) => {
  await world.start();
  const uid = world.addPod('web', { volumes: [volumeOf(API)] });
  await world.settled();
  const before = asked();
  spoil(uid);
  makeDue(uid);
  await passes(120_000);
  expect(asked() - before).toBeLessThanOrEqual(16);
  expect(asked() - before).toBeGreaterThan(5);
});

/** What the pod waits for; it may come later. */
const LATE: Volume = { name: 'late', configMap: { name: 'late' } };
const comeLate = (): unknown =>
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'late' } });

test.each([
  ['not known', UNKNOWN],
  ['forbidden', NONE],
])('a way home that was %s when the pod began to wait: its body has all tokens', async (_, before) => {
  network.set({ homeApiServer: before });
  await world.start();
  const uid = world.addPod('web', { ...BOTH, volumes: [...(BOTH.volumes ?? []), LATE] });
  await world.until('it waits', () => world.status('web')?.['reason'] === 'MissingReference');
  await passes(60_000);
  network.set({ homeApiServer: AT });
  comeLate();
  await world.settled();
  expect(keysOf(uid)).toEqual(KEYS);
});

/** The tokens are due, and renewed; nothing else is under way then. */
async function renewed(uid: string): Promise<void> {
  const before = asked();
  await passes(15_000);
  makeDue(uid);
  await world.until('renewed', () => asked() > before);
  await passes(15_000);
}

test('tokens stay complete when they are renewed while the way home is not known for a moment', async () => {
  await world.start();
  const uid = world.addPod('web', BOTH);
  await world.settled();
  expect(keysOf(uid)).toEqual(KEYS);
  network.set({ homeApiServer: UNKNOWN });
  await renewed(uid);
  expect(keysOf(uid)).toEqual(KEYS);
});

test('a pod that began without a way home gets no token for it later, since it mounts none', async () => {
  network.set({ homeApiServer: NONE });
  await world.start();
  const uid = world.addPod('web', BOTH);
  await world.settled();
  network.set({ homeApiServer: AT });
  const before = asked();
  await renewed(uid);
  expect(asked()).toBe(before + 1);
  expect(keysOf(uid)).toEqual([tokenKey('vault', 'token')]);
});

test('a pod that waits for the way home goes on when a person names one in the VirtualNode', async () => {
  network.set({ homeApiServer: UNKNOWN });
  await world.start();
  world.addPod('web', { volumes: [volumeOf(API)] });
  await world.until('it waits', () => world.status('web')?.['reason'] === 'MissingReference');
  const virtualNode = world.home.storage.get('virtualnodes.tributary.dev', 'rome');
  if (virtualNode === undefined) throw new Error('no VirtualNode');
  const spec = { ...virtualNode.spec, homeApiServer: { host: 'api.home', port: 6443 } };
  world.home.storage.update('virtualnodes.tributary.dev', { ...virtualNode, spec });
  await world.settled();
  expect(world.status('web')).toMatchObject({ phase: 'Running' });
});
