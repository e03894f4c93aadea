import { expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Controller } from '../../../src/kube/controller.ts';
import { Breath, breathOf } from '../../../src/lib/breath.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('work may go on for a while, and then rests until others have had their turn', async () => {
  let now = 0;
  const breath = new Breath({ monotonic: () => now });
  expect(breath.due()).toBeUndefined();
  now = 2;
  expect(breath.due()).toBeUndefined();
  now = 4;
  const rest = breath.due();
  expect(rest).toBeDefined();
  let others = false;
  setImmediate(() => (others = true));
  await rest;
  await nextTurn();
  expect(others).toBe(true);
  expect(breath.due()).toBeUndefined();
});

test('workers who rest go on in their order, as many in a turn as it has time for', async () => {
  let now = 0;
  const breath = new Breath({ monotonic: () => now });
  expect(breath.due()).toBeUndefined();
  now = 4;
  const wentOn: string[] = [];
  const work = async (name: string): Promise<void> => {
    for (let key = 1; key <= 2; key++) {
      await breath.due('worker');
      // Before it has done what it does without waiting, nobody else goes on.
      for (let hop = 0; hop < 10; hop++) await Promise.resolve();
      wentOn.push(`${name}${key}`);
      now += 2;
    }
  };
  const all = Promise.all(['a', 'b', 'c', 'd'].map(work));
  const turns: string[] = [];
  for (let turn = 0; turn < 4; turn++) {
    await nextTurn();
    turns.push(wentOn.splice(0).join(' '));
  }
  await all;
  expect(turns).toEqual(['a1 b1', 'c1 d1', 'a2 b2', 'c2 d2']);
});

test('walks go on before workers, and one worker in any case', async () => {
  let now = 0;
  const breath = new Breath({ monotonic: () => now });
  expect(breath.due()).toBeUndefined();
  now = 4;
  const wentOn: string[] = [];
  const work = async (who: 'walk' | 'worker', steps: number, ms: number): Promise<void> => {
    for (let step = 1; step <= steps; step++) {
      await breath.due(who);
      wentOn.push(`${who}${step}`);
      now += ms;
    }
  };
  const all = Promise.all([work('worker', 2, 1), work('walk', 4, 2)]);
  const turns: string[] = [];
  for (let turn = 0; turn < 3; turn++) {
    await nextTurn();
    turns.push(wentOn.splice(0).join(' '));
  }
  await all;
  expect(turns).toEqual(['walk1 walk2 worker1', 'walk3 walk4 worker2', '']);
});

test('of long work it is told once in each turn in which somebody rests, but for the first', async () => {
  let now = 0;
  let told = 0;
  const breath = new Breath({ monotonic: () => now });
  breath.onLong(() => (told += 1));
  void breath.due();
  now = 4;
  const rest = breath.due();
  void breath.due();
  expect(told).toBe(0);
  await rest;
  void breath.due();
  expect(told).toBe(0);
  now = 8;
  void breath.due();
  void breath.due();
  expect(told).toBe(1);
});

test('what comes after a pause is not held up', async () => {
  let now = 0;
  const breath = new Breath({ monotonic: () => now });
  expect(breath.due()).toBeUndefined();
  await nextTurn();
  now = 1_000;
  expect(breath.due()).toBeUndefined();
});

test('one clock, one breath', () => {
  const clock = new FakeClock();
  expect(breathOf(clock)).toBe(breathOf(clock));
  expect(breathOf(clock)).not.toBe(breathOf(new FakeClock()));
});

test('a controller with many keys that need no request lets others run in between', async () => {
  const KEYS = 100;
  let now = 0;
  const clock = Object.assign(new FakeClock(), { monotonic: () => now });
  const turns: number[] = [];
  let done = 0;
  const controller = new Controller({
    clock,
    log: silentLogger,
    name: 'busy',
    concurrency: 4,
    reconcile: async () => {
      now++;
      done++;
      return Promise.resolve();
    },
  });
  for (let key = 0; key < KEYS; key++) controller.add(String(key));
  controller.start(new AbortController().signal);
  // Two turns at least for those that rest, and one turn for each key at most.
  for (let turn = 0; turn < KEYS && turns.at(-1) !== KEYS; turn++) {
    await nextTurn();
    turns.push(done);
  }
  expect(done).toBe(KEYS);
  await controller.stop();
  const steps = turns.map((count, turn) => count - (turns[turn - 1] ?? 0));
  expect(Math.max(...steps)).toBeLessThan(KEYS / 2);
});
