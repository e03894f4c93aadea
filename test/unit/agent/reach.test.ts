import 'reflect-metadata';
import { afterEach, describe, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';
import { short } from '../../support/long.ts';
import { reachPair, type ReachPair } from '../../support/peering/reach-pair.ts';

const AGENTS = short('agents of one API server at once', { short: 25, long: 100 });

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

interface Bed {
  pair: ReachPair;
  api: FakeApiServer;
  /** A client of its own connection, through the streams. */
  client: () => HttpClient;
}

async function bed(direct: boolean): Promise<Bed> {
  const api = await new FakeApiServer({ tokens: new Set(['good']) }).start();
  cleanups.push(async () => api.stop());
  api.seed(configMaps, { metadata: { name: 'a', namespace: 'ns' }, data: { v: '1' } });
  const pair = await reachPair({ direct, apiPort: () => api.port, limits: { streamsPerPeer: 110 } });
  cleanups.push(async () => pair.down());
  const { server } = await pair.consumer.reach.open(pair.id);
  const { ca = '' } = api.credentials();
  return {
    pair,
    api,
    client: () => {
      // Many of them share a processor with both clusters.
      const credentials = { server: new URL(server), ca, token: async () => Promise.resolve('good') };
      const client = createClient(credentials, { connectTimeoutMs: 60_000 });
      cleanups.push(async () => client.close());
      return client;
    },
  };
}

const A = { namespace: 'ns', name: 'a' };

/** Values as a watch brings them; `ended` when it has. */
function follow(client: HttpClient): { values: string[]; ended: () => boolean } {
  const values: string[] = [];
  let ended = false;
  const run = async (): Promise<void> => {
    const { resourceVersion } = await client.list(configMaps, { namespace: 'ns' });
    for await (const event of client.watch(configMaps, {
      namespace: 'ns',
      resourceVersion,
      onOpen: () => values.push('open'),
    })) {
      if (event.type !== 'BOOKMARK') values.push(event.object.data?.['v'] ?? '');
    }
  };
  void run()
    .catch(() => undefined)
    .finally(() => (ended = true));
  return { values, ended: () => ended };
}

const write = async (client: HttpClient, v: string): Promise<unknown> =>
  client.patch(configMaps, A, { type: 'merge', body: { data: { v } } });

describe.each([
  ['dialled', true],
  ['dialled back', false],
] as const)('an API server that is %s, over the real endpoint', (_name, direct) => {
  test('answers over TLS from end to end, and a watch goes on when the link is cut', async () => {
    const { pair, client } = await bed(direct);
    const agent = client();
    expect(await agent.get(configMaps, A)).toMatchObject({ data: { v: '1' } });
    const watch = follow(agent);
    await eventually('the watch is open', () => watch.values.includes('open'));
    await pair.consumer.node.registry.stop();
    await eventually(
      'the link is gone',
      () => pair.provider.node.registry.view(pair.consumer.node.id) === undefined,
    );
    await write(agent, '2');
    await eventually('the watch goes on', () => watch.values.includes('2'));
    expect(watch.ended()).toBe(false);
  });

  test('is away when its streams are cut, and back with the next one', async () => {
    const { pair, client } = await bed(direct);
    const agent = client();
    const watch = follow(agent);
    await eventually('the watch is open', () => watch.values.includes('open'));
    pair.provider.reach.revoke(pair.consumer.node.id);
    await eventually('the watch has ended', () => watch.ended());
    expect(await agent.get(configMaps, A)).toMatchObject({ data: { v: '1' } });
    const again = follow(agent);
    await eventually('the watch is open again', () => again.values.includes('open'));
    await write(agent, '3');
    await eventually('and follows', () => again.values.includes('3'));
  });

  test('takes many agents at once, and nothing is left of them', async () => {
    const { pair, client } = await bed(direct);
    const agents = Array.from({ length: AGENTS }, client);
    const answers = await Promise.all(agents.map(async (agent) => agent.get(configMaps, A)));
    expect(answers).toHaveLength(AGENTS);
    expect(pair.provider.reach.streams.lent).toBe(AGENTS);
    await Promise.all(agents.map(async (agent) => agent.close()));
    await eventually(
      'all are gone',
      () => pair.provider.reach.streams.lent + pair.consumer.reach.streams.borrowed === 0,
    );
  });
});

test('another cluster at the endpoint is not believed', async () => {
  const { pair, client, api } = await bed(true);
  const other = await reachPair({ direct: true, apiPort: () => api.port });
  cleanups.push(async () => other.down());
  const { dialer } = pair.consumer.node.registry;
  const open = dialer.open(
    {
      clusterID: pair.id,
      endpoint: other.provider.node.address,
      path: '/v1/api',
      signal: new AbortController().signal,
    },
    (socket) => socket,
  );
  await expect(open).rejects.toMatchObject({ code: 'Unauthorized' });
  expect(await client().get(configMaps, A)).toMatchObject({ data: { v: '1' } });
});
