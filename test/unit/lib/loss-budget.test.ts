import { describe, expect, test } from '@jest/globals';
import { LossBudget } from '../../../src/lib/loss-budget.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('losses', () => {
  test('a drain ends at once; beyond it one in two seconds, each at its turn', async () => {
    const clock = new FakeClock();
    const budget = new LossBudget(clock);
    const lost = Array.from({ length: 25 }, (_, index) => `pod-${index}`);
    expect(lost.map((pod) => budget.take(pod))).toEqual([
      ...Array<number>(20).fill(0),
      2000,
      4000,
      6000,
      8000,
      10_000,
    ]);
    expect(lost.slice(20).map((pod) => budget.take(pod))).toEqual([2000, 4000, 6000, 8000, 10_000]);
    await clock.advance(4000);
    expect(lost.slice(20).map((pod) => budget.take(pod))).toEqual([0, 0, 2000, 4000, 6000]);
  });

  test('calm fills it again', async () => {
    const clock = new FakeClock();
    const budget = new LossBudget(clock);
    for (let index = 0; index < 20; index++) budget.take(`a-${index}`);
    await clock.advance(40_000);
    expect(Array.from({ length: 20 }, (_, index) => budget.take(`b-${index}`))).toEqual(Array(20).fill(0));
  });
});
