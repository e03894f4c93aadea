import { afterEach, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import { type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import { startDeadline } from '../../../src/lib/deadline.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type TcpProxy, startTcpProxy } from '../../support/network/tcp-proxy.ts';

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

interface World {
  server: FakeApiServer;
  proxy: TcpProxy;
  clock: FakeClock;
  client: HttpClient;
}

/** A client that has a connection already. */
async function world(): Promise<World> {
  const server = await new FakeApiServer().start();
  server.seed(configMaps, { metadata: { name: 'a', namespace: 'ns' }, data: { v: '1' } });
  const proxy = await startTcpProxy(server.port);
  const clock = new FakeClock();
  const client = createClient(server.credentials(proxy.port), { clock, random: () => 0.001 });
  cleanups.push(
    () => server.stop(),
    () => proxy.close(),
    () => client.close(),
  );
  await getA(client);
  await noStream(client);
  return { server, proxy, clock, client };
}

const getA = async (client: HttpClient, signal?: AbortSignal): Promise<ConfigMap> =>
  client.get(configMaps, { name: 'a', namespace: 'ns' }, signal === undefined ? {} : { signal });

const noStream = async (client: HttpClient): Promise<void> =>
  eventually('no stream', () => client.stats.streamsOpen === 0);

/** A call that is not answered in three seconds, in which something else may happen. */
async function timesOut({ clock, client }: World, meanwhile?: () => Promise<unknown>): Promise<void> {
  using deadline = startDeadline(clock, 3_000, 'it');
  const asked = getA(client, deadline.signal).catch((error: unknown) => error);
  await eventually('the request', () => client.stats.streamsOpen === 1);
  await meanwhile?.();
  await clock.advance(3_000);
  expect(await asked).toMatchObject({ code: 'Unreachable', message: 'it: no answer within 3000 ms' });
  await noStream(client);
}

test('a call that times out with nothing heard meanwhile leaves the next one to a new connection', async () => {
  const all = await world();
  const { proxy, client } = all;
  proxy.silence();
  await timesOut(all);
  proxy.restore();
  const next = getA(client).catch((error: unknown) => error);
  await eventually('it is on its way', () => proxy.connections === 2 || client.stats.streamsOpen === 1);
  expect(proxy.connections).toBe(2);
  expect(await next).toMatchObject({ data: { v: '1' } });
});

test('a call that times out while another is answered leaves the connection to those that follow', async () => {
  const all = await world();
  const { server, proxy, client } = all;
  server.fault({ stall: true });
  await timesOut(all, async () => {
    await eventually('it has arrived', () => server.count(/GET/) === 2);
    await getA(client);
  });
  await getA(client);
  expect(proxy.connections).toBe(1);
});

test('a call that its caller gives up says nothing of the connection', async () => {
  const { server, proxy, client } = await world();
  server.fault({ stall: true });
  const abort = new AbortController();
  const asked = getA(client, abort.signal).catch((error: unknown) => error);
  await eventually('it has arrived', () => server.count(/GET/) === 2);
  abort.abort(new Error('changed my mind'));
  expect(await asked).toMatchObject({ code: 'Aborted' });
  await getA(client);
  expect(proxy.connections).toBe(1);
});
