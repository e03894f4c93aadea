import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { acceptancePolicies } from '../../../../src/api/acceptance-policy.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { secrets } from '../../../../src/api/resources.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import { errorMessage } from '../../../../src/lib/errors.ts';
import { acceptance, byPerson, MILAN, ROME, sharing } from './support/objects.ts';
import { ClustersWorld, NAMESPACE } from './support/world.ts';

let world: ClustersWorld;
beforeEach(async () => {
  world = await new ClustersWorld().up();
});
afterEach(async () => world.down());

test('join tokens and network keys are read from the Secrets that are referred to, and from no other', async () => {
  const told: string[] = [];
  let keysTold = 0;
  world.clusters.onChange((clusterID) => told.push(clusterID));
  world.clusters.onNetworkKeys(() => keysTold++);
  const secret = (name: string, data: Record<string, string>): { metadata: object; data: object } => ({
    metadata: { name, namespace: NAMESPACE },
    data: Object.fromEntries(
      Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    ),
  });
  world.seed(secrets, secret('other', { key: 'not asked for' }));
  world.seed(secrets, secret('token', { token: 'a.b.c\n' }));
  world.seed(secrets, secret('family', { key: `${'k'.repeat(32)}\n` }));
  world.seed(secrets, secret('weak', { key: 'short' }));
  world.seed(
    foreignClusters,
    byPerson('milan', { clusterID: MILAN, outgoing: 'Enabled', joinTokenSecretRef: { name: 'token' } }),
  );
  world.seed(sharingPolicies, sharing({ networkKeySecretRef: { name: 'family' } }));
  world.seed(acceptancePolicies, acceptance({ networkKeySecretRef: { name: 'weak' } }));
  await world.wait('the token is read', () => world.clusters.intent(MILAN).joinToken === 'a.b.c');
  expect(told).toContain(MILAN);
  await world.wait('the key is read', () => world.clusters.networkKeys().length === 1);
  expect(world.clusters.networkKeys()).toEqual([{ name: 'family', key: Buffer.from('k'.repeat(32)) }]);
  expect(keysTold).toBeGreaterThan(0);
  const fault = (name: string): string => {
    try {
      world.clusters.checkNetworkKey({ spec: { peers: { networkKeySecretRef: { name } } } });
      return 'none';
    } catch (error) {
      return errorMessage(error);
    }
  };
  expect(fault('family')).toBe('none');
  await world.wait('the weak key is judged', () => fault('weak').startsWith('network key weak'));
  expect(world.server.count(/GET .*\/secrets\/other/)).toBe(0);
  // Rotation is seen; a key that is gone counts no more.
  const held = world.server.storage.get('secrets', `${NAMESPACE}/family`);
  world.server.storage.update('secrets', {
    ...held,
    data: { key: Buffer.from('n'.repeat(32)).toString('base64') },
  } as never);
  await world.wait(
    'the new key is read',
    () => world.clusters.networkKeys()[0]?.key[0] === 'n'.charCodeAt(0),
  );
  world.server.storage.remove('secrets', `${NAMESPACE}/family`);
  await world.wait('the key is gone', () => world.clusters.networkKeys().length === 0);
  expect(fault('family')).toMatch(/^Secret family with key key is not there/);
});

test('a join token that is another cluster’s is not shown to this one', async () => {
  const token = (clusterID: string): object => ({
    metadata: { name: 'token', namespace: NAMESPACE },
    data: { token: Buffer.from(`${clusterID}.name.secret`).toString('base64') },
  });
  for (const [name, clusterID] of Object.entries({ milan: MILAN, rome: ROME })) {
    world.seed(foreignClusters, byPerson(name, { clusterID, joinTokenSecretRef: { name: 'token' } }));
  }
  world.seed(secrets, token(MILAN) as never);
  await world.wait('it is read', () => world.clusters.intent(MILAN).joinToken === `${MILAN}.name.secret`);
  expect(world.clusters.intent(ROME).joinToken).toBeUndefined();
});

test('a Secret whose first read fails holds up no start, and is read by and by', async () => {
  await world.down();
  world = new ClustersWorld();
  world.seed(foreignClusters, byPerson('milan', { clusterID: MILAN, joinTokenSecretRef: { name: 'token' } }));
  world.seed(secrets, {
    metadata: { name: 'token', namespace: NAMESPACE },
    data: { token: Buffer.from('a.b.c').toString('base64') },
  } as never);
  const match = ({ path }: { path: string }): boolean => path.endsWith('/secrets/token');
  const end = world.server.fault({ match, status: 503, times: 1e6 });
  await world.up();
  expect(world.server.count(/GET .*\/secrets\/token/)).toBeGreaterThan(0);
  expect(world.clusters.intent(MILAN).joinToken).toBeUndefined();
  end();
  await world.wait('it is read', () => world.clusters.intent(MILAN).joinToken === 'a.b.c');
});
