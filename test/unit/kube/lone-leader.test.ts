import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { ANNOTATION_CANDIDATE } from '../../../src/api/names.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type { LeaderElectionOptions } from '../../../src/kube/leader-election.ts';
import { nextRenewal, type RivalFacts } from '../../../src/kube/lone-leader.ts';
import { LeaseRecord } from '../../../src/kube/lease.ts';
import { TributaryError } from '../../../src/lib/errors.ts';
import { type Contender, Contest, DURATION_MS, REF } from './support/contest.ts';

const LONE = { durationMs: 30_000, renewDeadlineMs: 15_000, renewMs: 9_000 };
const MINUTE_MS = 60_000;

let contest: Contest;

beforeEach(() => {
  contest = new Contest();
});

afterEach(async () => contest.end());

const contend = (identity: string, options: Partial<LeaderElectionOptions> = {}): Contender =>
  contest.contend(identity, { lone: LONE, ...options });

const seconds = (): unknown => contest.lease?.spec?.leaseDurationSeconds;
const candidate = (): unknown => contest.lease?.metadata.annotations?.[ANNOTATION_CANDIDATE];
const writes = (): number => contest.server.count(/^PUT/);

/** A leader for whom nobody waits. */
async function alone(options: Partial<LeaderElectionOptions> = {}): Promise<Contender> {
  const a = contend('a', options);
  await contest.pass(DURATION_MS + 5000);
  expect([seconds(), candidate()]).toEqual([30, undefined]);
  return a;
}

test('a leader for whom nobody waits renews half as often, and its Lease lasts longer', async () => {
  await alone();
  const before = writes();
  await contest.pass(MINUTE_MS);
  expect(writes() - before).toBeGreaterThan(5);
  expect(writes() - before).toBeLessThan(9);
});

test('until candidates had time to be heard, all is as usual', async () => {
  contend('a');
  await contest.pass(DURATION_MS - 1000);
  expect(seconds()).toBe(15);
});

test('whoever comes is heard with the next renewal, and then follows as soon as ever', async () => {
  const a = await alone();
  const b = contend('b');
  await contest.pass(12_000);
  expect([seconds(), candidate(), a.election.leading]).toEqual([15, 'b', true]);
  await contest.pass(2 * MINUTE_MS);
  expect(seconds()).toBe(15);
  a.process.stop();
  await contest.pass(DURATION_MS + 3000);
  expect(b.elected()).toBe(true);
  a.process.resume();
  await contest.pass(5000);
  expect([a.election.leading, a.lost.length]).toEqual([false, 1]);
});

test.each([{}, { lone: LONE }])(
  'whoever comes to one that is dead waits for as long as its Lease says',
  async (of) => {
    const a = await alone();
    a.process.stop();
    const b = contend('b', of);
    await contest.pass(LONE.durationMs - 3000);
    expect(b.elected()).toBe(false);
    await contest.pass(6000);
    expect(b.elected()).toBe(true);
  },
);

test('what others write beside the spec is no sign of the holder', async () => {
  const { clock, server } = contest;
  const client = server.client();
  contest.clients.push(client);
  const { signal } = new AbortController();
  const [a, b, c] = ['a', 'b', 'c'].map(
    (identity) => new LeaseRecord({ client, clock, ...REF, identity, durationMs: DURATION_MS }),
  ) as [LeaseRecord, LeaseRecord, LeaseRecord];
  await a.write(signal);
  for (const record of [b, c]) expect(await record.look(signal)).toEqual({ state: 'taken', holder: 'a' });
  await clock.advance(10_000);
  await c.standBy(signal);
  expect(await b.look(signal)).toEqual({ state: 'taken', holder: 'a' });
  await clock.advance(5_000);
  for (const record of [b, c]) expect(await record.look(signal)).toEqual({ state: 'free' });
});

test('one that waits is asked now and then, and forgotten when it has gone', async () => {
  contend('a');
  await contest.pass(1000);
  const b = contend('b');
  await contest.pass(3000);
  const before = writes();
  for (let passed = 0; passed < 6 * MINUTE_MS; passed += 5000) {
    await contest.pass(5000);
    expect([seconds(), contest.lease?.spec?.holderIdentity]).toEqual([15, 'a']);
  }
  expect(candidate()).toBe('b');
  expect(writes() - before).toBeLessThan(110);
  await b.election.stop();
  await contest.pass(6 * MINUTE_MS);
  expect([seconds(), candidate()]).toEqual([30, undefined]);
});

test('one that starts again under the same identity leads at once', async () => {
  const a = await alone();
  a.process.stop();
  const again = contend('a');
  await contest.pass(1000);
  expect([again.elected(), seconds()]).toEqual([true, 15]);
});

test('one that stops in order gives up the Lease at once', async () => {
  const a = await alone();
  const b = contend('b');
  await a.election.stop();
  await contest.pass(3000);
  expect(b.elected()).toBe(true);
});

test('one that keeps the Lease over a stop leaves it for the usual time only', async () => {
  const a = await alone({ releaseOnStop: false });
  await a.election.stop();
  expect([seconds(), contest.lease?.spec?.holderIdentity]).toEqual([15, 'a']);
  const b = contend('b');
  await contest.pass(DURATION_MS + 3000);
  expect(b.elected()).toBe(true);
});

test('one that cannot renew goes on for the longer term and no longer', async () => {
  const a = await alone();
  const recover = contest.server.fault({ status: 500, times: Infinity });
  await contest.pass(5000);
  expect(a.election.leading).toBe(true);
  await contest.pass(LONE.renewDeadlineMs - 5000);
  expect([a.election.leading, a.lost]).toEqual([false, ['the lease could not be renewed in time']]);
  recover();
});

test('a holder of an earlier version keeps the Lease, though a candidate writes to it', async () => {
  const a = contest.contend('a');
  await contest.pass(1000);
  contend('b');
  await contest.pass(MINUTE_MS);
  expect([a.election.leading, a.lost, candidate(), seconds()]).toEqual([true, [], 'b', 15]);
});

test('when the answer to the renewal that shortens a Lease is lost, the term is as short', async () => {
  const lone = { durationMs: 60_000, renewDeadlineMs: 50_000, renewMs: 9_000 };
  let isLosing = false;
  const real = contest.server.client({ timeoutMs: 1e9 });
  contest.clients.push(real);
  const client = {
    get: real.get.bind(real),
    create: real.create.bind(real),
    replace: async (...given: Parameters<KubeClient['replace']>) => {
      const lease = await real.replace(...given);
      if (isLosing) throw new TributaryError('Unreachable', 'the answer was lost');
      return lease;
    },
  } as unknown as KubeClient;
  const a = contend('a', { client, lone });
  await contest.pass(DURATION_MS + 5000);
  expect(seconds()).toBe(60);
  const b = contend('b');
  isLosing = true;
  for (let passed = 0; passed < MINUTE_MS; passed += 500) {
    // Until the short Lease is there; from then on nothing of that process arrives.
    if (seconds() === 15)
      client.replace = async () => Promise.reject(new TributaryError('Unreachable', 'away'));
    await contest.pass(500);
    expect([a, b].filter(({ election }) => election.leading).length).toBeLessThanOrEqual(1);
  }
  expect(b.elected()).toBe(true);
});

test('there is no moment with two leaders, whatever is stopped and whoever is alone', async () => {
  const contenders = [contend('a'), contend('b')];
  for (let round = 0; round < 6; round++) {
    const stopped = contenders.find(({ election }) => election.leading);
    stopped?.process.stop();
    for (let step = 0; step < 70; step++) {
      await contest.pass(500);
      expect(contenders.filter(({ election }) => election.leading).length).toBeLessThanOrEqual(1);
    }
    stopped?.process.resume();
  }
});

const FACTS: RivalFacts = { nowMs: 400_000, askedAtMs: 390_000, answerMs: 15_000, hasCandidate: false };

test.each([
  ['ask', { askedAtMs: undefined }],
  ['usual', {}],
  ['lone', { askedAtMs: 380_000 }],
  ['usual', { hasCandidate: true, askedAtMs: 120_000 }],
  ['ask', { hasCandidate: true, askedAtMs: 90_000 }],
] as const)('the next renewal is %s with %j', (expected, facts) => {
  expect(nextRenewal({ ...FACTS, ...facts })).toBe(expected);
});
