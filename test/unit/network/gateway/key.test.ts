import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { ANNOTATION_ROTATE } from '../../../../src/api/names.ts';
import { readGatewayFacts } from '../../../../src/api/own-network.ts';
import { configMaps, type ResourceType, secrets } from '../../../../src/api/resources.ts';
import type { ConfigMap, KubeObject, Secret } from '../../../../src/api/wire.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { ignoring } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { TunnelKey } from '../../../../src/network/gateway/key.ts';
import { generateKey } from '../../../../src/network/host/wireguard/wireguard.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const NAMESPACE = 'tributary-system';
const ENDPOINTS = ['172.30.0.11:51820'];

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let made: string[];

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
  made = [];
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

async function read<T extends KubeObject>(type: ResourceType<T>, name: string): Promise<T | undefined> {
  try {
    return await client.get(type, { namespace: NAMESPACE, name });
  } catch (error) {
    return ignoring('NotFound')(error);
  }
}

/** A program that is killed after each of its writes: every step by a new one, from what is stored. */
class Run {
  secret: Secret | undefined;
  published: ConfigMap | undefined;
  keeper: TunnelKey | undefined;
  routes: string[] | undefined = [];
  silent: string[] | undefined;

  async step(endpoints: readonly string[] | 'unknown' = ENDPOINTS): Promise<boolean> {
    this.secret = await read(secrets, 'tributary-wireguard');
    this.published = await read(configMaps, 'tributary-gateway');
    this.keeper = new TunnelKey({
      client,
      log: silentLogger,
      namespace: NAMESPACE,
      secret: () => this.secret,
      published: () => this.published,
      endpoints: () => (endpoints === 'unknown' ? undefined : endpoints),
      localRoutes: () => this.routes,
      silentNodes: () => this.silent,
      newKey: () => {
        const key = generateKey();
        made.push(key.publicKey);
        return key;
      },
    });
    return this.keeper.step(new AbortController().signal);
  }

  async untilUsed(): Promise<string[]> {
    const steps: string[] = [];
    for (;;) {
      const before = server.log.length;
      const used = await this.step();
      const writes = server.log.slice(before).filter((line) => !line.startsWith('GET'));
      steps.push(...writes.map((line) => line.replace(/\/api\/v1\/namespaces\/tributary-system\//, '')));
      if (used) return steps;
    }
  }
}

async function publishedKey(): Promise<string | undefined> {
  return readGatewayFacts((await read(configMaps, 'tributary-gateway'))?.data)?.publicKey;
}

async function wish(text: string): Promise<void> {
  const body = { metadata: { annotations: { [ANNOTATION_ROTATE]: text } } };
  await client.patch(
    configMaps,
    { namespace: NAMESPACE, name: 'tributary-gateway' },
    { type: 'merge', body },
  );
}

test('the first key: stored, told, used; killed after each write', async () => {
  const run = new Run();
  expect(await run.untilUsed()).toEqual(['POST secrets', 'POST configmaps']);
  expect(run.keeper?.key?.publicKey).toBe(made[0]);
  expect(await publishedKey()).toBe(made[0]);
  expect(readGatewayFacts((await read(configMaps, 'tributary-gateway'))?.data)?.endpoints).toEqual(ENDPOINTS);
  expect(made).toHaveLength(1);
});

test('tells which nodes do not answer, and forgets it when they do; until it is measured, what was told stays', async () => {
  const run = new Run();
  await run.untilUsed();
  const told = async (): Promise<string[] | undefined> =>
    readGatewayFacts((await read(configMaps, 'tributary-gateway'))?.data)?.silentNodes;
  expect(await told()).toBeUndefined();
  for (const silent of [['n2'], undefined, []]) {
    run.silent = silent;
    await run.untilUsed();
    expect(await told()).toEqual(silent ?? ['n2']);
  }
});

test('a restart uses the key that is there, without a write', async () => {
  await new Run().untilUsed();
  expect(await new Run().untilUsed()).toEqual([]);
  expect(made).toHaveLength(1);
});

test('a wish makes one new key, killed after each write', async () => {
  await new Run().untilUsed();
  await wish('monday');
  const run = new Run();
  expect(await run.untilUsed()).toEqual([
    'PUT secrets/tributary-wireguard',
    'PATCH configmaps/tributary-gateway',
  ]);
  expect(run.keeper?.key?.publicKey).toBe(made[1]);
  expect(await publishedKey()).toBe(made[1]);
  expect(await new Run().untilUsed()).toEqual([]);
  await wish('tuesday');
  await new Run().untilUsed();
  expect(made).toHaveLength(3);
});

test('the key is not used before it is told', async () => {
  await new Run().untilUsed();
  await wish('monday');
  const run = new Run();
  await run.step();
  server.fault({ match: ({ method }) => method === 'PATCH', status: 403 });
  await expect(run.step()).rejects.toMatchObject({ code: 'Forbidden' });
  expect(run.keeper?.key).toBeUndefined();
  expect(await publishedKey()).toBe(made[0]);
});

test('one that keeps running goes on with the old key until the new one is told', async () => {
  const run = new Run();
  await run.untilUsed();
  const { keeper } = run;
  await wish('monday');
  run.published = await read(configMaps, 'tributary-gateway');
  await keeper?.step(new AbortController().signal);
  expect(keeper?.key?.publicKey).toBe(made[0]);
  run.secret = await read(secrets, 'tributary-wireguard');
  await keeper?.step(new AbortController().signal);
  expect(keeper?.key?.publicKey).toBe(made[0]);
  run.published = await read(configMaps, 'tributary-gateway');
  expect(await keeper?.step(new AbortController().signal)).toBe(true);
  expect(keeper?.key?.publicKey).toBe(made[1]);
});

test('of two that make a key at once, one wins', async () => {
  const [one, other] = [new Run(), new Run()];
  const outcomes = await Promise.allSettled([one.step(), other.step()]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  await Promise.all([one.untilUsed(), other.untilUsed()]).catch(() => undefined);
  await new Run().untilUsed();
  const stored = await read(secrets, 'tributary-wireguard');
  expect(Object.keys(stored?.data ?? {})).toEqual(['privateKey']);
});

test('what is no key is replaced', async () => {
  await new Run().untilUsed();
  const ref = { namespace: NAMESPACE, name: 'tributary-wireguard' };
  await client.patch(secrets, ref, { type: 'merge', body: { data: { privateKey: 'bm9uZQ==' } } });
  await new Run().untilUsed();
  expect(await publishedKey()).toBe(made[1]);
});

test('facts that were lost or damaged are told again; the wish that stands in them is kept', async () => {
  await new Run().untilUsed();
  await wish('monday');
  await new Run().untilUsed();
  const ref = { namespace: NAMESPACE, name: 'tributary-gateway' };
  await client.patch(configMaps, ref, { type: 'merge', body: { data: { 'network.json': '{' } } });
  expect(await new Run().untilUsed()).toEqual(['PATCH configmaps/tributary-gateway']);
  expect((await read(configMaps, 'tributary-gateway'))?.metadata.annotations).toEqual({
    [ANNOTATION_ROTATE]: 'monday',
  });
  await client.delete(configMaps, ref);
  expect(await new Run().untilUsed()).toEqual(['POST configmaps']);
  expect(made).toHaveLength(2);
});

test('networks beside ours are told; while they are not known, those that were told stay', async () => {
  const told = async (): Promise<unknown> =>
    readGatewayFacts((await read(configMaps, 'tributary-gateway'))?.data)?.localRoutes;
  const run = new Run();
  run.routes = ['10.20.0.0/16'];
  await run.untilUsed();
  expect(await told()).toEqual(['10.20.0.0/16']);
  run.routes = undefined;
  expect(await run.untilUsed()).toEqual([]);
  run.routes = [];
  expect(await run.untilUsed()).toEqual(['PATCH configmaps/tributary-gateway']);
  expect(await told()).toEqual([]);
});

test('nothing is told before the routes of the host were read', async () => {
  const run = new Run();
  run.routes = undefined;
  for (let steps = 0; steps < 3; steps++) expect(await run.step()).toBe(false);
  expect(await publishedKey()).toBeUndefined();
  run.routes = [];
  expect(await run.untilUsed()).toEqual(['POST configmaps']);
});

test('nothing is told before it is known where we are dialled', async () => {
  const run = new Run();
  expect(await run.step('unknown')).toBe(false);
  expect(server.log.filter((line) => !line.startsWith('GET'))).toEqual([]);
});
