import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { tellLostHistory } from '../../../src/kube/server-news.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** What an informer does when it is told that the etcd behind its server was restored from a backup. */

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let informer: Informer<ConfigMap>;

beforeEach(() => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
  const list = { namespace: 'ns' };
  informer = new Informer<ConfigMap>({
    client,
    type: configMaps,
    list,
    clock,
    log: silentLogger,
    random: () => 0.001,
  });
});

afterEach(async () => {
  await informer.stop();
  await client.close();
  await server.stop();
});

const start = async (): Promise<void> =>
  clock.during('the informer starts', informer.start(new AbortController().signal));

function seed(name: string, data: Record<string, string> = {}): void {
  server.seed(configMaps, { metadata: { name, namespace: 'ns' }, data });
}

function change(name: string, data: Record<string, string>): void {
  const current = server.storage.get('configmaps', `ns/${name}`);
  if (current !== undefined) server.storage.update('configmaps', { ...current, data });
}

test('once it is known that history was lost, the older state is taken at once', async () => {
  seed('a', { v: '1' });
  const goBack = server.storage.snapshot();
  seed('lost');
  await start();
  goBack();
  const began = clock.monotonic();
  tellLostHistory(client, 'test');
  await clock.until('the old state', () => informer.size === 1);
  expect(clock.monotonic() - began).toBeLessThan(5_000);
  expect(informer.listBeganAt).toBeGreaterThanOrEqual(began);
  change('a', { v: '2' });
  await clock.until('what is new', () => informer.get('ns/a')?.data?.['v'] === '2');
});

test('of a history that has overtaken the lost one, nothing is missed and nothing believed to be the same', async () => {
  seed('a', { v: '1' });
  const goBack = server.storage.snapshot();
  change('a', { v: 'lost' });
  seed('lost');
  await start();
  goBack();
  // The same version with other content.
  change('a', { v: 'new' });
  for (let index = 0; index < 5; index++) seed(`new-${index}`);
  tellLostHistory(client, 'test');
  await clock.until('what is new', () => informer.get('ns/new-4') !== undefined);
  expect(informer.get('ns/lost')).toBeUndefined();
  expect(informer.get('ns/a')?.data).toEqual({ v: 'new' });
});

test('an empty list is asked for once more, since no watch tells of what it has left out', async () => {
  seed('a');
  server.fault({ match: ({ query }) => query.get('watch') !== 'true', emptyList: true });
  await start();
  expect(informer.size).toBe(0);
  await clock.until('the object is found', () => informer.size === 1, 60_000);
  const asked = (): number => server.count(/^GET .*configmaps\?(?!.*watch)/u);
  const lists = asked();
  await clock.advance(60_000);
  expect(asked()).toBe(lists);
});
