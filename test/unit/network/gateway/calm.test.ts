import { expect, test } from '@jest/globals';

import { type CalmFacts, knockAgainMs, observeAgainMs } from '../../../../src/network/gateway/calm.ts';

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
