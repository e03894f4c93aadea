import { afterAll, beforeAll, describe } from '@jest/globals';
import { namespaces } from '../../../src/api/resources.ts';
import { type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import { describeKubeClient } from '../../contract/kube-client.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
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
