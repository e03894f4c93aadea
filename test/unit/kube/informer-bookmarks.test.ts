import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import type { FakeWatcher } from '../../support/fake-api/watch.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** With the source of chance below. */
const WATCH_MS = 300_000;

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let informer: Informer<ConfigMap>;

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
  server.seed(configMaps, { metadata: { name: 'a', namespace: 'ns' } });
  const list = { namespace: 'ns' };
  informer = new Informer({ client, type: configMaps, list, clock, log: silentLogger, random: () => 0 });
  await clock.during('the informer starts', informer.start(new AbortController().signal));
});

afterEach(async () => {
  await informer.stop();
  await client.close();
  await server.stop();
});

const lists = (): number => server.count(/^GET (?!.*watch=)/);

async function watcher(): Promise<FakeWatcher> {
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  return server.watches.watchers[0] as FakeWatcher;
}

/** Somebody changes what is not watched, so often that the server forgets what was before. */
function forget(): void {
  server.seed(configMaps, { metadata: { generateName: 'x', namespace: 'elsewhere' } });
  server.storage.compact();
}

test('no bookmarks are asked for while a watch can be resumed without them', async () => {
  for (let round = 0; round < 3; round++) {
    expect((await watcher()).request.bookmarks).toBe(false);
    server.seed(configMaps, { metadata: { generateName: 'x', namespace: 'elsewhere' } });
    await clock.advance(WATCH_MS + 100);
  }
  expect(lists()).toBe(1);
});

test('where the server forgets the version within the time of a watch, bookmarks are asked for, and move it', async () => {
  await watcher();
  forget();
  await clock.advance(WATCH_MS + 100);
  await clock.until('a second list', () => lists() === 2);
  expect((await watcher()).request.bookmarks).toBe(true);
  forget();
  server.watches.bookmark();
  const { revision } = server.storage;
  (await watcher()).end();
  await clock.until('resumed', () => server.count(new RegExp(`resourceVersion=${revision}&`)) === 1);
  expect((await watcher()).request.bookmarks).toBe(true);
  expect(lists()).toBe(2);
});

test.each([
  ['ends watches', () => server.watches.watchers[0]?.end()],
  ['breaks connections', () => server.cut()],
])('a server that %s and begins anew is no reason to ask for bookmarks', async (_, end) => {
  await watcher();
  forget();
  end();
  await clock.until('a second list', () => lists() === 2);
  expect((await watcher()).request.bookmarks).toBe(false);
});
