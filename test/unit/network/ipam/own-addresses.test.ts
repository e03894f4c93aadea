import { expect, test } from '@jest/globals';

import type { PeerView } from '../../../../src/api/tunnel.ts';
import { Ipam } from '../../../../src/network/ipam/ipam.ts';
import { areAsPermitted, notPermitted, ownAddressesOf } from '../../../../src/network/ipam/own-addresses.ts';
import type { WantedPrefix } from '../../../../src/network/ipam/wanted-prefixes.ts';

const OPTIONS = { pools: ['100.64.0.0/10', 'fdcc::/16'], reserved: ['10.244.0.0/16', '10.96.0.0/12'] };

const pods = (...prefixes: string[]): WantedPrefix[] =>
  prefixes.map((prefix) => ({ prefix, use: 'Pods' as const }));
const view = (prefix: string, as: string): PeerView => ({ prefix, as, use: 'Pods' });
const seen = (ipam: Ipam, owner: string, wanted: string[], may?: string[]): string[] =>
  ipam.assign(owner, pods(...wanted), ownAddressesOf(may)).views.map(({ as }) => as);

test('without a word, no prefix of a peer is seen as itself, be it a database or the metadata of a cloud', () => {
  const claimed = ['10.50.0.0/16', '100.100.100.0/24', '192.168.0.0/16', '172.16.0.0/12', 'fd00:7::/48'];
  expect(seen(new Ipam(OPTIONS), 'a', claimed)).toEqual([
    '100.64.0.0/16',
    '100.65.0.0/24',
    '100.66.0.0/16',
    '100.80.0.0/12',
    'fdcc::/48',
  ]);
});

test('what a person has named is kept, and what lies within it; nothing wider, and nothing beside it', () => {
  const wanted = ['10.50.0.0/16', '10.51.4.0/24', '10.52.0.0/15', '2a00:7::/48'];
  expect(seen(new Ipam(OPTIONS), 'a', wanted, ['10.50.0.0/15', '10.52.0.0/16', '2a00:7::/32'])).toEqual([
    '10.50.0.0/16',
    '10.51.4.0/24',
    '100.64.0.0/15',
    '2a00:7::/48',
  ]);
});

test('named or not, what we use is not given, nor what every node asks for its identity', () => {
  const wanted = ['10.244.7.0/24', '100.100.100.200/32', 'fd00:ec2::/48', '192.0.0.0/24', '168.63.129.0/24'];
  for (const may of [wanted, ['0.0.0.0/0', '::/0'], ['Any']]) {
    const views = seen(new Ipam(OPTIONS), 'a', wanted, may);
    expect(views.filter((as) => !/^(100\.64|100\.65|fdcc)/.test(as))).toEqual([]);
    expect(views).toHaveLength(wanted.length);
  }
});

test('a pool leaves out the metadata of a cloud', () => {
  const ipam = new Ipam({ pools: ['100.100.0.0/16'], reserved: [] });
  const all = Array.from({ length: 6 }, (_, at) => seen(ipam, `peer-${at}`, ['10.0.0.0/18'])).flat();
  expect(all).toEqual(['100.100.0.0/18', '100.100.128.0/18', '100.100.192.0/18']);
  expect(seen(ipam, 'small', ['10.9.9.0/24'])).toEqual(['100.100.64.0/24']);
  expect(seen(ipam, 'whole', ['10.9.0.0/16'])).toEqual([]);
});

test('Any is every private range, up to as many addresses as a /10', () => {
  const many = Array.from({ length: 256 }, (_, at) => `10.${at}.0.0/16`);
  const ipam = new Ipam({ pools: ['100.64.0.0/10'], reserved: [] });
  const views = seen(ipam, 'a', ['8.8.8.0/24', '192.168.0.0/16', ...many], ['Any']);
  expect(views.filter((as) => as.startsWith('100.'))).toHaveLength(1 + 48 - 1);
  expect(views.filter((as) => as.startsWith('10.') || as.startsWith('192.'))).toHaveLength(64);
  expect(seen(new Ipam(OPTIONS), 'b', ['10.0.0.0/9', 'fd00::/32'], ['Any'])).toEqual(['fdcc::/32']);
});

test('a view of before stays without a word, and follows one', () => {
  const before = [view('10.50.0.0/16', '10.50.0.0/16'), view('10.60.0.0/16', '100.70.0.0/16')];
  const after = (may?: string[]): string[] => {
    const ipam = new Ipam(OPTIONS);
    expect(ipam.restore('a', before)).toEqual([]);
    const views = seen(ipam, 'a', ['10.50.0.0/16', '10.60.0.0/16'], may);
    expect(seen(ipam, 'a', ['10.50.0.0/16', '10.60.0.0/16'], may)).toEqual(views);
    return views;
  };
  expect(after()).toEqual(['10.50.0.0/16', '100.70.0.0/16']);
  expect(after([])).toEqual(['100.71.0.0/16', '100.70.0.0/16']);
  expect(after(['10.60.0.0/16'])).toEqual(['100.64.0.0/16', '10.60.0.0/16']);
  // Nobody has named it, and its connections would end.
  expect(after(['Any'])).toEqual(['10.50.0.0/16', '100.70.0.0/16']);
});

test('one that lies where the metadata of a cloud is goes', () => {
  const ipam = new Ipam(OPTIONS);
  const before = [view('100.100.100.0/24', '100.100.100.0/24'), view('10.9.0.0/16', '100.100.0.0/16')];
  expect(ipam.restore('a', before)).toHaveLength(2);
  expect(seen(ipam, 'a', ['100.100.100.0/24', '10.9.0.0/16'])).toEqual(['100.64.0.0/24', '100.65.0.0/16']);
});

test('it is told which views nobody has allowed, and whether all are as they may be', () => {
  const views = [view('10.50.0.0/16', '10.50.0.0/16'), view('10.60.0.0/16', '100.70.0.0/16')];
  const asked = (may?: string[]): [string[], boolean] => [
    notPermitted(views, ownAddressesOf(may)).map(({ prefix }) => prefix),
    areAsPermitted(views, ownAddressesOf(may)),
  ];
  expect(asked()).toEqual([['10.50.0.0/16'], false]);
  expect(asked([])).toEqual([['10.50.0.0/16'], false]);
  expect(asked(['10.50.0.0/16'])).toEqual([[], true]);
  expect(asked(['Any'])).toEqual([[], false]);
  expect(asked(['nonsense', '10.50.0.1/16'])).toEqual([['10.50.0.0/16'], false]);
});
