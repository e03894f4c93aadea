import { expect, test } from '@jest/globals';

import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { ForeignContact } from '../../../../src/provider/node/contact.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

interface Parts {
  clock: FakeClock;
  api: FakeApi;
  foreign: HttpClient;
  contact: ForeignContact;
  /** What was told: ok, away, reason. */
  changes: string[];
  close: () => Promise<void>;
}

function setUp({ tenantNamespace, grace }: { tenantNamespace?: string; grace?: number } = {}): Parts {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const api = new FakeApi({ clock });
  const foreign = api.client();
  const contact = new ForeignContact({
    foreign,
    problem: () => undefined,
    credentialEnds: async () => Promise.resolve(Date.UTC(2026, 0, 1, 1)),
    tenantNamespace: () => tenantNamespace,
    awayAfterSeconds: () => grace,
    clock,
    log: silentLogger,
  });
  const changes: string[] = [];
  contact.onChange(() => {
    const { ok, away, reason } = contact.state;
    changes.push(`${ok} ${away} ${reason}`);
  });
  const close = async (): Promise<void> => {
    await contact.stop();
    await foreign.close();
    await api.stop();
  };
  return { clock, api, foreign, contact, changes, close };
}

/** `grace` in seconds. */
async function inContact(grace: number): Promise<Parts> {
  const parts = setUp({ tenantNamespace: 'shop-t', grace });
  parts.api.fault({
    match: ({ path }) => path === '/version',
    times: 999,
    body: '{"gitVersion": "v1.36.0"}',
  });
  await parts.contact.start();
  await parts.clock.until('it answers', () => parts.contact.state.ok);
  parts.changes.length = 0;
  return parts;
}

test('a foreign API server that does not answer: what that means, until when, and the cause at the end', async () => {
  const { clock, api, foreign, contact } = setUp();
  await api.stop();
  await contact.start();
  await clock.until('it is said', () => contact.state.reason === 'ForeignClusterUnreachable');
  expect(contact.state.message).toMatch(
    /^nothing answers on the way to the foreign API server: .* Pods over there run on, and the credential holds until 2026-01-01T01:00:00Z\. Cause: ./u,
  );
  await contact.stop();
  await foreign.close();
});

test.each([
  ['rights that are missing', 403, 'NotAuthorized'],
  ['a server that is not well', 503, 'ForeignClusterUnhealthy'],
] as const)('%s: forgiven for the time of grace, and then told', async (_what, status, reason) => {
  const { clock, api, contact, close } = await inContact(5);
  const since = clock.monotonic();
  api.fault({ match: ({ path }) => path.endsWith('/pods'), times: 99, status });
  await clock.until('it is told', () => contact.state.reason === reason);
  expect(clock.monotonic() - since).toBeGreaterThanOrEqual(5_000);
  expect(contact.state).toMatchObject({ ok: false, away: true });
  await close();
});

test('a credential that is refused is told at once', async () => {
  const { clock, api, contact, close } = await inContact(20);
  let refused = 0;
  api.fault({ match: ({ path }) => path.endsWith('/pods') && ++refused > 0, times: 9, status: 401 });
  contact.probe();
  await clock.until('it is told', () => contact.state.reason === 'CredentialsRejected');
  expect(refused).toBe(1);
  expect(contact.state.away).toBe(true);
  await close();
});

test.each([5, 20, 60])(
  'a server that hangs, or a network that swallows everything: away after %i s, and within 5 s more',
  async (grace) => {
    const { clock, api, contact, changes, close } = await inContact(grace);
    // Right after an answer, which is the worst moment.
    const since = clock.monotonic();
    const end = api.fault({ times: 999, stall: true });
    await clock.until('away', () => contact.state.away, 120_000);
    const afterMs = clock.monotonic() - since;
    expect(afterMs).toBeGreaterThanOrEqual(grace * 1000);
    expect(afterMs).toBeLessThan(grace * 1000 + 4_500);
    expect(changes).toEqual(['false true ForeignClusterUnreachable']);
    await clock.advance(60_000);
    expect(changes).toHaveLength(1);
    end();
    await clock.until('back', () => contact.state.ok);
    expect(changes).toEqual(['false true ForeignClusterUnreachable', 'true false AsExpected']);
    await close();
  },
);

test('silence that begins right after the answer to another request is told as soon', async () => {
  const { clock, api, contact, close } = await inContact(20);
  // Just before the next probe, which is put off.
  await clock.advance(3_300);
  contact.answered();
  const since = clock.monotonic();
  const end = api.fault({ times: 999, stall: true });
  await clock.until('away', () => contact.state.away, 120_000);
  const afterMs = clock.monotonic() - since;
  expect(afterMs).toBeGreaterThanOrEqual(20_000);
  expect(afterMs).toBeLessThan(24_500);
  end();
  await close();
});

test('answers to other requests save probes, but never more than one in a row', async () => {
  const { clock, api, contact, close } = await inContact(20);
  let count = 0;
  const probes = (): number => count;
  api.fault({ match: ({ path }) => path.endsWith('/pods') && ++count < 0 });
  const during = async (everyMs: number): Promise<number> => {
    const before = probes();
    for (let ms = 0; ms < 60_000; ms += everyMs) {
      await clock.advance(everyMs);
      contact.answered();
    }
    return probes() - before;
  };
  expect(await during(60_000)).toBeLessThanOrEqual(19);
  // As Leases are renewed, and their answers take their time: two probes between two answers, and one before the first.
  const momentMs = 9_600;
  await clock.advance(momentMs - (clock.monotonic() % momentMs) + 150);
  expect(await during(momentMs)).toBeLessThanOrEqual(15);
  expect(await during(1_000)).toBeGreaterThanOrEqual(9);
  // Whoever asks for one gets it.
  contact.answered();
  const before = probes();
  contact.probe();
  await clock.advance(100);
  expect(probes()).toBe(before + 1);
  await close();
});

test('gaps shorter than the time of grace change nothing, however many there are', async () => {
  const { clock, api, changes, close } = await inContact(20);
  for (const gapMs of [1_000, 10_000, 19_000, 19_000]) {
    const end = api.fault({ times: 999, stall: true });
    await clock.advance(gapMs);
    end();
    // A probe on which nothing came back is still waited for.
    await clock.advance(7_000);
  }
  expect(changes).toEqual([]);
  await close();
});

test('a clock that is set, and a process that was stopped, are no absence of the other side', async () => {
  const { clock, api, changes, close } = await inContact(20);
  clock.jump(86_400_000);
  await clock.advance(10_000);
  // In the pause between two probes, and while one is on its way and others have failed.
  clock.stop(60_000);
  await clock.advance(10_000);
  const end = api.fault({ times: 999, stall: true });
  await clock.advance(12_000);
  clock.stop(60_000);
  await clock.advance(15_000);
  expect(changes).toEqual([]);
  // It counts on, from when it woke.
  await clock.until('away', () => changes.length > 0, 30_000);
  end();
  await close();
});

test('an agent that starts while nothing answers says so, and counts it as away only after the time of grace', async () => {
  const { clock, api, contact, close } = setUp({ tenantNamespace: 'shop-t' });
  api.fault({ times: 999, stall: true });
  await contact.start();
  await clock.until('it is said', () => contact.state.reason === 'ForeignClusterUnreachable');
  expect(contact.state.away).toBe(false);
  await clock.until('away', () => contact.state.away, 60_000);
  expect(clock.monotonic()).toBeGreaterThanOrEqual(20_000);
  await close();
});
