import { expect, test } from '@jest/globals';

import { onGridMs } from '../../../src/lib/grid.ts';
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
