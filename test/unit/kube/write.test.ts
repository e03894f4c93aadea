import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { configMaps, pods } from '../../../src/api/resources.ts';
import type { ConfigMap, Pod } from '../../../src/api/wire.ts';
import { addFinalizer, removeFinalizer } from '../../../src/kube/finalizers.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import {
  deleteByUid,
  patchMetadataIfDiffers,
  replaceIfDiffers,
  replaceStatusIfDiffers,
} from '../../../src/kube/write.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
const REF = { name: 'a', namespace: 'ns' };
const FINALIZER = 'tributary.dev/test';

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

const writes = (): number => server.count(/^(PUT|PATCH|POST)/);

test('a status that does not differ is not written', async () => {
  server.seed(pods, { metadata: REF, spec: { containers: [] }, status: { phase: 'Pending' } });
  const pod: Pod = await client.get(pods, REF);
  expect(await replaceStatusIfDiffers(client, pods, pod, { status: { phase: 'Pending' } })).toBe(pod);
  expect(writes()).toBe(0);
  const written = await replaceStatusIfDiffers(client, pods, pod, { status: { phase: 'Running' } });
  expect(written.status).toEqual({ phase: 'Running' });
  const stale = replaceStatusIfDiffers(client, pods, pod, { status: { phase: 'Failed' } });
  await expect(stale).rejects.toMatchObject({ code: 'Conflict' });
});

test('an object that does not differ is not written', async () => {
  server.seed(configMaps, { metadata: REF, data: { a: '1' } });
  const current: ConfigMap = await client.get(configMaps, REF);
  expect(await replaceIfDiffers(client, configMaps, current, { desired: { ...current } })).toBe(current);
  expect(writes()).toBe(0);
  const next = await replaceIfDiffers(client, configMaps, current, {
    desired: { ...current, data: { a: '2' } },
  });
  expect(next.data).toEqual({ a: '2' });
});

test('marks are patched where one differs, and null removes one', async () => {
  server.seed(configMaps, { metadata: { ...REF, labels: { keep: '1', drop: '1' } } });
  const current: ConfigMap = await client.get(configMaps, REF);
  const same = { labels: { keep: '1', never: null }, annotations: {} };
  expect(await patchMetadataIfDiffers(client, configMaps, current, same)).toBe(current);
  expect(writes()).toBe(0);
  const next = await patchMetadataIfDiffers(client, configMaps, current, {
    labels: { keep: '1', drop: null, more: '2' },
    annotations: { note: 'x' },
  });
  expect(next.metadata.labels).toEqual({ keep: '1', more: '2' });
  expect(next.metadata.annotations).toEqual({ note: 'x' });
});

test('a finalizer is added once, and others are left alone', async () => {
  server.seed(configMaps, { metadata: { ...REF, finalizers: ['other/one'] } });
  const current: ConfigMap = await client.get(configMaps, REF);
  const held = await addFinalizer(client, configMaps, current, { finalizer: FINALIZER });
  expect(held.metadata.finalizers).toEqual(['other/one', FINALIZER]);
  expect(await addFinalizer(client, configMaps, held, { finalizer: FINALIZER })).toBe(held);
  const free = await removeFinalizer(client, configMaps, held, { finalizer: FINALIZER });
  expect(free?.metadata.finalizers).toEqual(['other/one']);
  expect(writes()).toBe(2);
});

test('a finalizer written by a stale version is a Conflict, so nobody else is undone', async () => {
  server.seed(configMaps, { metadata: { ...REF, finalizers: ['other/one'] } });
  const stale: ConfigMap = await client.get(configMaps, REF);
  await client.patch(configMaps, REF, { type: 'merge', body: { data: { a: '1' } } });
  await expect(addFinalizer(client, configMaps, stale, { finalizer: FINALIZER })).rejects.toMatchObject({
    code: 'Conflict',
  });
});

test('the last finalizer lets a dying object go; one that has gone is no error', async () => {
  server.seed(configMaps, { metadata: { ...REF, finalizers: [FINALIZER] } });
  await client.delete(configMaps, REF);
  const dying: ConfigMap = await client.get(configMaps, REF);
  expect(await addFinalizer(client, configMaps, dying, { finalizer: 'other/two' })).toBe(dying);
  await removeFinalizer(client, configMaps, dying, { finalizer: FINALIZER });
  await expect(client.get(configMaps, REF)).rejects.toMatchObject({ code: 'NotFound' });
  expect(await removeFinalizer(client, configMaps, dying, { finalizer: FINALIZER })).toBeUndefined();
});

test('an object is deleted, and no other of its name; one that has gone is no error', async () => {
  server.seed(configMaps, { metadata: REF });
  const first: ConfigMap = await client.get(configMaps, REF);
  await deleteByUid(client, configMaps, first, {});
  await expect(client.get(configMaps, REF)).rejects.toMatchObject({ code: 'NotFound' });
  await deleteByUid(client, configMaps, first, {});
  server.seed(configMaps, { metadata: REF });
  const second: ConfigMap = await client.get(configMaps, REF);
  await deleteByUid(client, configMaps, first, {});
  expect(await client.get(configMaps, REF)).toEqual(second);
});
