import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ANNOTATION_REFRESH_AT } from '../../../src/api/names.ts';
import { serviceAccounts } from '../../../src/api/resources.ts';
import type { Volume } from '../../../src/api/wire.ts';
import type { HomeApiServerView } from '../../../src/provider/network-view.ts';
import { FakeNetwork } from './support/network.ts';
import { World } from './support/world.ts';

/** Tokens of home for pods over there, and what they cost the home API server. */

let world: World;
beforeEach(async () => {
  world = await new World().up();
  world.home.seed(serviceAccounts, { metadata: { namespace: 'shop', name: 'default' } });
  const network = new FakeNetwork();
  network.set({ homeApiServer: AT });
  world.network = network;
});
afterEach(async () => world.down());

const AT: HomeApiServerView = { kind: 'At', address: '100.99.1.14', port: 443 };

const volumeOf = (name: string): Volume => ({
  name,
  projected: { sources: [{ serviceAccountToken: { path: 'token' } }] },
});
const API = 'kube-api-access-x';

const secretKey = (uid: string): string => `tenant/tributary-token-${uid}`;
const secretOf = (uid: string): ReturnType<World['body']> =>
  world.foreign.storage.get('secrets', secretKey(uid));
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
  const annotations = { ...secret.metadata.annotations, [ANNOTATION_REFRESH_AT]: new Date(0).toISOString() };
  world.foreign.storage.update('secrets', { ...secret, metadata: { ...secret.metadata, annotations } });
}

test.each([
  ['says at each renewal that the next one is due', makeDue],
  ['deletes each token', (uid: string): void => world.foreign.storage.remove('secrets', secretKey(uid))],
])('a provider that %s costs the home API server little', async (_, spoil) => {
  await world.start();
  const uid = world.addPod('web', { volumes: [volumeOf(API)] });
  await world.settled();
  const before = asked();
  world.foreign.storage.subscribe(({ resource, current }) => {
    if (resource === 'secrets' && current !== undefined) setImmediate(() => spoil(uid));
  });
  spoil(uid);
  await passes(120_000);
  expect(asked() - before).toBeLessThanOrEqual(13);
  expect(asked() - before).toBeGreaterThan(5);
});
