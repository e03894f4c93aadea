import { describe, expect, test } from '@jest/globals';

import { Debounce } from '../../../src/lib/debounce.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('with a call at once', () => {
  test('the first at once, then one in each interval, the last never lost, none for nothing', async () => {
    const clock = new FakeClock();
    const calls: number[] = [];
    const debounce = new Debounce({ clock, intervalMs: 250, callsAtOnce: true }, () =>
      calls.push(clock.monotonic()),
    );
    debounce.trigger();
    expect(calls).toEqual([0]);
    for (let event = 0; event < 100; event++) debounce.trigger();
    await clock.advance(100);
    debounce.trigger();
    expect(calls).toEqual([0]);
    await clock.advance(150);
    expect(calls).toEqual([0, 250]);
    await clock.advance(1000);
    expect(calls).toEqual([0, 250]);
    debounce.trigger();
    expect(calls).toEqual([0, 250, 1250]);
    debounce.trigger();
    debounce.stop();
    await clock.advance(1000);
    expect(calls).toEqual([0, 250, 1250]);
  });

  test('what the call itself sets off comes an interval later', async () => {
    const clock = new FakeClock();
    const calls: number[] = [];
    const debounce: Debounce = new Debounce({ clock, intervalMs: 250, callsAtOnce: true }, () => {
      calls.push(clock.monotonic());
      if (calls.length < 3) debounce.trigger();
    });
    debounce.trigger();
    await clock.advance(2000);
    expect(calls).toEqual([0, 250, 500]);
  });

  test('one that is held comes with the release', async () => {
    const clock = new FakeClock();
    const calls: number[] = [];
    const debounce = new Debounce({ clock, intervalMs: 250, callsAtOnce: true }, () =>
      calls.push(clock.monotonic()),
    );
    const release = debounce.hold();
    debounce.trigger();
    await clock.advance(100);
    expect(calls).toEqual([]);
    release();
    expect(calls).toEqual([100]);
  });
});

describe('with a call at the end of the interval', () => {
  function setUp(): { clock: FakeClock; debounce: Debounce; calls: () => number } {
    const clock = new FakeClock();
    let count = 0;
    const debounce = new Debounce({ clock, intervalMs: 100, callsAtOnce: false }, () => count++);
    return { clock, debounce, calls: () => count };
  }

  test('many in 100 ms are one, and the next is one again', async () => {
    const { clock, debounce, calls } = setUp();
    for (let i = 0; i < 10; i++) debounce.trigger();
    await clock.advance(99);
    expect(calls()).toBe(0);
    await clock.advance(1);
    expect(calls()).toBe(1);
    await clock.advance(1_000);
    expect(calls()).toBe(1);
    debounce.trigger();
    await clock.advance(100);
    expect(calls()).toBe(2);
  });

  test('those that came while it was held come once, after the release', async () => {
    const { clock, debounce, calls } = setUp();
    const release = debounce.hold();
    debounce.trigger();
    await clock.advance(500);
    debounce.trigger();
    expect(calls()).toBe(0);
    release();
    debounce.trigger();
    await clock.advance(100);
    expect(calls()).toBe(1);
    await clock.advance(1_000);
    expect(calls()).toBe(1);
  });

  test('one that came before the hold is not lost', async () => {
    const { clock, debounce, calls } = setUp();
    debounce.trigger();
    const release = debounce.hold();
    await clock.advance(500);
    expect(calls()).toBe(0);
    release();
    await clock.advance(100);
    expect(calls()).toBe(1);
  });

  test('none comes after the stop', async () => {
    const { clock, debounce, calls } = setUp();
    debounce.trigger();
    debounce.stop();
    await clock.advance(1_000);
    expect(calls()).toBe(0);
  });
});
