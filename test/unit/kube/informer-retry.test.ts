import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { tellAnswers } from '../../../src/kube/server-news.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;

beforeEach(() => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

test('caches that are told that their server answers again wait neither for a rest that grew nor for an answer that does not come, and leaves a watch that works alone', async () => {
  server.seed(configMaps, { metadata: { name: 'a', namespace: 'ns' }, data: {} });
  const informer = new Informer<ConfigMap>({
    client,
    type: configMaps,
    list: { namespace: 'ns' },
    clock,
    log: silentLogger,
    random: () => 1,
  });
  await clock.during('the informer starts', informer.start(new AbortController().signal));
  await clock.until('a watcher', () => server.watches.watchers.length === 1);
  const [watcher] = server.watches.watchers;
  tellAnswers(client);
  await clock.advance(1_000);
  expect(server.watches.watchers).toEqual([watcher]);
  const soon = async (): Promise<void> => {
    const current = server.storage.get('configmaps', 'ns/a');
    if (current === undefined) throw new Error('the object is gone');
    const step = String(clock.monotonic());
    server.storage.update('configmaps', { ...current, data: { step } });
    const began = clock.monotonic();
    tellAnswers(client);
    await clock.until('it is seen', () => informer.get('ns/a')?.data?.['step'] === step);
    expect(clock.monotonic() - began).toBeLessThan(1_000);
  };
  const endFailures = server.fault({ status: 503, times: Infinity });
  watcher?.end();
  await clock.advance(120_000);
  endFailures();
  await soon();
  const endSilence = server.fault({ delayMs: 1e9, times: Infinity });
  const asked = server.count(/limit=/);
  informer.relist('as after a restore');
  await clock.until('the list is asked for', () => server.count(/limit=/) > asked);
  endSilence();
  await soon();
  await informer.stop();
});
