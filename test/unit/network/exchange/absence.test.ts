import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { GATEWAY_LEASE } from '../../../../src/api/own-network.ts';
import { leases, type ResourceType } from '../../../../src/api/resources.ts';
import { type Tunnel, tunnels } from '../../../../src/api/tunnel.ts';
import type { Condition, KubeObject } from '../../../../src/api/wire.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { Informer } from '../../../../src/kube/informer.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { ABSENT_MS, GatewayAbsence, LOOK_MS } from '../../../../src/network/exchange/absence.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { tunnelOf } from '../../../support/network/tunnels.ts';

const NAMESPACE = 'tributary-system';
const LEASE = { name: GATEWAY_LEASE, namespace: NAMESPACE };
const DURATION_S = 10;
const WELL = ['Ready', 'AddressesAssigned', 'HostConfigured', 'Connected'].map((type) => ({
  type,
  status: 'True' as const,
  reason: 'AsExpected',
  message: 'm',
  lastTransitionTime: '2026-01-01T00:00:00Z',
}));
const GONE = ['Unknown GatewayNotRunning', 'True AsExpected', 'True AsExpected', 'Unknown GatewayNotRunning'];
const FINE = WELL.map(() => 'True AsExpected');

let server: FakeApi;
let client: HttpClient;
let clock: FakeClock;
let lifecycle: Lifecycle;

beforeEach(async () => {
  server = new FakeApi({ clock, types: [tunnels] as ResourceType<KubeObject>[] });
  client = server.client();
  clock = new FakeClock();
  const { status } = tunnelOf('p');
  server.seed(tunnels, { ...tunnelOf('p'), status: { ...status, conditions: WELL } });
  server.seed(tunnels, { ...tunnelOf('unseen'), status: { ...status } });
  server.seed(leases, { metadata: LEASE, spec: { holderIdentity: 'n1', leaseDurationSeconds: DURATION_S } });
});

afterEach(async () => {
  await lifecycle.stop();
  await client.close();
  await server.stop();
});

async function start(): Promise<void> {
  const log = silentLogger;
  const cache = new Informer<Tunnel>({ client, type: tunnels, list: {}, clock, log });
  const absence = new GatewayAbsence({ client, clock, log, namespace: NAMESPACE, tunnels: cache });
  const components = [cache, ...absence.actors()];
  lifecycle = new Lifecycle(components, { clock, log, stopDeadlineMs: 5000 });
  await lifecycle.start(new AbortController().signal);
}

const stored = (name = 'p'): Tunnel => server.storage.get('tunnels.tributary.dev', name) as unknown as Tunnel;
const said = (name = 'p'): string[] =>
  (stored(name).status?.conditions ?? []).map(({ status, reason }: Condition) => `${status} ${reason}`);
const patches = (): number => server.count(/^PATCH .*tunnels/);
const isGone = (): boolean => said().join() === GONE.join();

async function pass(ms: number, stepMs = 1000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) await clock.advance(stepMs);
}

test('a Lease that is renewed no more makes Tunnels unknown, once, until the gateway says otherwise', async () => {
  await start();
  await pass(ABSENT_MS - 2000);
  expect(said()).toEqual(FINE);
  await pass(LOOK_MS + 4000);
  await clock.until('nobody knows', isGone);
  expect(said('unseen')).toEqual([]);
  const before = patches();
  await pass(3 * ABSENT_MS, 10_000);
  expect(patches()).toBe(before);
  // It is back.
  const lease = server.storage.get('leases.coordination.k8s.io', `${NAMESPACE}/${GATEWAY_LEASE}`);
  server.storage.update('leases.coordination.k8s.io', {
    ...lease,
    spec: { ...Object(lease?.['spec']), holderIdentity: 'n2' },
  } as never);
  await client.patch(
    tunnels,
    { name: 'p' },
    { type: 'merge', body: { status: { conditions: WELL } } },
    { subresource: 'status' },
  );
  await pass(ABSENT_MS / 2, 10_000);
  expect(said()).toEqual(FINE);
});

test('one that is valid for longer is to have lapsed for half a minute', async () => {
  const spec = { holderIdentity: 'n1', leaseDurationSeconds: 60 };
  await client.patch(leases, LEASE, { type: 'merge', body: { spec } });
  await start();
  await pass(60_000 + 28_000);
  expect(said()).toEqual(FINE);
  await pass(LOOK_MS + 4000);
  await clock.until('nobody knows', isGone);
});

test('a Lease that is gone counts as well', async () => {
  await start();
  await client.delete(leases, LEASE);
  await pass(ABSENT_MS / 2);
  expect(said()).toEqual(FINE);
  await pass(ABSENT_MS + DURATION_S * 1000 + LOOK_MS);
  await clock.until('nobody knows', isGone);
});

test('while the API server is away nobody renews it, and that is no sign', async () => {
  await start();
  await pass(5000);
  const end = server.fault({ status: 503, times: Infinity });
  await pass(2 * (ABSENT_MS + DURATION_S * 1000), 5000);
  end();
  await pass(ABSENT_MS / 2);
  expect(said()).toEqual(FINE);
});

test('it is read three times a minute, and not at all where there is nothing to take back', async () => {
  await start();
  const reads = (): number => server.count(/^GET .*leases\/tributary-gateway/);
  await pass(5 * LOOK_MS);
  expect(reads()).toBeGreaterThan(3);
  expect(reads()).toBeLessThan(8);
  await client.delete(tunnels, { name: 'p' });
  await pass(LOOK_MS);
  const before = reads();
  await pass(5 * LOOK_MS);
  expect(reads()).toBe(before);
});

test('one that is renewed does not', async () => {
  await start();
  for (let round = 0; round < 30; round++) {
    const spec = { holderIdentity: 'n1', leaseDurationSeconds: DURATION_S, leaseTransitions: round };
    await client.patch(leases, LEASE, { type: 'merge', body: { spec } });
    await pass(5000);
  }
  expect(said()).toEqual(FINE);
  expect(patches()).toBe(0);
});
