import { afterEach, expect, test } from '@jest/globals';
import { configMaps, subjectAccessReviews } from '../../../src/api/resources.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { fenced } from '../../../src/kube/fenced-client.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { TributaryError } from '../../../src/lib/errors.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';

const REF = { name: 'a', namespace: 'ns' };
const ENDED = new TributaryError('Aborted', 'the term is over');

let server: FakeApiServer;
let client: KubeClient;
let isOver = false;
/** Calls of the check, of which all but the first come right before something is sent. */
let checks = 0;
let overAtCheck = Infinity;

async function open(): Promise<KubeClient> {
  isOver = false;
  checks = 0;
  overAtCheck = Infinity;
  server = await new FakeApiServer().start();
  server.seed(configMaps, { metadata: REF, data: { v: '1' } });
  client = createClient(server.credentials(), { random: () => 0.001 });
  return fenced(client, () => {
    checks += 1;
    if (isOver || checks >= overAtCheck) throw ENDED;
  });
}

afterEach(async () => {
  await client.close();
  await server.stop();
});

const WRITES: [string, (of: KubeClient) => Promise<unknown>][] = [
  ['create', async (of) => of.create(configMaps, { metadata: { ...REF, name: 'b' } })],
  ['replace', async (of) => of.replace(configMaps, { metadata: REF as never })],
  ['patch', async (of) => of.patch(configMaps, REF, { type: 'merge', body: { data: { v: '2' } } })],
  ['delete', async (of) => of.delete(configMaps, REF)],
];

test.each(WRITES)('%s: made while the term lasts, refused unsent when it is over', async (_name, write) => {
  const of = await open();
  isOver = true;
  await expect(write(of)).rejects.toBe(ENDED);
  expect(server.log).toEqual([]);
  isOver = false;
  await write(of);
  expect(server.log).toHaveLength(1);
});

test.each(WRITES)('%s: refused if the term ends between the call and its sending', async (_name, write) => {
  const of = await open();
  // The client has no connection yet, and dials first.
  overAtCheck = 2;
  await expect(write(of)).rejects.toBe(ENDED);
  expect(server.log).toEqual([]);
});

test('refused if the term ends while the server asks for patience', async () => {
  const of = await open();
  server.fault({ status: 429, headers: { 'retry-after': '0' } });
  overAtCheck = 3;
  await expect(of.delete(configMaps, REF)).rejects.toBe(ENDED);
  expect(server.log).toHaveLength(1);
});

test('reads go on, and so do questions; a raw request only reads', async () => {
  const of = await open();
  isOver = true;
  expect(await of.get(configMaps, REF)).toMatchObject({ data: { v: '1' } });
  expect((await of.list(configMaps)).items).toHaveLength(1);
  expect((await of.raw({ method: 'GET', path: '/api/v1/namespaces/ns/configmaps/a' })).status).toBe(200);
  await of.create(subjectAccessReviews, { metadata: {}, spec: {} }).catch(() => undefined);
  expect(server.log.at(-1)).toContain('subjectaccessreviews');
  const path = '/api/v1/namespaces/ns/pods/a/eviction';
  await expect(of.raw({ method: 'POST', path })).rejects.toMatchObject({ code: 'Invalid' });
});
