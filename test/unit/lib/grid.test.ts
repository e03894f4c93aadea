import { expect, test } from '@jest/globals';

import { onGridMs, untilMomentMs } from '../../../src/lib/grid.ts';
import { fc } from '../../support/property.ts';

test('all who wait on a grid wait for the same points', () => {
  expect(onGridMs(0, 5000, 2500)).toBe(5000);
  expect(onGridMs(1234.5, 5000, 2500)).toBe(3765.5);
  expect(onGridMs(2489, 5000, 2500)).toBe(2511);
});

test('a timer that fires a little early does not shorten the next wait by a whole point', () => {
  expect(onGridMs(4999.2, 5000, 2500)).toBeCloseTo(5000.8);
});

test('never longer than asked for, but for what timers are early, nor shorter by more than a point', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      fc.integer({ min: 1, max: 64 }),
      (now, parts) => {
        const waitMs = onGridMs(now, 6400, 6400 / parts);
        expect(waitMs).toBeGreaterThan(6400 - 6400 / parts - 1);
        expect(waitMs).toBeLessThanOrEqual(6410.1);
      },
    ),
  );
});

test('whoever waits for moments meets others after one turn, and waits no longer than it would alone', () => {
  const at = (ms: number): { monotonic: () => number } => ({ monotonic: () => ms });
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      fc.integer({ min: 3_220, max: 60_000 }),
      (now, ms) => {
        const first = untilMomentMs(at(now), ms);
        expect(first).toBeLessThanOrEqual(ms + 10);
        const turn = (now + first) % untilMomentMs(at(0), 3_220);
        expect(Math.min(turn, untilMomentMs(at(0), 3_220) - turn)).toBeLessThan(0.01);
      },
    ),
  );
  expect(untilMomentMs(at(1_234), 1_000)).toBe(1_000);
});
