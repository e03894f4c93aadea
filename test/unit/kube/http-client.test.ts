import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { configMaps, namespaces } from '../../../src/api/resources.ts';
import { type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import { describeKubeClient } from '../../contract/kube-client.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { fastClock } from '../../support/fast-clock.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';

describe('the contract within the process', () => {
  const api = new FakeApi({ clock: fastClock(100) });
  // Requests have their time on that clock too.
  const client = api.client({ timeoutMs: 3_600_000 });
  api.seed(namespaces, { metadata: { name: 'contract' } });
  afterAll(async () => client.close());
  describeKubeClient({ client: () => client, namespace: () => 'contract' });
});

describe.each([
  ['HTTP/2', true],
  ['HTTP/1.1', false],
])('the contract over %s', (_name, http2) => {
  const server = new FakeApiServer({ http2 });
  let client: HttpClient;
  beforeAll(async () => {
    await server.start();
    server.seed(namespaces, { metadata: { name: 'contract' } });
    client = createClient(server.credentials());
  });
  afterAll(async () => {
    await client.close();
    await server.stop();
  });
  describeKubeClient({ client: () => client, namespace: () => 'contract' });
});

test('a whole list of which a little comes again and again is not read for ever', async () => {
  const clock = new FakeClock();
  const body = new Readable({ read: () => undefined });
  const drip = (): void => {
    body.push(' ');
    clock.after(20_000, drip);
  };
  drip();
  const client = createClient(new FakeApiServer().credentials(), {
    clock,
    carrier: {
      request: async ({ signal }) => {
        signal?.addEventListener('abort', () => body.destroy(signal.reason as Error));
        return Promise.resolve({ status: 200, headers: {}, body });
      },
      stats: { connectionsOpened: 0, connectionsOpen: 0, streamsOpen: 0, bytesReceived: 0, bytesSent: 0 },
      close: async () => Promise.resolve(),
    },
  });
  const list = client.list(configMaps, { limit: 'whole' });
  await expect(clock.during('the list ends', list)).rejects.toThrow('no answer within 120000 ms');
  await client.close();
});
