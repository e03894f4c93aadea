import { expect, test } from '@jest/globals';
import { KeyedQueue, type QueueOptions } from '../../../src/lib/queue.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { growth } from '../../support/growth.ts';

function make(options: Partial<QueueOptions> = {}): { queue: KeyedQueue; clock: FakeClock } {
  const clock = new FakeClock();
  return { clock, queue: new KeyedQueue({ clock, random: () => 0.5, ...options }) };
}

/** Takes what can be taken now, and is done with it at once. */
async function drain(queue: KeyedQueue): Promise<string[]> {
  const keys: string[] = [];
  while (queue.depth > 0) {
    const key = await queue.take();
    if (key === undefined) break;
    keys.push(key);
    queue.done(key);
  }
  return keys;
}

test('first come, first served, each key once', async () => {
  const { queue } = make();
  for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
  expect(queue.depth).toBe(3);
  expect(await drain(queue)).toEqual(['a', 'b', 'c']);
});

test('a key that runs is not handed out again; added meanwhile, it comes back after done', async () => {
  const { queue } = make();
  queue.add('a');
  expect(await queue.take()).toBe('a');
  queue.add('a');
  queue.add('a');
  expect(queue.depth).toBe(0);
  queue.add('b');
  expect(await queue.take()).toBe('b');
  queue.done('a');
  expect(queue.depth).toBe(1);
  expect(await queue.take()).toBe('a');
  queue.done('a');
  queue.done('b');
  expect(queue.depth).toBe(0);
  expect(queue.running).toBe(0);
});

test('who waits for a key gets the next one, in the order of waiting', async () => {
  const { queue } = make();
  const takers = [queue.take(), queue.take()];
  queue.add('a');
  queue.add('b');
  expect(await Promise.all(takers)).toEqual(['a', 'b']);
});

test('the slow lane gives way, but never starves', async () => {
  const { queue } = make();
  for (let index = 0; index < 3; index++) queue.addSlow(`slow-${index}`);
  for (let index = 0; index < 20; index++) queue.add(`fast-${index}`);
  const order = await drain(queue);
  expect(order).toHaveLength(23);
  expect(order.slice(0, 8).every((key) => key.startsWith('fast'))).toBe(true);
  expect(order.slice(0, 18).filter((key) => key.startsWith('slow'))).toEqual(['slow-0', 'slow-1']);
});

test('a change moves its key from the slow lane to the fast one', async () => {
  const { queue } = make();
  for (const key of ['a', 'b', 'c']) queue.addSlow(key);
  queue.add('c');
  queue.addSlow('c');
  expect(queue.depth).toBe(3);
  expect(await drain(queue)).toEqual(['c', 'a', 'b']);
});

test('a resync while the key runs comes back slowly, a change quickly', async () => {
  const { queue } = make();
  queue.add('a');
  await queue.take();
  queue.addSlow('a');
  queue.add('a');
  queue.addSlow('b');
  queue.done('a');
  expect(await drain(queue)).toEqual(['a', 'b']);
});

test('addAfter waits, and keeps the earliest of several times', async () => {
  const { queue, clock } = make();
  queue.addAfter('a', 1000);
  queue.addAfter('a', 500);
  queue.addAfter('a', 2000);
  expect(queue.delayed).toBe(1);
  await clock.advance(499);
  expect(queue.depth).toBe(0);
  await clock.advance(1);
  expect(queue.depth).toBe(1);
  await clock.advance(5000);
  expect(await drain(queue)).toEqual(['a']);
});

test('failures of a key double its delay up to the cap; forget starts anew', () => {
  const { queue } = make({ backoffBaseMs: 100, backoffCapMs: 1000 });
  const delays = Array.from({ length: 6 }, () => queue.addRateLimited('a'));
  expect(delays).toEqual([50, 100, 200, 400, 500, 500]);
  expect(queue.addRateLimited('b')).toBe(50);
  queue.forget('a');
  expect(queue.addRateLimited('a')).toBe(50);
});

test('many failures do not overflow', () => {
  const { queue } = make();
  for (let failure = 0; failure < 5000; failure++) queue.addRateLimited('a');
  expect(queue.addRateLimited('a')).toBe(30_000);
});

test('the age is that of the longest-waiting key', async () => {
  const { queue, clock } = make();
  expect(queue.oldestAgeMs).toBe(0);
  queue.addSlow('a');
  await clock.advance(100);
  queue.add('b');
  await clock.advance(50);
  expect(queue.oldestAgeMs).toBe(150);
  await drain(queue);
  expect(queue.oldestAgeMs).toBe(0);
});

test('close drops what waits, wakes who waits, and resolves when what runs is done', async () => {
  const { queue, clock } = make();
  queue.add('running');
  await queue.take();
  const waiting = queue.take();
  queue.add('running');
  queue.addAfter('later', 10);
  let closed = false;
  const closing = queue.close().then(() => (closed = true));
  expect(await waiting).toBeUndefined();
  await clock.advance(100);
  expect(closed).toBe(false);
  queue.done('running');
  await closing;
  queue.add('too late');
  expect(queue.depth).toBe(0);
  expect(await queue.take()).toBeUndefined();
  expect(clock.pending).toBe(0);
});

test('many keys take no more than linear time', async () => {
  const { unitCost, most } = await growth(500, async (count) => {
    const { queue } = make();
    for (let index = 0; index < count; index++) queue.addSlow(String(index));
    for (let index = 0; index < count; index += 2) queue.add(String(index));
    expect(await drain(queue)).toHaveLength(count);
  });
  expect(unitCost).toBeLessThan(most);
});

const inGroups = (workers: number): KeyedQueue =>
  make({ share: { workers, groupOf: (key) => key.split('/')[0] ?? '' } }).queue;

/** As workers do, of which each waits for its next key: what they have got, in order. */
async function work(queue: KeyedQueue, workers: number): Promise<string[]> {
  const taken: string[] = [];
  for (let n = 0; n < workers; n++) void queue.take().then((key) => key !== undefined && taken.push(key));
  await settle();
  return taken;
}

const added = (queue: KeyedQueue, group: string, count: number): void =>
  Array.from({ length: count }).forEach((_none, n) => queue.add(`${group}/${n}`));

test.each([
  [64, 48],
  [8, 6],
  [4, 3],
  [1, 1],
])('of %i workers a group gets %i, and the next group need not wait for them', async (workers, most) => {
  const queue = inGroups(workers);
  added(queue, 'slow', 200);
  const taken = await work(queue, workers);
  expect([taken.length, queue.depth]).toEqual([most, 200 - most]);
  queue.add('other/0');
  await settle();
  expect(taken.includes('other/0')).toBe(most < workers);
});

test('three groups that are slow leave a worker to others', async () => {
  const queue = inGroups(64);
  for (let n = 0; n < 3; n++) added(queue, `slow-${n}`, 100);
  const taken = await work(queue, 64);
  expect(taken.length).toBeLessThan(64);
  queue.add('other/0');
  await settle();
  expect(taken).toContain('other/0');
});

test('a group that had its share goes on in order, as its keys are done', async () => {
  const queue = inGroups(4);
  added(queue, 'a', 6);
  const taken = await work(queue, 4);
  expect(taken).toEqual(['a/0', 'a/1', 'a/2']);
  queue.done('a/1');
  await settle();
  expect(taken.at(-1)).toBe('a/3');
  for (const key of ['a/0', 'a/2', 'a/3']) queue.done(key);
  expect(await drain(queue)).toEqual(['a/4', 'a/5']);
  expect(queue.running).toBe(0);
});
