import { expect, test } from '@jest/globals';
import { SettledReport } from '../../../../src/network/gateway/settled.ts';

const FINE = { changes: 0, problems: [] };
const WRONG = { changes: 0, problems: [{ reason: 'NoWireGuard' as const, message: 'm' }] };

test('what is well is said at once; what is wrong when it has lasted', () => {
  const settled = new SettledReport();
  expect(settled.at(0)).toBeUndefined();
  settled.learn(WRONG, 0);
  expect(settled.at(2999)).toBeUndefined();
  expect(settled.at(3000)).toBe(WRONG);
  settled.learn(FINE, 3001);
  expect(settled.at(3001)).toBe(FINE);
  // A program that is started again and again, but back each time.
  for (const start of [4000, 6000, 8000]) {
    settled.learn(WRONG, start);
    settled.learn(WRONG, start + 1000);
    expect(settled.at(start + 1999)).toBe(FINE);
    settled.learn(FINE, start + 1999);
  }
  settled.learn(WRONG, 10_000);
  settled.learn({ ...WRONG, changes: 1 }, 13_000);
  expect(settled.at(13_000)).toMatchObject({ changes: 1, problems: WRONG.problems });
});
