import { describe, expect, test } from '@jest/globals';

import {
  type CalmFacts,
  inStep,
  knockAgainMs,
  observeAgainMs,
} from '../../../../src/network/gateway/calm.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const CALM: CalmFacts = {
  probeSeconds: 1,
  tunnels: 2,
  probed: 2,
  isAnswered: true,
  isTold: true,
  problems: 0,
};

test('the gateway looks rarely only while all is known to be well', () => {
  expect(observeAgainMs(CALM)).toBe(10_000);
  const others: Partial<CalmFacts>[] = [
    { probeSeconds: 2 },
    { probed: 1 },
    { isAnswered: false },
    { isTold: false },
    { problems: 1 },
    { problems: undefined },
  ];
  for (const other of others) expect(observeAgainMs({ ...CALM, ...other })).toBe(1000);
});

test('nodes are asked rarely while all answer', () => {
  expect([knockAgainMs(1, true), knockAgainMs(1, false), knockAgainMs(3, false)]).toEqual([
    10_000, 1000, 3000,
  ]);
});

describe('what is looked at again and again', () => {
  const again = async (requeueAfterMs: number, atMs: number): Promise<number | undefined> => {
    const clock = new FakeClock();
    await clock.advance(atMs - clock.monotonic());
    return inStep({ requeueAfterMs }, clock)?.requeueAfterMs;
  };

  test.each([
    // Whatever ended when, the next looks come together, and looks each half a minute with each third of the others.
    [10_000, 50_004, 9_996],
    [10_000, 53_000, 7_000],
    [30_000, 53_000, 7_000],
    [1_000, 53_250, 750],
    // A timer may be a moment early.
    [10_000, 59_999, 10_001],
  ])('every %i ms comes, at %i, in %i ms', async (period, at, rest) => {
    expect(await again(period, at)).toBe(rest);
  });

  test('what need not be looked at again stays so', () => {
    expect(inStep(undefined, new FakeClock())).toBeUndefined();
    expect(inStep({}, new FakeClock())).toEqual({});
  });
});
