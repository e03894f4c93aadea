import { expect, test } from '@jest/globals';

import { type DnsFacts, homeDnsIn } from '../../../src/network/home-dns.ts';

const same = (...prefixes: string[]): { prefix: string; as: string }[] =>
  prefixes.map((prefix) => ({ prefix, as: prefix }));
const facts = (changes: Partial<DnsFacts> = {}): DnsFacts => ({
  state: 'Up',
  dns: { addresses: ['10.1.0.0/16', '100.64.0.0/16'] },
  services: ['10.96.0.0/16'],
  seenAs: [
    ...same('10.1.0.0/16', '100.64.0.0/16', '10.96.0.0/16'),
    // The external range, of which no DNS speaks.
    { prefix: '10.70.0.0/20', as: '100.66.0.0/20' },
  ],
  theirs: ['10.2.0.0/16'],
  views: [
    { use: 'Pods', prefix: '10.2.0.0/16', as: '10.2.0.0/16' },
    { use: 'External', prefix: '10.70.0.0/20', as: '100.65.0.0/20' },
  ],
  ...changes,
});

test('our DNS can be asked where each address that it names means the same over there', () => {
  expect(homeDnsIn(facts())).toEqual({ kind: 'Open', ranges: ['10.96.0.0/16'] });
  expect(homeDnsIn(facts({ state: 'Down' }))).toMatchObject({ kind: 'Open' });
});

test('it is not asked unless somebody has chosen it, whatever else is possible', () => {
  expect(homeDnsIn(facts({ dns: undefined }))).toEqual({ kind: 'NotChosen' });
  expect(homeDnsIn(facts({ dns: undefined, services: [] }))).toEqual({ kind: 'NotChosen' });
});

const elsewhere = (prefix: string): DnsFacts['seenAs'] =>
  facts().seenAs.map((one) => (one.prefix === prefix ? { prefix, as: '100.99.0.0/16' } : one));

test.each<[string, Partial<DnsFacts>, string, string]>([
  ['there is no network', { state: 'Off' }, 'NoNetwork', 'no tunnel leads'],
  ['ClusterIPs are not reached', { services: [] }, 'NotChosen', 'set services: OffloadedPods'],
  [
    'the peer sees ClusterIPs elsewhere',
    { seenAs: elsewhere('10.96.0.0/16') },
    'SeenElsewhere',
    'our 10.96.0.0/16 as 100.99.0.0/16',
  ],
  [
    'the peer sees our pods elsewhere',
    { seenAs: elsewhere('10.1.0.0/16') },
    'SeenElsewhere',
    'our 10.1.0.0/16 as 100.99.0.0/16',
  ],
  [
    'the peer sees our pods in a third cluster elsewhere',
    { seenAs: elsewhere('100.64.0.0/16') },
    'SeenElsewhere',
    'our 100.64.0.0/16 as 100.99.0.0/16',
  ],
  [
    'we see its pods elsewhere',
    { views: [{ use: 'Pods', prefix: '10.2.0.0/16', as: '100.67.0.0/16' }] },
    'SeenElsewhere',
    'pods 10.2.0.0/16 as 100.67.0.0/16',
  ],
])('it cannot be asked where %s', (_why, changes, reason, words) => {
  const message: unknown = expect.stringContaining(words);
  expect(homeDnsIn(facts(changes))).toEqual({ kind: 'None', reason, message });
});

test('it is not asked before the peer has told how it sees us', () => {
  const seenAs = facts().seenAs.filter(({ prefix }) => prefix !== '10.96.0.0/16');
  expect(homeDnsIn(facts({ seenAs }))).toMatchObject({ kind: 'Unknown', reason: 'PeerHasNoViewOfUs' });
});

test('nor while we have not given its pods a place here', () => {
  const views = facts().views.filter(({ use }) => use === 'External');
  expect(homeDnsIn(facts({ views }))).toMatchObject({ kind: 'Unknown', reason: 'PrefixRefused' });
});
