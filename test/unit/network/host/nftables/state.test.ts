import { describe, expect, it } from '@jest/globals';

import { readCounters, readTable } from '../../../../../src/network/host/nftables/state.ts';

const prefix = (addr: string, len: number): unknown => ({ prefix: { addr, len } });
const inTable = { family: 'inet', table: 'ours', handle: 1 };
const list = (...objects: readonly unknown[]): string =>
  JSON.stringify({ nftables: [{ metainfo: { version: '1.0.6' } }, { table: { name: 'ours' } }, ...objects] });

describe('a table in JSON', () => {
  it('is read with prefixes, ranges, concatenations and verdicts', () => {
    const { sets, foreign } = readTable(
      list(
        {
          set: {
            ...inTable,
            name: 'pods',
            type: 'ipv4_addr',
            comment: 't:1',
            flags: ['interval'],
            elem: [prefix('10.0.0.0', 8), { range: ['172.16.0.0', '172.16.0.9'] }, '192.168.1.5'],
          },
        },
        {
          map: {
            ...inTable,
            name: 'between',
            type: ['ipv4_addr', 'inet_service'],
            map: 'verdict',
            elem: [
              [{ concat: ['10.0.0.1', 80] }, { jump: { target: 'peer' } }],
              [{ concat: [prefix('10.2.0.0', 16), 443] }, { drop: null }],
            ],
          },
        },
        {
          map: {
            ...inTable,
            name: 'views',
            type: 'ipv4_addr',
            map: 'ipv4_addr',
            elem: [[prefix('10.72.0.0', 16), prefix('10.244.0.0', 16)]],
          },
        },
      ),
    );
    expect(foreign).toBe(false);
    const texts = (name: string): string[] =>
      [...(sets.get(name)?.elements.values() ?? [])].map(({ text }) => text);
    expect(texts('pods')).toEqual(['10.0.0.0/8', '172.16.0.0-172.16.0.9', '192.168.1.5']);
    expect(texts('between')).toEqual(['10.0.0.1 . 80 : jump peer', '10.2.0.0/16 . 443 : drop']);
    expect(texts('views')).toEqual(['10.72.0.0/16 : 10.244.0.0/16']);
    expect(sets.get('pods')).toMatchObject({ comment: 't:1', shape: 'ipv4_addr :  interval' });
    expect(sets.get('between')?.shape).toBe('ipv4_addr . inet_service : verdict');
  });

  it('is read with base chains and the comments of rules in order', () => {
    const { chains } = readTable(
      list(
        { chain: { ...inTable, name: 'in', type: 'nat', hook: 'prerouting', prio: -110, policy: 'accept' } },
        { chain: { ...inTable, name: 'peer' } },
        { rule: { ...inTable, chain: 'in', comment: 't:1', expr: [] } },
        { rule: { ...inTable, chain: 'peer', comment: 't:2', expr: [] } },
        { rule: { ...inTable, chain: 'in', expr: [] } },
      ),
    );
    expect(chains.get('in')).toEqual({ hook: 'nat prerouting -110 accept', rules: ['t:1', ''] });
    expect(chains.get('peer')).toEqual({ hook: '', rules: ['t:2'] });
  });

  it('is foreign with objects that we never make', () => {
    expect(readTable(list({ counter: { ...inTable, name: 'mine' } })).foreign).toBe(true);
    expect(readTable(list({ chain: { ...inTable, name: 'a b; flush ruleset' } })).foreign).toBe(true);
    expect(() => readTable('{"nftables": [{"table": {"flags": ')).toThrow(SyntaxError);
  });

  it('tells elements with comments or time limits from ours', () => {
    const elem = [{ elem: { val: '10.0.0.1', comment: 'mine' } }];
    const { sets } = readTable(list({ set: { ...inTable, name: 'pods', type: 'ipv4_addr', elem } }));
    expect([...(sets.get('pods')?.elements.values() ?? [])]).toMatchObject([
      { key: '10.0.0.1', value: 'foreign' },
    ]);
  });

  it('adds up the counters of rules with one comment', () => {
    const rule = (comment: string, packets: number): unknown => ({
      rule: { chain: 'in', comment, expr: [{ counter: { packets, bytes: 10 * packets } }, { drop: null }] },
    });
    expect(readCounters(list(rule('a', 1), rule('b', 2), rule('a', 4)))).toEqual(
      new Map([
        ['a', { packets: 5, bytes: 50 }],
        ['b', { packets: 2, bytes: 20 }],
      ]),
    );
  });
});
