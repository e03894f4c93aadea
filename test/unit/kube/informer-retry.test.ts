import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

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
  const asked = server.count(/^GET (?!.*watch=)/);
  informer.relist('as after a restore');
  await clock.until('the list is asked for', () => server.count(/^GET (?!.*watch=)/) > asked);
  endSilence();
  await soon();
  await informer.stop();
});

describe('a whole list that breaks off', () => {
  const isWhole = ({ query }: { query: URLSearchParams }): boolean =>
    !query.has('watch') && !query.has('limit');
  const begun = '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[';
  const seed = (name: string): unknown => server.seed(configMaps, { metadata: { name, namespace: 'ns' } });
  const wholes = (): number => server.count(/^GET (?!.*(watch|limit)=)/);

  test.each([
    ['ends too early', { body: begun }],
    ['does not go on', { body: begun, stall: true }],
  ])('since it %s: the next one comes in pages', async (_, fault) => {
    seed('a');
    server.fault({ match: isWhole, ...fault });
    const list = { namespace: 'ns' };
    const informer = new Informer<ConfigMap>({ client, type: configMaps, list, clock, log: silentLogger });
    await clock.during('the informer starts', informer.start(new AbortController().signal));
    expect(informer.size).toBe(1);
    expect([wholes(), server.count(/^GET .*limit=/)]).toEqual([1, 1]);
    // A watch that works ends the trouble.
    seed('b');
    await clock.until('it is seen', () => informer.size === 2);
    informer.relist('test');
    await clock.until('a whole one again', () => wholes() === 2);
    await informer.stop();
  });
});
