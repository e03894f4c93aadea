import { expect, test } from '@jest/globals';

import { type Ruleset, translationFaults } from '../../../faults/auditor/checks/translation.ts';

type Entry = Ruleset['nftables'][number];
const TABLE = { family: 'inet', table: 'tributary_gateway' };

const prefix = (text: string): { prefix: { addr: string; len: number } } => {
  const [addr = '', len] = text.split('/');
  return { prefix: { addr, len: Number(len) } };
};
/** `10.0.0.0/8 to 100.64.0.0/8`. */
function pair(chain: string, text: string): Entry {
  const [from = '', to = ''] = text.split(' to ');
  const verb = chain.startsWith('snat') ? 'snat' : 'dnat';
  const field = verb === 'snat' ? 'saddr' : 'daddr';
  const match = { op: '==', left: { payload: { field } }, right: prefix(from) };
  return { rule: { ...TABLE, chain, expr: [{ match }, { [verb]: { addr: prefix(to), flags: 'netmap' } }] } };
}
const chain = (name: string): Entry => ({ chain: { ...TABLE, name } });
const rule = (name: string, ...expr: object[]): Entry => ({ rule: { ...TABLE, chain: name, expr } });
const DROP = rule('departure', { counter: { packets: 3 } }, { drop: null });
const OTHER_LINK = rule(
  'departure',
  { match: { op: '!=', left: { meta: { key: 'oifname' } }, right: 'tributary' } },
  { return: null },
);
const both = (peer: string, from: string, to: string): Entry[] => [
  pair(`snat_${peer}`, `${from} to ${to}`),
  pair(`dnat_${peer}`, `${to} to ${from}`),
];
const views = (name: string, ...elements: [string, string][]): Entry => ({
  map: { ...TABLE, name, elem: elements.map(([key, target]) => [prefix(key), { jump: { target } }]) },
});

const SOUND = both('p', '10.244.0.0/16', '100.64.0.0/16');
const CASES: readonly [what: string, entries: Entry[], expected: RegExp[]][] = [
  ['nothing', [], []],
  ['there and back', SOUND, []],
  ['two peers see us alike', [...SOUND, ...both('q', '10.244.0.0/16', '100.64.0.0/16')], []],
  ['IPv6', both('p', 'fd00:1::/64', 'fd00:2::/64'), []],
  ['no way back', SOUND.slice(0, 1), [/snat_p translates 10.244.0.0\/16 .* and chain dnat_p not back/]],
  ['no way there', SOUND.slice(1), [/dnat_p translates .* and chain snat_p not back/]],
  [
    'two become one',
    [...SOUND, ...both('p', '10.245.0.0/16', '100.64.0.0/16')],
    [/snat_p .*two sources become one/, /dnat_p .*one source becomes two/],
  ],
  [
    'parts of two become one',
    [...SOUND, ...both('p', '10.250.0.0/24', '100.64.7.0/24')],
    [/two sources become one/],
  ],
  [
    'a part that is translated like the whole',
    [...SOUND, ...both('p', '10.244.7.0/24', '100.64.7.0/24')],
    [],
  ],
  ['another size', both('p', '10.244.0.0/16', '100.64.0.0/20'), [/of another size/, /of another size/]],
  [
    'a view of two peers',
    [views('from4', ['100.66.0.0/16', 'from_p']), views('snat4', ['100.66.0.0/16', 'snat_q'])],
    [/view 100.66.0.0\/16 belongs to p in map from4 and to q in map snat4/],
  ],
  [
    'views of one peer',
    [views('from4', ['100.66.0.0/16', 'from_p']), views('sent4', ['100.66.0.0/16', 'sent_p'])],
    [],
  ],
  ['the rest is dropped', [chain('source'), chain('departure'), OTHER_LINK, DROP], []],
  ['nobody drops the rest', [chain('source')], [/has no chain departure/]],
  [
    'the end is missing',
    [chain('source'), chain('departure'), OTHER_LINK],
    [/does not end with a rule that drops/],
  ],
  [
    'something passes before',
    [chain('source'), chain('departure'), rule('departure', { accept: null }), DROP],
    [/lets packets pass unseen/],
  ],
];

test.each(CASES)('%s', (_what, nftables, expected) => {
  const found = translationFaults('rome', { nftables }).map(({ what }) => what);
  expect(found).toEqual(expected.map((what) => expect.stringMatching(what)));
});

test('tables of others do not count', () => {
  const foreign = SOUND.slice(0, 1).map(
    ({ rule: one }) => ({ rule: one && { ...one, table: 'other' } }) as Entry,
  );
  expect(translationFaults('rome', { nftables: foreign })).toEqual([]);
});
