import { expect, test } from '@jest/globals';

import type { TableConfig } from '../../../../../src/network/host/host-config.ts';
import { changesTo, stateWith, wishFor } from '../../../../../src/network/host/nftables/changes.ts';
import { Recent } from '../../../../../src/network/host/nftables/recent.ts';

test('a text is computed once for as long as it is asked for, and forgotten afterwards', () => {
  const recent = new Recent<string>();
  let made = 0;
  const of = (text: string): string => recent.of(text, () => `${text} ${++made}`);
  for (let round = 0; round < 3; round++) {
    recent.turn();
    expect([of('a'), of('a')]).toEqual(['a 1', 'a 1']);
  }
  recent.turn();
  expect(of('b')).toBe('b 2');
  recent.turn();
  expect([of('b'), recent.size]).toEqual(['b 2', 1]);
  expect(of('a')).toBe('a 3');
});

test('what is refused is refused each time', () => {
  const recent = new Recent<string>();
  const refused = (): string =>
    recent.of('a', () => {
      throw new Error('no');
    });
  expect(refused).toThrow('no');
  expect(refused).toThrow('no');
});

const tableOf = (rule: string, value: string): TableConfig => ({
  chains: [
    { name: 'in', rules: [rule] },
    { name: 'x', rules: [] },
    { name: 'y', rules: [] },
  ],
  sets: [
    {
      name: 'm',
      type: 'ipv4_addr',
      value: 'verdict',
      interval: true,
      elements: [{ key: '10.1.0.0/16', value }],
    },
    { name: 's', type: 'ipv4_addr', interval: true, elements: [{ key: '10.1.0.0/16' }] },
  ],
});

test('a wish is the same whatever was wished before; a key of a map and one of a set are not mixed up', () => {
  const first = wishFor('one', tableOf('ip saddr 10.1.2.3 accept', 'jump x'));
  wishFor('one', tableOf('ip saddr 10.1.2.4 accept', 'jump y'));
  const again = wishFor('one', tableOf('ip saddr 10.1.2.3 accept', 'jump x'));
  expect(again).toEqual(first);
  expect(again).toEqual({ ...wishFor('other', tableOf('ip saddr 10.1.2.3 accept', 'jump x')), name: 'one' });
  expect(changesTo(again, stateWith(first))).toEqual({ count: 0, script: '' });
});
