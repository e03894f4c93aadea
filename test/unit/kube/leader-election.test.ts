import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { leases } from '../../../src/api/resources.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { LeaderElection, type LeaderElectionOptions } from '../../../src/kube/leader-election.ts';
import { LeaseKeeper } from '../../../src/kube/lease-keeper.ts';
import { LeaseRecord } from '../../../src/kube/lease.ts';
import { onLostHistory } from '../../../src/kube/server-news.ts';
import { createLogger, silentLogger } from '../../../src/lib/log.ts';
import type { FakeApi } from '../../support/fake-api/fake-api.ts';
import type { AnyObject } from '../../support/fake-api/storage.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { type Contender, Contest, DURATION_MS, REF } from './support/contest.ts';

let contest: Contest;
let server: FakeApi;
let clock: FakeClock;
let clients: HttpClient[];

beforeEach(() => {
  contest = new Contest();
  ({ server, clock, clients } = contest);
});

afterEach(async () => contest.end());

const contend = (identity: string, options: Partial<LeaderElectionOptions> = {}): Contender =>
  contest.contend(identity, options);

const pass = async (ms: number): Promise<void> => contest.pass(ms);
const passFinely = async (ms: number): Promise<void> => contest.pass(ms, 20);

const holder = (): unknown => contest.lease?.spec?.holderIdentity;

test('one of two leads, and keeps leading', async () => {
  const contenders = [contend('a'), contend('b')];
  await pass(60_000);
  const leading = contenders.filter(({ election }) => election.leading);
  expect(leading).toHaveLength(1);
  expect(contenders.filter(({ elected }) => elected())).toEqual(leading);
  expect(contenders.flatMap(({ lost }) => lost)).toEqual([]);
});

test('who stops gives way at once', async () => {
  const a = contend('a');
  await pass(1000);
  const b = contend('b');
  await pass(5000);
  expect([a.election.leading, b.election.leading]).toEqual([true, false]);
  await a.election.stop();
  expect(a.election.leading).toBe(false);
  await pass(5000);
  expect(b.election.leading).toBe(true);
  expect(holder()).toBe('b');
});

test('whoever leads knows when the leader before was last there', async () => {
  const a = contend('a');
  await pass(4000);
  expect(a.election.predecessorAt).toBeUndefined();
  const renewedAt = Date.parse(
    String(server.storage.get('leases.coordination.k8s.io', 'ns/leader')?.spec?.['renewTime']),
  );
  await a.election.stop();
  const b = contend('b');
  await pass(20_000);
  expect([b.election.leading, b.election.predecessorAt]).toEqual([true, renewedAt]);
});

test('who keeps the lease over a stop leads again when it comes back, and until then nobody does', async () => {
  const a = contend('node-a', { releaseOnStop: false });
  await pass(1000);
  const b = contend('node-b', { releaseOnStop: false });
  await a.election.stop();
  await pass(10_000);
  expect([holder(), b.elected()]).toEqual(['node-a', false]);
  const again = contend('node-a', { releaseOnStop: false });
  await pass(1000);
  expect([again.elected(), again.taken, b.taken]).toEqual([true, [], ['node-a']]);
  await pass(60_000);
  expect([again.election.leading, b.elected()]).toEqual([true, false]);
});

test('who must wait hears for whom, once for each', async () => {
  const a = contend('a');
  await pass(1000);
  const b = contend('b');
  await pass(40_000);
  expect(b.taken).toEqual(['a']);
  await a.election.stop();
  const c = contend('c');
  await pass(40_000);
  const [leader, other] = b.elected() ? [b, c] : [c, b];
  expect(other.taken.at(-1)).toBe(leader === b ? 'b' : 'c');
});

test('one that outlasts silence leads again when it is heard, unless another has taken the lease', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'info', now: () => 0, write: (line) => lines.push(line) });
  let regained = 0;
  const a = contend('a', { outlastsSilence: true, log, onRegained: () => regained++ });
  await pass(1000);
  const end = server.fault({ status: 503, times: 1e6 });
  await pass(30_000);
  expect([a.election.leading, a.lost]).toEqual([false, []]);
  end();
  await pass(5000);
  expect([a.election.leading, a.lost, regained]).toEqual([true, [], 1]);
  expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual([
    'leading',
    'the lease cannot be renewed, and nothing is written until it can',
    'leading again',
  ]);
  a.process.stop();
  contend('b');
  await pass(30_000);
  a.process.resume();
  await pass(5000);
  expect([a.election.leading, a.lost.length, a.taken]).toEqual([false, 1, ['b']]);
});

test('one that outlasts silence does not lead while its machine may have slept', async () => {
  const a = contend('a', { outlastsSilence: true });
  await pass(1000);
  clock.jump(600_000);
  expect(a.election.leading).toBe(false);
  await pass(5000);
  expect([a.election.leading, a.lost]).toEqual([true, []]);
  clock.jump(-86_400_000);
  await pass(60_000);
  expect([a.election.leading, a.lost]).toEqual([true, []]);
});

test('nobody waits for a holder that certainly lives no more', async () => {
  const a = contend('a');
  await pass(1000);
  a.process.stop();
  const b = contend('b', { isOver: (identity) => identity === 'a' });
  await pass(1000);
  expect([b.elected(), b.taken, holder()]).toEqual([true, [], 'b']);
  a.process.resume();
  await pass(5000);
  expect([a.election.leading, a.lost.length]).toEqual([false, 1]);
});

test('between two renewals it waits longer than between two attempts', async () => {
  contend('a', { renewMs: 5000, retryMs: 1000 });
  await pass(1000);
  const before = server.count(/^PUT/);
  await pass(20_000);
  expect(server.count(/^PUT/) - before).toBeLessThan(6);
});

test('a leader hears who has taken its lease before it hears that it has lost it', async () => {
  const order: string[] = [];
  const a = contend('a', { onTaken: (by) => order.push(by), onLost: () => order.push('lost') });
  await pass(1000);
  a.process.stop();
  contend('b');
  await pass(30_000);
  expect(holder()).toBe('b');
  a.process.resume();
  await pass(5000);
  // Its timer may say first that it could not renew; that it was taken is then seen by its next start.
  expect([['b', 'lost'], ['lost']]).toContainEqual(order);
});

test.each([2, 1])('with a lease of %s seconds another leads within them', async (seconds) => {
  // As src/agent/network.ts does.
  const durationMs = seconds * 650;
  const options = { durationMs, retryMs: durationMs / 8, random: () => 0.999 };
  const a = contend('a', options);
  await passFinely(200);
  const b = contend('b', options);
  await passFinely(3000);
  expect([a.election.leading, b.elected()]).toEqual([true, false]);
  a.process.stop();
  await passFinely(seconds * 1000);
  expect(b.elected()).toBe(true);
});

test('who dies is followed after the duration, not before', async () => {
  const a = contend('a');
  await pass(1000);
  const b = contend('b');
  await pass(5000);
  a.process.stop();
  await pass(DURATION_MS - 3000);
  expect(b.election.leading).toBe(false);
  await pass(8000);
  expect(b.election.leading).toBe(true);
  a.process.resume();
  await pass(1000);
});

test('a leader that was stopped and wakes may not write, even before any timer has told it', async () => {
  const a = contend('a');
  await pass(1000);
  const b = contend('b');
  a.election.check();
  a.process.stop();
  await pass(40_000);
  expect(b.election.leading).toBe(true);
  // The first instruction after waking, before timers.
  expect(() => a.election.check()).toThrow('not the leader');
  expect(a.election.leading).toBe(false);
  a.process.resume();
  await pass(5000);
  expect(a.lost).toHaveLength(1);
  expect(a.election.signal.aborted).toBe(true);
  expect(b.election.leading).toBe(true);
  expect(holder()).toBe('b');
});

test('there is no moment with two leaders, whatever is stopped', async () => {
  const contenders = [contend('a'), contend('b'), contend('c')];
  for (let round = 0; round < 8; round++) {
    const stopped = contenders.find(({ election }) => election.leading);
    stopped?.process.stop();
    for (let step = 0; step < 40; step++) {
      await pass(500);
      expect(contenders.filter(({ election }) => election.leading).length).toBeLessThanOrEqual(1);
    }
    stopped?.process.resume();
  }
});

test('a leader that cannot renew steps down before anybody may follow', async () => {
  const a = contend('a');
  await pass(1000);
  const recover = server.fault({ status: 500, times: Infinity });
  await pass(8000);
  expect(a.election.leading).toBe(true);
  await pass(4000);
  expect(a.election.leading).toBe(false);
  expect(a.lost).toEqual(['the lease could not be renewed in time']);
  recover();
});

test('a short outage costs no leader', async () => {
  const a = contend('a');
  await pass(1000);
  const recover = server.fault({ status: 503, times: Infinity });
  await pass(5000);
  recover();
  await pass(30_000);
  expect(a.election.leading).toBe(true);
});

test.each([
  ['is never answered', { stall: true }],
  ['arrives late all the same', { delayMs: 4_500 }],
])('one renewal that %s costs no leader', async (_what, fault) => {
  const a = contend('a');
  const b = contend('b');
  await pass(1000);
  expect([a.election.leading, b.election.leading]).toContain(true);
  const leader = a.election.leading ? a : b;
  server.fault({ match: ({ method }) => method === 'PUT', ...fault });
  for (let step = 0; step < 120; step++) {
    await clock.advance(500);
    expect([step, leader.election.leading]).toEqual([step, true]);
  }
  expect([a.lost, b.lost]).toEqual([[], []]);
});

test('a leader that had no answer reads the lease before it writes it again, since it may have been renewed', async () => {
  const a = contend('a');
  await pass(1000);
  const loseAnswer = ({ method, body }: { method: string; body: unknown }): boolean => {
    if (method !== 'PUT') return false;
    server.storage.update('leases.coordination.k8s.io', body as AnyObject);
    return true;
  };
  server.fault({ match: loseAnswer, stall: true });
  const before = server.log.length;
  await clock.until('renewed again', () => server.log.length >= before + 3);
  const methods = server.log.slice(before).map((line) => line.split(' ')[0]);
  expect(methods).toEqual(['PUT', 'GET', 'PUT']);
  await pass(30_000);
  expect([a.election.leading, a.lost]).toEqual([true, []]);
});

test('the wall clock may jump by days', async () => {
  const contenders = [contend('a'), contend('b')];
  await pass(5000);
  const before = holder();
  for (const days of [1, -2, 1]) {
    clock.jump(days * 86_400_000);
    await pass(10_000);
  }
  expect(holder()).toBe(before);
  expect(contenders.flatMap(({ lost }) => lost)).toEqual([]);
});

test('a write by an old version is refused: two that saw the same record cannot both take it', async () => {
  const client = server.client();
  clients.push(client);
  const record = (identity: string): LeaseRecord =>
    new LeaseRecord({ client, clock, ...REF, identity, durationMs: DURATION_MS });
  const [a, b] = [record('a'), record('b')];
  const { signal } = new AbortController();
  expect(await a.look(signal)).toEqual({ state: 'free' });
  expect(await b.look(signal)).toEqual({ state: 'free' });
  await a.write(signal);
  await expect(b.write(signal)).rejects.toMatchObject({ code: 'AlreadyExists' });
  await b.look(signal);
  await clock.advance(1);
  await a.write(signal);
  await expect(b.write(signal)).rejects.toMatchObject({ code: 'Conflict' });
  expect(await b.look(signal)).toEqual({ state: 'taken', holder: 'a' });
});

test('a term must end before the lease does', () => {
  const options = { ...REF, clock, log: silentLogger, identity: 'a', onLost: () => undefined };
  const client = server.client();
  clients.push(client);
  expect(
    () => new LeaderElection({ ...options, client, durationMs: 10_000, renewDeadlineMs: 10_000 }),
  ).toThrow('must be shorter');
});

test('a kept lease is renewed in its interval, re-created when deleted, and left to lapse while unhealthy', async () => {
  const client = server.client({ timeoutMs: 1e9, clock });
  clients.push(client);
  let healthy = true;
  const keeper = new LeaseKeeper({
    client,
    clock,
    log: silentLogger,
    namespace: 'kube-node-lease',
    name: 'node',
    identity: 'node',
    durationMs: 40_000,
    healthy: () => healthy,
    random: () => 0.5,
  });
  keeper.start(new AbortController().signal);
  const renewTime = (): unknown =>
    server.storage.get('leases.coordination.k8s.io', 'kube-node-lease/node')?.spec?.['renewTime'];
  await pass(35_000);
  expect(server.count(/^(POST|PUT)/)).toBe(4);
  await client.delete(leases, { namespace: 'kube-node-lease', name: 'node' });
  await pass(15_000);
  expect(renewTime()).toBeDefined();
  const turns = server.count(/^(POST|PUT)/);
  keeper.wake();
  await pass(500);
  expect(server.count(/^(POST|PUT)/)).toBe(turns + 1);
  healthy = false;
  const before = renewTime();
  await pass(60_000);
  expect(renewTime()).toBe(before);
  await keeper.stop();
});

test('a leader whose record is older than it wrote it tells that history is lost', async () => {
  const client = server.client();
  clients.push(client);
  const lost: string[] = [];
  onLostHistory(client, (reason) => lost.push(reason));
  const record = new LeaseRecord({ client, clock, ...REF, identity: 'a', durationMs: DURATION_MS });
  const { signal } = new AbortController();
  const during = async (work: Promise<unknown>): Promise<unknown> => clock.during('the Lease', work);
  await during(record.write(signal));
  const goBack = server.storage.snapshot();
  await clock.advance(1_000);
  await during(record.write(signal));
  await during(record.look(signal));
  expect(lost).toEqual([]);
  goBack();
  await expect(during(record.write(signal))).rejects.toMatchObject({ code: 'Conflict' });
  await during(record.look(signal));
  expect(lost).toEqual(['Lease leader is older than it was written']);
  await during(record.write(signal));
  await during(record.look(signal));
  expect(lost).toHaveLength(1);
});
