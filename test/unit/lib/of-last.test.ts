import { expect, test } from '@jest/globals';
import { ofLast } from '../../../src/lib/of-last.ts';

interface Box {
  readonly size?: number;
}

function counted(): { sum: (a: Box | undefined, b: Box | undefined) => number; calls: () => number } {
  let calls = 0;
  const sum = ofLast((a: Box | undefined, b: Box | undefined) => {
    calls++;
    return (a?.size ?? 0) + (b?.size ?? 0);
  });
  return { sum, calls: () => calls };
}

test('the same frozen objects are computed once', () => {
  const { sum, calls } = counted();
  const [one, two] = [Object.freeze({ size: 1 }), Object.freeze({ size: 2 })];
  expect([sum(one, two), sum(one, two), sum(one, undefined), sum(one, undefined)]).toEqual([3, 3, 1, 1]);
  expect(calls()).toBe(2);
  expect([sum(two, one), sum(one, two)]).toEqual([3, 3]);
  expect(calls()).toBe(4);
});

test('what may have changed since is computed again', () => {
  const { sum, calls } = counted();
  const [frozen, open] = [Object.freeze({ size: 1 }), { size: 2 }];
  expect(sum(frozen, open)).toBe(3);
  open.size = 5;
  expect(sum(frozen, open)).toBe(6);
  Object.freeze(open);
  expect(sum(frozen, open)).toBe(6);
  expect(calls()).toBe(3);
});
