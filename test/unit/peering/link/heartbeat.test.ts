import { expect, test } from '@jest/globals';

import { Heartbeat } from '../../../../src/peering/link/heartbeat.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const beat = (
  options: { deaf?: boolean } = {},
): { clock: FakeClock; heartbeat: Heartbeat; seen: { pings: number; dead: number } } => {
  const clock = new FakeClock();
  const seen = { pings: 0, dead: 0 };
  const heartbeat = new Heartbeat({
    clock,
    intervalMs: 1_000,
    misses: 3,
    ping: () => seen.pings++,
    isDeaf: () => options.deaf ?? false,
    dead: () => seen.dead++,
  });
  heartbeat.start();
  return { clock, heartbeat, seen };
};

test('three misses in a row are the end, fewer are not', async () => {
  const { clock, heartbeat, seen } = beat();
  await clock.advance(2_500);
  heartbeat.pong();
  await clock.advance(2_900);
  expect(seen.dead).toBe(0);
  await clock.advance(1_000);
  expect(seen).toEqual({ pings: 6, dead: 1 });
});

test('messages are signs of life too, and our own deafness is none of death', async () => {
  const { clock, heartbeat, seen } = beat();
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000);
    heartbeat.heard();
  }
  expect(seen.dead).toBe(0);
  const deaf = beat({ deaf: true });
  await deaf.clock.advance(60_000);
  expect(deaf.seen.dead).toBe(0);
});

test('while the other end asks, one of twelve pings is left', async () => {
  const { clock, heartbeat, seen } = beat();
  heartbeat.pong();
  for (let second = 0; second < 120; second++) {
    await clock.advance(400);
    heartbeat.asked();
    await clock.advance(600);
    heartbeat.pong();
  }
  expect(seen).toEqual({ pings: 11, dead: 0 });
});

test('when the other end asks no more, that is the first miss', async () => {
  const { clock, heartbeat, seen } = beat();
  heartbeat.pong();
  await clock.advance(1_500);
  heartbeat.pong();
  await clock.advance(400);
  heartbeat.asked();
  // As soon as without its questions: 3 to 4 s after the last sign of life.
  await clock.advance(3_000);
  expect(seen.dead).toBe(0);
  await clock.advance(1_000);
  expect(seen.dead).toBe(1);
});

test('two ends that ask each other do so half as often, and find an end as soon', async () => {
  const clock = new FakeClock();
  const dead: number[] = [];
  let pings = 0;
  let isCut = false;
  const ends: Heartbeat[] = [];
  for (const index of [0, 1]) {
    const beat = new Heartbeat({
      clock,
      intervalMs: 1_000,
      misses: 3,
      ping: () => {
        pings++;
        clock.after(20, () => {
          if (isCut) return;
          ends[1 - index]?.asked();
          clock.after(20, () => isCut || ends[index]?.pong());
        });
      },
      isDeaf: () => false,
      dead: () => dead.push(clock.monotonic()),
    });
    ends.push(beat);
  }
  ends[0]?.start();
  await clock.advance(370);
  ends[1]?.start();
  await clock.advance(60_000);
  // Without: 120.
  expect(pings).toBeLessThan(80);
  expect(dead).toEqual([]);
  isCut = true;
  const since = clock.monotonic();
  await clock.advance(4_100);
  expect(dead.map((at) => at - since > 2_000)).toEqual([true, true]);
});

test('a process that stood still counts one miss', async () => {
  const { clock, heartbeat, seen } = beat();
  clock.jump(3_600_000);
  await clock.advance(1_000);
  heartbeat.pong();
  await clock.advance(1_000);
  expect(seen.dead).toBe(0);
});

test('a probe ends with an answer, in time, or with the link', async () => {
  const { clock, heartbeat } = beat();
  const answered = heartbeat.probe(500);
  heartbeat.pong();
  expect(await answered).toBe(true);
  const late = heartbeat.probe(500);
  await clock.advance(500);
  expect(await late).toBe(false);
  const ended = heartbeat.probe(500);
  heartbeat.stop();
  expect(await ended).toBe(false);
});
