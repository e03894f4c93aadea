import { expect, test } from '@jest/globals';

import { until } from '../../../faults/until.ts';

const never = async (): Promise<true> => new Promise(() => undefined);

test('a question that hangs is asked anew', async () => {
  let asked = 0;
  const ask = async (): Promise<true> => (++asked === 1 ? never() : true);
  await until('it is there', ask, 60_000, 10);
  expect(asked).toBe(2);
});

test('at the deadline: what was waited for, and what was wrong at last', async () => {
  await expect(until('it is there', never, 0, 10)).rejects.toThrow(
    'not within 0 s: it is there: no answer within 0.01 s',
  );
  await expect(until('it is there', async () => 'no pod', 0)).rejects.toThrow('it is there: no pod');
});

test('a question that fails is a wrong answer', async () => {
  let asked = 0;
  const ask = async (): Promise<true> => {
    if (++asked === 1) throw new Error('refused');
    return true;
  };
  await until('it is there', ask);
  expect(asked).toBe(2);
});
