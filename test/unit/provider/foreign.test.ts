import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { namespaces, secrets } from '../../../src/api/resources.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { ForeignCluster } from '../../../src/provider/foreign.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer } from '../../support/fake-api-server.ts';

const where = { namespace: 'tributary-system', name: 'milan' };

let home: FakeApiServer;
let foreign: FakeApiServer;
let other: FakeApiServer;
let client: HttpClient;
let cluster: ForeignCluster;
let tokens: Set<string>;

beforeEach(async () => {
  tokens = new Set(['one']);
  [home, foreign, other] = await Promise.all([
    new FakeApiServer().start(),
    new FakeApiServer({ tokens }).start(),
    new FakeApiServer().start(),
  ]);
  home.seed(secrets, { metadata: where, data: data(foreign, 'one') });
  client = createClient(home.credentials());
  cluster = new ForeignCluster({ home: client, secretRef: where, clock: systemClock, log: silentLogger });
  await cluster.start(new AbortController().signal);
});

afterEach(async () => {
  await cluster.stop();
  await client.close();
  await Promise.all([home, foreign, other].map(async (server) => server.stop()));
});

function data(at: FakeApiServer, token: string): { kubeconfig: string } {
  const { server, ca = '' } = at.credentials();
  const kubeconfig = {
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [
      {
        name: 'x',
        cluster: { server: server.href, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
      },
    ],
    users: [{ name: 'x', user: { token } }],
  };
  return { kubeconfig: Buffer.from(JSON.stringify(kubeconfig)).toString('base64') };
}

function put(at: FakeApiServer, token: string): void {
  const secret = home.storage.get('secrets', `${where.namespace}/${where.name}`);
  if (secret === undefined) throw new Error('no Secret');
  home.storage.update('secrets', { ...secret, data: data(at, token) });
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
  put(foreign, 'two');
  await eventually('told', () => changes === 1);
  tokens.delete('one');
  foreign.seed(namespaces, { metadata: { name: 'later' } });
  expect((await cluster.client.get(namespaces, { name: 'later' })).metadata.name).toBe('later');
  expect(await cluster.credentials?.token?.()).toBe('two');
  await eventually('seen by the watch', () => watch.seen.includes('later'));
  expect(watch.ended()).toBe(false);
});

test('another server is another client; watches are begun anew there', async () => {
  const watch = await follow();
  other.seed(namespaces, { metadata: { name: 'elsewhere' } });
  put(other, 'one');
  await eventually('the watch has ended', () => watch.ended());
  expect((await cluster.client.get(namespaces, { name: 'elsewhere' })).metadata.name).toBe('elsewhere');
});
