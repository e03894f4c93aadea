import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ANNOTATION_RESULT_LOGS, HOME_LEASE, LABEL_HOME_UID, LABEL_PEER } from '../../../../src/api/names.ts';
import { leases, namespaces, pods, secrets } from '../../../../src/api/resources.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { ignoring, TributaryError } from '../../../../src/lib/errors.ts';
import type { Component } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { type JournalEntry, entryOf } from '../../../../src/hosting/guardian/journal-entry.ts';
import { Guardian } from '../../../../src/hosting/guardian/guardian.ts';
import { PodWrites } from '../../../../src/hosting/guardian/pod-writes.ts';
import { ANNOTATION_KEEP_FOR } from '../../../../src/hosting/annotations.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { podOf } from './support.ts';

/** A guardian before an API server that fails, restarts of its own, and clocks that jump. */

const NAMESPACE = 'rome-shop';
const KEEP_FOR_SECONDS = 600;

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let started: Component[] = [];
let told: string[] = [];

beforeEach(async () => {
  told = [];
  clock = new FakeClock();
  api = new FakeApi({ clock });
  client = api.client();
  await client.create(namespaces, {
    metadata: {
      name: NAMESPACE,
      labels: { [LABEL_PEER]: 'rome' },
      annotations: { [ANNOTATION_KEEP_FOR]: String(KEEP_FOR_SECONDS) },
    },
  });
  api.seed(leases, {
    metadata: { namespace: NAMESPACE, name: HOME_LEASE },
    spec: { leaseDurationSeconds: 10, renewTime: 'once' },
  });
});

afterEach(async () => {
  await stop();
  await client.close();
  await api.stop();
});

const MAX_STEPS = 2_000;

async function guard(more: { heldBytes?: number } = {}): Promise<void> {
  const guardian = new Guardian({
    ...more,
    client,
    caches: new Caches({ client, clock, log: silentLogger, random: () => 0.5 }),
    clock,
    log: silentLogger,
    events: { event: (_about, _type, reason, message) => told.push(`${reason}: ${message}`) },
    random: () => 0.5,
  });
  for (const component of guardian.components()) {
    await component.start?.(new AbortController().signal);
    started.push(component);
  }
}

async function stop(): Promise<void> {
  const stopping = Promise.all(started.toReversed().map(async (component) => component.stop?.()));
  started = [];
  await stopping;
}

/**
 * While time passes, in steps that are short beside any patience. A journal is packed by another thread, for which the
 * clock does not wait: so each step rests longer than the one before, or a home would be gone before its journal is there.
 */
const until = async (what: string, condition: () => Promise<boolean>): Promise<void> => {
  for (let step = 0; !(await condition()); step++) {
    if (step === MAX_STEPS) throw new Error(`not within ${MAX_STEPS} steps: ${what}`);
    await clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, step / 50));
  }
};

const pod = (name: string, more: { large?: string; phase?: string } = {}): unknown =>
  api.seed(pods, {
    metadata: {
      namespace: NAMESPACE,
      name,
      labels: { [LABEL_HOME_UID]: `home-${name}` },
      annotations: { 'tributary.dev/when-lost': 'Replace', ...(more.large && { large: more.large }) },
    },
    spec: { containers: [{ name: 'app', image: 'app:1' }] },
    status: { phase: more.phase ?? 'Running' },
  });
const remove = async (name: string): Promise<unknown> =>
  client.delete(pods, { namespace: NAMESPACE, name }, { gracePeriodSeconds: 0 });
const isThere = async (name: string): Promise<boolean> =>
  (await client.get(pods, { namespace: NAMESPACE, name }).catch(ignoring('NotFound'))) !== undefined;
const renew = async (renewTime: string): Promise<unknown> =>
  client.patch(
    leases,
    { namespace: NAMESPACE, name: HOME_LEASE },
    { type: 'merge', body: { spec: { renewTime } } },
  );
/** UIDs. */
const journals = async (): Promise<string[]> =>
  (await client.list(secrets, { namespace: 'tributary-peers' })).items.map(({ metadata }) => metadata.uid);
const isJournalled = async (): Promise<void> => until('a journal', async () => (await journals()).length > 0);

test('what is lost while no guardian runs is made anew by the next one', async () => {
  pod('web');
  await guard();
  await isJournalled();
  await stop();
  await remove('web');
  await guard();
  await until('web is there again', async () => isThere('web'));
});

test('a home that came and went while no guardian ran misses nothing that it removed itself', async () => {
  pod('web');
  pod('stays');
  await guard();
  await isJournalled();
  const [first] = await journals();
  await stop();
  await renew('again');
  await remove('web');
  await guard();
  await until('web, or a journal of this absence', async () => {
    const [now] = await journals();
    return (await isThere('web')) || (now !== undefined && now !== first);
  });
  await clock.advance(30_000);
  expect(await isThere('web')).toBe(false);
  await remove('stays');
  await until('what is lost from now on is there again', async () => isThere('stays'));
});

test('how long an earlier absence was, when no guardian saw its end, is not held against this one', async () => {
  pod('web');
  await guard();
  await isJournalled();
  const [first] = await journals();
  await stop();
  await clock.advance(KEEP_FOR_SECONDS * 1000);
  await renew('again');
  await guard();
  await until('its end, or a journal of this absence', async () => {
    const [now] = await journals();
    return !(await isThere('web')) || (now !== undefined && now !== first);
  });
  await clock.advance(30_000);
  expect(await isThere('web')).toBe(true);
});

test('a wall clock that jumps while a home is away ends none of its pods', async () => {
  pod('web');
  await guard();
  await isJournalled();
  clock.jump(86_400_000);
  const news = { type: 'merge', body: { metadata: { labels: { seen: 'yes' } } } } as const;
  await client.patch(pods, { namespace: NAMESPACE, name: 'web' }, news);
  await clock.advance(30_000);
  expect(await isThere('web')).toBe(true);
  await clock.advance(KEEP_FOR_SECONDS * 1000);
  await until('its time is over', async () => !(await isThere('web')));
});

test('a pod that may not be deleted keeps no other of a home that is gone', async () => {
  for (const name of ['a', 'b', 'c']) pod(name);
  api.fault({
    match: ({ method, path }) => method === 'DELETE' && path.endsWith('/a'),
    times: Infinity,
    status: 403,
  });
  await guard();
  await isJournalled();
  await clock.advance(KEEP_FOR_SECONDS * 1000);
  await until('the others are gone', async () => !(await isThere('b')) && !(await isThere('c')));
  expect(await isThere('a')).toBe(true);
  // It says since when.
  expect(await journals()).toHaveLength(1);
});

test('a result is said of the pod that is made to bear it, also when the home comes back in between', async () => {
  let isAway = true;
  const api: string[] = [];
  const fake = {
    get: async () => Promise.reject(new TributaryError('NotFound', 'gone')),
    create: async () => {
      isAway = false;
      api.push('create');
      return { metadata: { name: 'web', namespace: NAMESPACE, uid: 'u' } };
    },
    patch: async (_type: unknown, _ref: unknown, { body }: { body: unknown }) => {
      api.push(JSON.stringify(body));
    },
  } as unknown as KubeClient;
  const writes = new PodWrites({
    client: fake,
    clock,
    namespace: NAMESPACE,
    mayWrite: () => isAway,
    logsOf: () => undefined,
  });
  const entry = entryOf(podOf({ status: { phase: 'Succeeded' } }), undefined, true) as JournalEntry;
  await writes.carryOut('PutBack', entry, new AbortController().signal);
  expect(api).toEqual(['create', '{"metadata":{"uid":"u"},"status":{"phase":"Succeeded"}}']);
});

test.each([
  [{}, true],
  [{ large: 'x'.repeat(256 * 1024 - 10) }, false],
])('a result bears the log that was read, if there is room for it', async (annotations, hasRoom) => {
  const made: Pod[] = [];
  const fake = {
    get: async () => Promise.reject(new TributaryError('NotFound', 'gone')),
    create: async (_type: unknown, draft: Pod) => {
      made.push(draft);
      return { metadata: { name: 'web', namespace: NAMESPACE, uid: 'u' } };
    },
    patch: async () => undefined,
  } as unknown as KubeClient;
  const options = { client: fake, clock, namespace: NAMESPACE, mayWrite: () => true };
  const writes = new PodWrites({ ...options, logsOf: ({ homeUid }) => `log of ${homeUid}` });
  const pod = podOf({ annotations, status: { phase: 'Succeeded' } });
  const entry = entryOf(pod, undefined, true) as JournalEntry;
  await writes.carryOut('PutBack', entry, new AbortController().signal);
  const logs = made[0]?.metadata.annotations?.[ANNOTATION_RESULT_LOGS];
  expect(logs).toBe(hasRoom ? 'log of home-web' : undefined);
});

test('a guardian that is stopped while it asks whether a home is away watches nothing afterwards', async () => {
  pod('web');
  api.fault({ match: ({ path }) => path.includes('fieldSelector=metadata.name'), delayMs: 5_000 });
  await guard();
  await until('it asks', async () => Promise.resolve(api.count(/leases.*fieldSelector=metadata.name/) > 0));
  const watching = started.pop();
  await watching?.stop?.();
  await clock.advance(30_000);
  expect(api.count(/\/pods/)).toBe(0);
});

test('a pod at which the API server fails keeps no other from being made anew', async () => {
  for (const name of ['a', 'b', 'c']) pod(name);
  await guard();
  await isJournalled();
  const recover = api.fault({
    match: ({ method, path }) => method === 'GET' && path.endsWith('/a'),
    times: Infinity,
    status: 500,
  });
  for (const name of ['a', 'b', 'c']) await remove(name);
  await until('the others are there again', async () => (await isThere('b')) && isThere('c'));
  recover();
  await until('that one, too', async () => isThere('a'));
});

const HELD_BYTES = 1_000_000;
const LARGE = 'x'.repeat(90_000);
const isSaid = (): boolean => told.some((it) => /^PodNotKept: .* in rome-shop are not looked after/.test(it));
const list = async (): Promise<string[]> =>
  (await client.list(pods, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name);

test('of a peer with more pods than are kept, those within the budget are kept as ever, and the rest is said', async () => {
  for (let at = 0; at < 25; at++) pod(`old-${at}`, { large: LARGE, phase: 'Succeeded' });
  for (const name of ['a', 'b', 'z']) pod(name, { large: LARGE });
  await guard({ heldBytes: HELD_BYTES });
  await isJournalled();
  await until('it is said', async () => isSaid());
  for (const name of await list()) await remove(name);
  await until('what ran is there again', async () => {
    const names = await list();
    return ['a', 'b', 'z'].every((name) => names.includes(name));
  });
  await clock.advance(60_000);
  // Room for ten; results are put back as far as they were kept.
  expect((await list()).length).toBeLessThanOrEqual(11);
});

test("pods that are not kept end with their peer's time", async () => {
  for (let at = 0; at < 25; at++) pod(`old-${at}`, { large: LARGE });
  await guard({ heldBytes: HELD_BYTES });
  await isJournalled();
  await clock.advance(KEEP_FOR_SECONDS * 1000);
  await until('all are gone', async () => (await list()).length === 0);
});
