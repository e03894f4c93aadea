import { expect, test } from '@jest/globals';
import { Coalescer } from '../../../../src/peering/offer/coalescer.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

test('the first at once, then one in each interval, the last never lost, none for nothing', async () => {
  const clock = new FakeClock();
  const calls: number[] = [];
  const coalescer = new Coalescer(clock, 250, () => calls.push(clock.monotonic()));
  coalescer.trigger();
  expect(calls).toEqual([0]);
  for (let event = 0; event < 100; event++) coalescer.trigger();
  await clock.advance(100);
  coalescer.trigger();
  expect(calls).toEqual([0]);
  await clock.advance(150);
  expect(calls).toEqual([0, 250]);
  await clock.advance(1000);
  expect(calls).toEqual([0, 250]);
  coalescer.trigger();
  expect(calls).toEqual([0, 250, 1250]);
  coalescer.trigger();
  coalescer.stop();
  await clock.advance(1000);
  expect(calls).toEqual([0, 250, 1250]);
});

test('what the call itself sets off comes an interval later', async () => {
  const clock = new FakeClock();
  const calls: number[] = [];
  const coalescer: Coalescer = new Coalescer(clock, 250, () => {
    calls.push(clock.monotonic());
    if (calls.length < 3) coalescer.trigger();
  });
  coalescer.trigger();
  await clock.advance(2000);
  expect(calls).toEqual([0, 250, 500]);
});
