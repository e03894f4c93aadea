import { describe, expect, test } from '@jest/globals';

import { diffRules, type KernelRule } from '../../../../src/network/host/rules.ts';

describe('rules: what is wanted against what there is', () => {
  const config = { family: 4, priority: 100, incoming: 'vx', from: '10.1.0.0/16', table: 1000 } as const;
  const ours: KernelRule = { ...config, protocol: 117, isPlain: true };
  const empty = { add: [], remove: [] };

  test('nothing to do', () => {
    expect(diffRules(117, [config], [ours])).toEqual(empty);
  });

  test.each<Partial<KernelRule>>([
    { priority: 101 },
    { incoming: 'eth0' },
    { from: '10.1.0.0/17' },
    { to: '10.2.0.0/16' },
    { table: 254 },
    { family: 6 },
    { isPlain: false },
  ])('ours with %j is another one', (other) => {
    const there = { ...ours, ...other };
    expect(diffRules(117, [config], [there])).toEqual({ add: [ours], remove: [there] });
  });

  test("others' stay, and one that says the same is as good as ours", () => {
    expect(diffRules(117, [], [{ ...ours, protocol: 3 }])).toEqual(empty);
    expect(diffRules(117, [config], [{ ...ours, protocol: 3 }])).toEqual(empty);
  });
});
