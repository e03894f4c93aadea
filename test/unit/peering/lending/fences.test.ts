import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { FenceTerms } from '../../../../src/api/cluster-mode.ts';
import type { PeeringPhase } from '../../../../src/api/foreign-cluster.ts';
import type { PeeringRequest } from '../../../../src/api/peering-request.ts';
import { leases } from '../../../../src/api/resources.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { hasCode } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Fences } from '../../../../src/peering/lending/fences.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const DEVICE = 'device-id';
const TERMS = { afterSeconds: 10, stopSeconds: 6 };
const { signal } = new AbortController();

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let terms: FenceTerms | undefined;
let phase: PeeringPhase;
let changed: string[];
let fences: Fences;

beforeEach(() => {
  clock = new FakeClock();
  api = new FakeApi({ clock });
  client = api.client();
  terms = TERMS;
  phase = 'Established';
  changed = [];
  fences = opened();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

const opened = (): Fences =>
  new Fences({
    client,
    clock,
    log: silentLogger,
    systemNamespace: 'system',
    requests: { get: () => request() },
    changed: (peer) => changed.push(peer),
  });
const request = (): PeeringRequest => ({
  metadata: { name: DEVICE, uid: 'request-uid', resourceVersion: '1', creationTimestamp: '' },
  spec: { clusterID: DEVICE, namespaces: [], ...(terms && { fence: terms }) },
  status: { phase },
});
const renew = async (ticket?: string, resume?: true): Promise<[ticket: string, state: string]> => {
  const params = { ...(ticket !== undefined && { ticket }), ...(resume && { resume }) };
  const result = await fences.renew(DEVICE, params, signal);
  return [result.ticket, result.state];
};
const isClosed = async (): Promise<boolean> => fences.isClosed(DEVICE, signal);

test('nothing is stopped before a ticket was shown, and then when none was shown for long enough', async () => {
  const [first, state] = await renew();
  expect(state).toBe('Waiting');
  await clock.advance(100_000);
  expect(await isClosed()).toBe(false);
  // It counts from the issue: this one is too old to hold anything.
  expect((await renew(first))[1]).toBe('Closed');
  expect(await isClosed()).toBe(true);
});

test('tickets that are shown in time keep it open, and their end is told', async () => {
  let [ticket] = await renew();
  for (let round = 0; round < 5; round++) {
    await clock.advance(4_000);
    const [next, state] = await renew(ticket);
    expect(state).toBe('Held');
    ticket = next;
  }
  expect(changed).toEqual([]);
  await clock.advance(10_000);
  expect(changed).toEqual([DEVICE]);
  expect(await isClosed()).toBe(true);
});

test('a closed one opens only for a ticket from after that, of a device that runs nothing itself', async () => {
  const [first] = await renew();
  const [second] = await renew(first);
  await clock.advance(10_000);
  expect((await renew(second, true))[1]).toBe('Closed');
  await clock.advance(1);
  const [later, state] = await renew();
  expect(state).toBe('Closed');
  const [last, still] = await renew(later);
  expect(still).toBe('Closed');
  expect((await renew(last, true))[1]).toBe('Held');
  expect(await isClosed()).toBe(false);
  expect(changed.length).toBeGreaterThan(1);
});

test('what nobody has issued proves nothing', async () => {
  expect((await renew('0123456789abcdef', true))[1]).toBe('Waiting');
  expect((await client.list(leases)).items).toEqual([]);
});

test('the next process knows when it closes, and that it has', async () => {
  const [first] = await renew();
  await clock.advance(3_000);
  await renew(first);
  fences = opened();
  await clock.advance(6_000);
  expect(await isClosed()).toBe(false);
  await clock.advance(1_000);
  expect(await isClosed()).toBe(true);
  fences = opened();
  expect(await isClosed()).toBe(true);
});

test('a Lease that cannot be read counts as lapsed', async () => {
  const [first] = await renew();
  await renew(first);
  const ref = { namespace: 'system', name: `tributary-fence-${DEVICE}` };
  const lease = await client.get(leases, ref);
  await client.replace(leases, { ...lease, spec: { ...lease.spec, renewTime: 'soon' } });
  fences = opened();
  expect(await isClosed()).toBe(true);
});

test.each<PeeringPhase>(['Pending', 'Denied'])(
  'a peer that was not let in renews nothing: %s',
  async (now) => {
    phase = now;
    const refusal = await renew().catch((error: unknown) => error);
    expect(hasCode(refusal, 'Forbidden')).toBe(true);
    expect((await client.list(leases)).items).toEqual([]);
  },
);

test('however many tickets are shown, a Lease is written each second at most', async () => {
  let [ticket] = await renew();
  for (let round = 0; round < 40; round++) {
    await clock.advance(100);
    const [next, state] = await renew(ticket);
    expect(state).toBe('Held');
    ticket = next;
  }
  expect(api.count(/^(POST|PUT) .*leases/u)).toBe(4);
});

test('a request that comes anew begins without the Lease of the one before', async () => {
  let [ticket] = await renew();
  await renew(ticket);
  const ref = { namespace: 'system', name: `tributary-fence-${DEVICE}` };
  await client.delete(leases, ref);
  await clock.advance(5_000);
  [ticket] = await renew();
  expect((await renew(ticket))[1]).toBe('Held');
  await fences.drop(DEVICE, false, signal);
  await clock.advance(60_000);
  expect(await isClosed()).toBe(false);
  [ticket] = await renew();
  expect((await renew(ticket))[1]).toBe('Held');
});

test('it belongs to the request, and goes where none is agreed on any more', async () => {
  const [first] = await renew();
  await renew(first);
  const [lease] = (await client.list(leases)).items;
  expect(lease?.metadata.ownerReferences).toMatchObject([{ kind: 'PeeringRequest', uid: 'request-uid' }]);
  terms = undefined;
  const refusal = await renew(first).catch((error: unknown) => error);
  expect(hasCode(refusal, 'Forbidden')).toBe(true);
  fences = opened();
  await fences.drop(DEVICE, true, signal);
  expect((await client.list(leases)).items).toEqual([]);
  expect(await isClosed()).toBe(false);
});
