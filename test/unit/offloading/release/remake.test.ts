import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pods, secrets } from '../../../../src/api/resources.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { NamespacePods } from '../../../../src/offloading/pods.ts';
import { journalOf, journalSecret } from '../../../../src/offloading/release/journal.ts';
import { Remake } from '../../../../src/offloading/release/remake.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** A pod that was released before it started, and has to come home by now whether it has started or not. */

const SYSTEM = 'tributary-system';
const from = 'milan';
const { signal } = new AbortController();

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let remake: Remake;
let lifecycle: Lifecycle;
let pod: Pod;
let told: string[];

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock });
  client = api.client();
  told = [];
  const events = { event: (_subject: unknown, _type: string, reason: string) => void told.push(reason) };
  remake = new Remake({ client, clock, log: silentLogger, events, systemNamespace: SYSTEM });
  lifecycle = new Lifecycle(remake.components(), { clock, log: silentLogger, stopDeadlineMs: 10_000 });
  await clock.during('started', lifecycle.start(signal));
  const seed = {
    metadata: { namespace: 'shop', name: 'web' },
    spec: { nodeName: 'milan', containers: [] },
    status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
  };
  pod = api.seed(pods, seed) as unknown as Pod;
});

afterEach(async () => {
  await clock.during('stopped', lifecycle.stop());
  await client.close();
  await api.stop();
});

/** The journal is dropped as soon as it is seen: the pod has started. */
const store = (unlessStarted: boolean): unknown =>
  api.seed(secrets, journalSecret(journalOf(pod, { from, unlessStarted }), SYSTEM));
const journals = async (): Promise<number> => (await client.list(secrets)).items.length;

test('a pod is not ended because of a journal that lets it go, and is made anew once that is away', async () => {
  const all = new NamespacePods({
    client,
    clock,
    events: { event: (_s, _t, it) => void told.push(it) },
    remake,
  });
  store(true);
  const end = async (): Promise<boolean> =>
    (await all.endWithPeering(pod, { from, budgetsUntil: clock.now(), signal })).mayEnd;
  expect(await end()).toBe(false);
  expect(told).toEqual([]);
  await clock.until('dropped', async () => (await journals()) === 0);
  await clock.until('stored', end);
  await clock.until(
    'ended',
    async () => (await client.get(pods, pod.metadata)).metadata.deletionTimestamp !== undefined,
  );
  api.storage.remove('pods', 'shop/web');
  await clock.until('made anew', () => api.storage.get('pods', 'shop/web') !== undefined);
});

test('a journal that says as much, or more, does', async () => {
  const begin = async (unlessStarted: boolean): Promise<boolean> =>
    remake.begin(pod, { from, unlessStarted, signal });
  store(false);
  await clock.until('seen', () => remake.count('shop') === 1);
  expect([await begin(false), await begin(true)]).toEqual([false, false]);
  expect(api.count(/^POST .*secrets/u)).toBe(0);
});
