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
  now = 7;
  expect(breath.due()).toBeUndefined();
  now = 8;
  const rest = breath.due();
  expect(rest).toBeDefined();
  // Whoever asks in the same turn rests, too.
  expect(breath.due()).toBe(rest);
  let others = false;
  setImmediate(() => (others = true));
  await rest;
  await nextTurn();
  expect(others).toBe(true);
  expect(breath.due()).toBeUndefined();
});

test('it is told once of each turn in which somebody rests', async () => {
  let now = 0;
  let told = 0;
  const breath = new Breath({ monotonic: () => now });
  breath.onLong(() => (told += 1));
  void breath.due();
  now = 8;
  const rest = breath.due();
  void breath.due();
  expect(told).toBe(1);
  await rest;
  void breath.due();
  expect(told).toBe(1);
  now = 16;
  void breath.due();
  expect(told).toBe(2);
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
