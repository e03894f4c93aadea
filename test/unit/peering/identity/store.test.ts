import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { configMaps, secrets } from '../../../../src/api/resources.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { verifySignature } from '../../../../src/peering/identity/identity.ts';
import {
  ClusterIdentity,
  IDENTITY_NAME,
  loadIdentity,
  readClusterID,
} from '../../../../src/peering/identity/store.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const namespace = 'tributary-system';
const ref = { name: IDENTITY_NAME, namespace };
const { signal } = new AbortController();
let clock: FakeClock;
let server: FakeApi;
let client: KubeClient;

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

const load = async (by = client): Promise<string> =>
  (await loadIdentity({ client: by, namespace, log: silentLogger }, signal)).clusterID;

/** Writes without asking, as somebody with kubectl would. */
async function edit(changes: { annotation?: string | null; key?: string }): Promise<void> {
  const secret = await client.get(secrets, ref);
  await client.delete(secrets, ref);
  const annotations = { ...secret.metadata.annotations };
  if (changes.annotation === null) delete annotations['tributary.dev/cluster-id'];
  else if (changes.annotation !== undefined) annotations['tributary.dev/cluster-id'] = changes.annotation;
  const data = { ...secret.data };
  if (changes.key !== undefined) data['identity.key'] = Buffer.from(changes.key).toString('base64');
  await client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...ref, annotations },
    data,
  });
}

const pem = (type: 'ed25519' | 'x25519'): string =>
  (type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('x25519')).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });

describe('the identity', () => {
  test('is made at the first start and the same at every other', async () => {
    expect(await readClusterID({ client, namespace }, signal)).toBeUndefined();
    const id = await load();
    for (let round = 0; round < 3; round++) expect(await load()).toBe(id);
    const secret = await client.get(secrets, ref);
    expect(secret.metadata.annotations).toEqual({ 'tributary.dev/cluster-id': id });
    expect(secret.immutable).toBe(true);
    expect((await client.get(configMaps, ref)).data).toMatchObject({ clusterID: id });
    expect(await readClusterID({ client, namespace }, signal)).toBe(id);
  });

  test('is that of the first of many who start at once', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, async () => load()));
    expect(new Set(ids).size).toBe(1);
    expect(await load()).toBe(ids[0]);
  });

  test('is finished by the next start when the first one was killed between its two writes', async () => {
    const id = await load();
    await client.delete(configMaps, ref);
    expect(await load()).toBe(id);
    expect((await client.get(configMaps, ref)).data).toMatchObject({ clusterID: id });
  });

  test('signs once it is loaded, and not before', async () => {
    const identity = new ClusterIdentity({ client, namespace, clock, log: silentLogger });
    expect(() => identity.clusterID).toThrow('before it was loaded');
    await identity.start(signal);
    expect(identity.clusterID).toBe(await load());
    expect(verifySignature(identity.publicKey, 'offer', 'x', identity.sign('offer', 'x'))).toBe(true);
  });
});

test.each([
  ['GET', 503],
  ['POST', 500],
  ['POST', 409],
])('a start outlasts a %s that is answered with %d', async (verb, status) => {
  server.fault({ match: ({ method }) => method === verb, status, times: 3 });
  const identity = new ClusterIdentity({ client, namespace, clock, log: silentLogger });
  await clock.during('the identity is loaded', identity.start(signal));
  expect(identity.clusterID).toBe(await load());
});

describe('never by accident another one', () => {
  let id = '';
  beforeEach(async () => {
    id = await load();
  });

  const refused = async (...parts: string[]): Promise<void> => {
    const before = server.log.filter((line) => !line.startsWith('GET')).length;
    const failure: unknown = await load().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'Invalid' });
    for (const part of parts) expect((failure as Error).message).toContain(part);
    expect((failure as Error).message).not.toContain('PRIVATE');
    expect(server.log.filter((line) => !line.startsWith('GET'))).toHaveLength(before);
  };

  test.each([
    ['no PEM', 'nonsense'],
    ['another kind of key', pem('x25519')],
    ['nothing', ''],
    ['far too much', 'x'.repeat(100_000)],
  ])('the key is %s', async (_name, key) => {
    await edit({ key });
    await refused('holds no PKCS#8 Ed25519 key', 'restore it from a backup');
  });

  test('the annotation says another ID, or none', async () => {
    await edit({ annotation: 'a'.repeat(26) });
    await refused(id, 'a'.repeat(26), 'correct the annotation');
    await edit({ annotation: null });
    await refused('says nothing');
  });

  test('the key was replaced and the annotation removed or adapted', async () => {
    const other = pem('ed25519');
    await edit({ key: other });
    await refused('but its annotation', id);
    // Adapted: then the ConfigMap remembers.
    const said = await load().catch((error: unknown) => (error as Error).message);
    const newID = /key of ([a-z2-7]{26})/.exec(said)?.[1] ?? '';
    await edit({ annotation: newID });
    await refused(`this cluster is ${id}`, newID);
  });

  test('the Secret is gone', async () => {
    await client.delete(secrets, ref);
    await refused(`the key of ${id} is gone`, 'delete the ConfigMap');
    const identity = new ClusterIdentity({ client, namespace, clock, log: silentLogger });
    await expect(identity.start(signal)).rejects.toMatchObject({ code: 'Invalid' });
    await client.delete(configMaps, ref);
    expect(await load()).not.toBe(id);
  });

  test('the API server is away', async () => {
    server.fault({ match: ({ path }) => path.includes('secrets'), status: 503, times: 50 });
    await expect(load()).rejects.toMatchObject({ code: 'Unavailable' });
  });
});
