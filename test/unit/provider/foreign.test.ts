import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { LABEL_PROVIDER } from '../../../src/api/names.ts';
import { namespaces, secrets } from '../../../src/api/resources.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { parseProxy } from '../../../src/lib/proxy.ts';
import { ForeignCluster } from '../../../src/provider/foreign.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const proxies = { proxy: parseProxy('http://of-environment:3128', 'x'), except: 'other.test' };
const where = { namespace: 'tributary-system', name: 'milan' };

let clock: FakeClock;
let home: FakeApi;
let foreign: FakeApi;
let other: FakeApi;
let client: HttpClient;
let cluster: ForeignCluster;
let tokens: Set<string>;

beforeEach(async () => {
  tokens = new Set(['one']);
  clock = new FakeClock();
  home = new FakeApi({ clock });
  foreign = new FakeApi({ clock, tokens });
  other = new FakeApi({ clock });
  const byHost = new Map([
    ['foreign.test', foreign],
    ['other.test', other],
  ]);
  home.seed(secrets, { metadata: where, data: data('foreign.test', 'one') });
  client = home.client();
  cluster = new ForeignCluster({
    home: client,
    secretRef: where,
    connect: ({ server, token }) => {
      const api = byHost.get(server.host);
      if (api === undefined) throw new Error(`nobody at ${server.host}`);
      return api.client(token && { token });
    },
    proxies,
    clock,
    log: silentLogger,
  });
  await cluster.start(new AbortController().signal);
});

afterEach(async () => {
  await cluster.stop();
  await client.close();
  await Promise.all([home, foreign, other].map(async (api) => api.stop()));
});

function data(host: string, token: string, proxyUrl?: string): { kubeconfig: string } {
  const kubeconfig = {
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [
      {
        name: 'x',
        cluster: { server: `https://${host}`, 'certificate-authority-data': '', 'proxy-url': proxyUrl },
      },
    ],
    users: [{ name: 'x', user: { token } }],
  };
  return { kubeconfig: Buffer.from(JSON.stringify(kubeconfig)).toString('base64') };
}

interface PutOptions {
  proxyUrl?: string;
  labels?: Record<string, string>;
}

function put(host: string, token: string, { proxyUrl, labels }: PutOptions = {}): void {
  const secret = home.storage.get('secrets', `${where.namespace}/${where.name}`);
  if (secret === undefined) throw new Error('no Secret');
  home.storage.update('secrets', {
    ...secret,
    metadata: { ...secret.metadata, ...(labels && { labels }) },
    data: data(host, token, proxyUrl),
  });
}

/** Follows namespaces until it is cut; their names, and whether it was. */
async function follow(): Promise<{ seen: string[]; ended: () => boolean }> {
  const seen: string[] = [];
  let ended = false;
  const opened = Promise.withResolvers<void>();
  const { resourceVersion } = await cluster.client.list(namespaces);
  const run = async (): Promise<void> => {
    const options = { resourceVersion, onOpen: () => opened.resolve() };
    for await (const event of cluster.client.watch(namespaces, options)) {
      if (event.type === 'ADDED') seen.push(event.object.metadata.name);
    }
  };
  run()
    .catch(() => undefined)
    .finally(() => (ended = true));
  await opened.promise;
  return { seen, ended: () => ended };
}

test('another token goes with the next request; what is under way goes on', async () => {
  const watch = await follow();
  let changes = 0;
  cluster.onChange(() => changes++);
  tokens.add('two');
  put('foreign.test', 'two');
  await clock.until('told', () => changes === 1);
  tokens.delete('one');
  foreign.seed(namespaces, { metadata: { name: 'later' } });
  expect((await cluster.client.get(namespaces, { name: 'later' })).metadata.name).toBe('later');
  expect(await cluster.credentials?.token?.()).toBe('two');
  await clock.until('seen by the watch', () => watch.seen.includes('later'));
  expect(watch.ended()).toBe(false);
});

test('another server is another client; watches are begun anew there', async () => {
  const watch = await follow();
  other.seed(namespaces, { metadata: { name: 'elsewhere' } });
  put('other.test', 'one');
  await clock.until('the watch has ended', () => watch.ended());
  expect((await cluster.client.get(namespaces, { name: 'elsewhere' })).metadata.name).toBe('elsewhere');
});

test('the proxy is that of the kubeconfig, else that of the environment; but that of a peer says all of it', async () => {
  const through = (): string | undefined => cluster.credentials?.proxy?.host;
  const isAt = (host: string) => (): boolean => cluster.credentials?.server.host === host;
  expect(through()).toBe('of-environment');
  put('foreign.test', 'one', { proxyUrl: 'http://named:1' });
  await clock.until('the one that is named', () => through() === 'named');
  put('other.test', 'one');
  await clock.until('excepted', isAt('other.test'));
  expect(through()).toBeUndefined();
  put('foreign.test', 'one', { labels: { [LABEL_PROVIDER]: 'milan' } });
  await clock.until('of a peer', isAt('foreign.test'));
  expect(through()).toBeUndefined();
});
