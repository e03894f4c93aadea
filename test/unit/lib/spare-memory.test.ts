import { expect, test } from '@jest/globals';

import { Listeners } from '../../../src/lib/listeners.ts';
import { giveBackAfterWork } from '../../../src/lib/spare-memory.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function world(usedMiB = 50): {
  clock: FakeClock;
  /** After which the heap has so much more garbage. */
  work: (garbageMiB?: number) => void;
  collections: () => number;
  /** Uses so much CPU time from now on, each second. */
  compute: (shareMs: number) => void;
  end: () => void;
} {
  const clock = new FakeClock();
  const long = new Listeners();
  let collections = 0;
  let garbageMiB = 0;
  let [shareMs, sinceMs, sumMs] = [0, 0, 0];
  const cpuMs = (): number => sumMs + ((clock.monotonic() - sinceMs) / 1_000) * shareMs;
  const compute = (share: number): void => {
    [sumMs, sinceMs, shareMs] = [cpuMs(), clock.monotonic(), share];
  };
  const end = giveBackAfterWork({
    clock,
    breath: { onLong: long.add },
    usedMiB: () => usedMiB + garbageMiB,
    cpuSeconds: () => cpuMs() / 1_000,
    collect: () => {
      collections += 1;
      garbageMiB = 0;
    },
  });
  const work = (moreMiB = 20): void => {
    garbageMiB += moreMiB;
    long.tell();
  };
  return { clock, work, collections: () => collections, compute, end };
}

test('memory is given back once, when work has been over for a while', async () => {
  const { clock, work, collections } = world();
  for (let turn = 0; turn < 10; turn++) {
    work(2);
    await clock.advance(1_000);
  }
  expect(collections()).toBe(0);
  await clock.advance(3_999);
  expect(collections()).toBe(0);
  await clock.advance(1);
  expect(collections()).toBe(1);
  await clock.advance(3_600_000);
  expect(collections()).toBe(1);
});

test('work that comes later is followed by another collection', async () => {
  const { clock, work, collections } = world();
  work();
  await clock.advance(60_000);
  work();
  await clock.advance(60_000);
  expect(collections()).toBe(2);
});

test('a turn that was long for another reason is followed by none', async () => {
  const { clock, work, collections } = world();
  work();
  await clock.advance(60_000);
  for (let turn = 0; turn < 10; turn++) {
    work(0.5);
    await clock.advance(10_000);
  }
  expect(collections()).toBe(1);
  work(5);
  await clock.advance(10_000);
  expect(collections()).toBe(2);
});

test('while the program computes, in short turns, nothing is collected', async () => {
  const { clock, work, collections, compute } = world();
  compute(200);
  work();
  await clock.advance(60_000);
  expect(collections()).toBe(0);
  compute(20);
  await clock.advance(4_999);
  expect(collections()).toBe(0);
  await clock.advance(5_001);
  expect(collections()).toBe(1);
});

test('a large heap is left alone', async () => {
  const { clock, work, collections } = world(200);
  work();
  await clock.advance(60_000);
  expect(collections()).toBe(0);
});

test('nothing is collected after the end', async () => {
  const { clock, work, collections, end } = world();
  work();
  end();
  await clock.advance(60_000);
  work();
  await clock.advance(60_000);
  expect(collections()).toBe(0);
});
