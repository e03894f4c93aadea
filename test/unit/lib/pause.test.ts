import { expect, test } from '@jest/globals';

import { Pause } from '../../../src/lib/pause.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function pausing(
  ms: number,
  signal: AbortSignal = new AbortController().signal,
): { clock: FakeClock; pause: Pause; done: Promise<unknown>; isOver: () => boolean } {
  const clock = new FakeClock();
  const pause = new Pause(clock);
  let isOver = false;
  const done = pause.for(ms, signal).then(() => (isOver = true));
  return { clock, pause, done, isOver: () => isOver };
}

test('lasts as long as it is to', async () => {
  const { clock, isOver } = pausing(100);
  await clock.advance(99);
  expect(isOver()).toBe(false);
  await clock.advance(1);
  expect(isOver()).toBe(true);
});

test('can be ended, and leaves no timer behind', async () => {
  const { clock, pause, done } = pausing(100);
  pause.end();
  await done;
  expect(clock.pending).toBe(0);
});

test('ends with its signal, before which it does not begin', async () => {
  const abort = new AbortController();
  const { clock, done } = pausing(100, abort.signal);
  abort.abort(new Error('stop'));
  await done;
  expect(clock.pending).toBe(0);
  const late = pausing(100, abort.signal);
  await late.done;
  expect(late.clock.pending).toBe(0);
});

test('the end of one is not the end of the next', async () => {
  const { clock, pause, done } = pausing(100);
  pause.end();
  await done;
  pause.end();
  let isOver = false;
  void pause.for(100, new AbortController().signal).then(() => (isOver = true));
  await clock.advance(99);
  expect(isOver).toBe(false);
  await clock.advance(1);
  expect(isOver).toBe(true);
});
