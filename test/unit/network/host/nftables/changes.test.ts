import { describe, expect, it } from '@jest/globals';

import type { SetConfig } from '../../../../../src/network/host/host-config.ts';
import { changesTo, stateWith, wishFor } from '../../../../../src/network/host/nftables/changes.ts';
import { elementsOf } from '../../../../../src/network/host/nftables/element.ts';
import { peersTable, tableConfig } from '../../../../support/network/table-configs.ts';
import { fc } from '../../../../support/property.ts';

const set = (keys: readonly string[], more: Partial<SetConfig> = {}): SetConfig => ({
  name: 'pods',
  type: 'ipv4_addr',
  interval: true,
  elements: keys.map((key) => ({ key })),
  ...more,
});

describe('changes of a table', () => {
  it('are none where the wish is fulfilled', () => {
    fc.assert(
      fc.property(tableConfig, (config) => {
        const wish = wishFor('ours', config);
        expect(changesTo(wish, stateWith(wish))).toEqual({ count: 0, script: '' });
      }),
    );
  });

  it('name one table only and never the whole ruleset', () => {
    fc.assert(
      fc.property(tableConfig, tableConfig, (one, other) => {
        const { script } = changesTo(wishFor('ours', other), stateWith(wishFor('ours', one)));
        for (const line of script.split('\n').slice(0, -1)) {
          expect(line).toMatch(/^(add|delete|flush) (table|chain|set|map|rule|element) inet ours\b/);
        }
      }),
    );
  });

  it('of one more peer are the same however many there are', () => {
    const scripts = [8, 128].map((count) => {
      const state = stateWith(wishFor('ours', peersTable(count)));
      const { script, count: changed } = changesTo(wishFor('ours', peersTable(count + 1)), state);
      expect(changed).toBe(8);
      const own = new RegExp(`(?:guard|dnat|snat|access)_${count}\\b`);
      for (const line of script.split('\n').slice(0, -1)) expect(line).toMatch(own);
      return script.length;
    });
    expect(Math.abs((scripts[0] ?? 0) - (scripts[1] ?? 0))).toBeLessThan(100);
  });

  it('make the table anew, in the same transaction, where a definition differs', () => {
    const plain = wishFor('ours', { chains: [], sets: [set(['10.0.0.1'])] });
    const state = stateWith(plain);
    const anew = 'add table inet ours\ndelete table inet ours\nadd table inet ours\n';
    for (const other of [
      set(['10.0.0.1'], { interval: false }),
      set(['10.0.0.1'], { type: 'ipv6_addr', elements: [] }),
      set([], { value: 'verdict' }),
    ]) {
      expect(changesTo(wishFor('ours', { chains: [], sets: [other] }), state).script).toContain(anew);
    }
    expect(changesTo(plain, { ...state, foreign: true }).script).toContain(anew);
    expect(changesTo(plain, undefined).script).toContain(anew);
  });

  it('are refused for two things of one name', () => {
    const chain = { name: 'peer', rules: [] };
    expect(() => wishFor('ours', { chains: [chain, chain], sets: [] })).toThrow('of one name');
    expect(() => wishFor('ours', { chains: [], sets: [set([]), set([])] })).toThrow('of one name');
  });

  it('write single addresses of maps of prefixes as prefixes', () => {
    const elements = [
      { key: '10.1.0.0/16', value: '10.2.0.0/16' },
      { key: '10.3.0.1', value: '10.4.0.1' },
    ];
    const views = set([], { value: 'ipv4_addr', elements });
    const { script } = changesTo(wishFor('ours', { chains: [], sets: [views] }), undefined);
    expect(script).toContain('type ipv4_addr : interval ipv4_addr; flags interval;');
    expect(script).toContain('{ 10.1.0.0/16 : 10.2.0.0/16, 10.3.0.1 : 10.4.0.1/32 }');
  });
});

describe('elements', () => {
  it('are equal however they are written', () => {
    const keys = (...texts: string[]): string[] => [...elementsOf(set(texts)).keys()];
    expect(keys('10.1.2.3/16')).toEqual(keys('10.1.0.0-10.1.255.255'));
    expect(keys('10.1.2.3/32')).toEqual(keys('10.1.2.3'));
    expect(keys('fd00:0:0::1/128')).toEqual(keys('FD00::1'));
    expect(keys('"eth0"')).toEqual(keys('eth0'));
  });

  it('leave out what lies inside another, in sets of intervals', () => {
    expect(
      elementsOf(set(['10.1.0.0/16', '10.1.2.0/24', '10.0.0.0/8', '11.0.0.1', '10.255.255.255'])).size,
    ).toBe(2);
    expect(elementsOf(set(['10.1.0.0/16', '10.2.0.0/16'])).size).toBe(2);
    expect(elementsOf(set(['10.1.0.0/16', 'fd00::/8'])).size).toBe(2);
  });

  it('have one value each, and only in maps', () => {
    const map = (...elements: SetConfig['elements']): SetConfig => set([], { value: 'verdict', elements });
    const twice = map({ key: '10.0.0.1', value: 'drop' }, { key: '10.0.0.1/32', value: 'accept' });
    expect(() => elementsOf(twice)).toThrow('has two values');
    expect(() => elementsOf(map({ key: '10.0.0.1' }))).toThrow('only elements of maps');
    expect(() => elementsOf(set([], { elements: [{ key: '10.0.0.1', value: 'drop' }] }))).toThrow(
      'only elements',
    );
  });
});
