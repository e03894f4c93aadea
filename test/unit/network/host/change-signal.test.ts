import { describe, expect, test } from '@jest/globals';

import { ChangeSignal } from '../../../../src/network/host/change-signal.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

function setUp(): { clock: FakeClock; signal: ChangeSignal; heard: () => number; remove: () => void } {
  const clock = new FakeClock();
  const signal = new ChangeSignal(clock);
  let count = 0;
  const remove = signal.add(() => count++);
  return { clock, signal, heard: () => count, remove };
}

describe('changes of the host', () => {
  test('many in 100 ms are one, and the next is one again', async () => {
    const { clock, signal, heard } = setUp();
    for (let i = 0; i < 10; i++) signal.mark();
    await clock.advance(99);
    expect(heard()).toBe(0);
    await clock.advance(1);
    expect(heard()).toBe(1);
    await clock.advance(1_000);
    expect(heard()).toBe(1);
    signal.mark();
    await clock.advance(100);
    expect(heard()).toBe(2);
  });

  test('those of our own writes come once, after the last of them', async () => {
    const { clock, signal, heard } = setUp();
    const release = signal.hold();
    signal.mark();
    await clock.advance(500);
    signal.mark();
    expect(heard()).toBe(0);
    release();
    signal.mark();
    await clock.advance(100);
    expect(heard()).toBe(1);
    await clock.advance(1_000);
    expect(heard()).toBe(1);
  });

  test('one that came before we began to write is not lost', async () => {
    const { clock, signal, heard } = setUp();
    signal.mark();
    const release = signal.hold();
    await clock.advance(500);
    expect(heard()).toBe(0);
    release();
    await clock.advance(100);
    expect(heard()).toBe(1);
  });

  test('who has gone is not called', async () => {
    const { clock, signal, heard, remove } = setUp();
    signal.mark();
    remove();
    await clock.advance(100);
    expect(heard()).toBe(0);
  });
});
