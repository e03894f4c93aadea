import { expect, test } from '@jest/globals';

import type { PeerView } from '../../../../src/api/tunnel.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { AddressBook } from '../../../../src/network/exchange/address-book.ts';
import { ownAddressesOf, UNSAID } from '../../../../src/network/ipam/own-addresses.ts';
import { tunnelOf } from '../../../support/network/tunnels.ts';

/** Here each peer may keep its own private addresses. */
const ANY = ownAddressesOf(['Any']);

const pods = (prefix: string): { prefix: string; use: 'Pods' }[] => [{ prefix, use: 'Pods' }];

class Ranges {
  reserved: string[] = ['10.96.0.0/16'];
  avoided: string[] = [];
}

function bookOf(ranges: Ranges, views: Record<string, PeerView[]> = {}): AddressBook {
  const book = new AddressBook({
    pools: ['100.64.0.0/10'],
    reserved: () => ranges.reserved,
    avoided: () => ranges.avoided,
    log: silentLogger,
  });
  book.restore(Object.entries(views).map(([name, list]) => tunnelOf(name, { status: { views: list } })));
  return book;
}

const seen = (book: AddressBook, peer: string, prefix: string): string | undefined =>
  book.assign(peer, pods(prefix), ANY).views[0]?.as;

test('no peer becomes seen where a route of ours leads, above it or within it', () => {
  const book = bookOf(Object.assign(new Ranges(), { avoided: ['10.20.0.0/16', '10.30.5.0/24'] }));
  expect(seen(book, 'a', '10.20.0.0/16')).toBe('100.64.0.0/16');
  expect(seen(book, 'b', '10.20.7.0/24')).toMatch(/^100\./);
  expect(seen(book, 'c', '10.30.0.0/16')).toMatch(/^100\./);
  expect(seen(book, 'd', '10.31.0.0/16')).toBe('10.31.0.0/16');
});

test('nor out of a part of the pool that is routed elsewhere', () => {
  const book = bookOf(Object.assign(new Ranges(), { avoided: ['100.64.0.0/16', '10.20.0.0/16'] }));
  expect(seen(book, 'a', '10.20.0.0/16')).toBe('100.65.0.0/16');
});

test('a view of before there was the route stays, also over a restart; what it gives back is gone', () => {
  const ranges = new Ranges();
  const first = bookOf(ranges);
  expect(seen(first, 'a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  ranges.avoided = ['10.0.0.0/8'];
  expect(seen(first, 'a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  expect(seen(first, 'b', '10.21.0.0/16')).toMatch(/^100\./);
  const second = bookOf(ranges, { a: first.views('a') });
  expect(seen(second, 'a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  for (const book of [first, second]) {
    book.release('a');
    expect(seen(book, 'c', '10.20.0.0/16')).toMatch(/^100\./);
  }
});

test('one that wants less than before gives back the rest, too', () => {
  const ranges = new Ranges();
  const book = bookOf(ranges);
  expect(seen(book, 'a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  ranges.avoided = ['10.20.0.0/16'];
  expect(seen(book, 'a', '10.22.0.0/16')).toBe('10.22.0.0/16');
  expect(seen(book, 'b', '10.20.0.0/16')).toMatch(/^100\./);
});

test('what is reserved cannot stay', () => {
  const ranges = new Ranges();
  const view: PeerView = { prefix: '10.20.0.0/16', as: '10.20.0.0/16', use: 'Pods' };
  ranges.reserved = ['10.20.0.0/16'];
  expect(seen(bookOf(ranges, { a: [view] }), 'a', '10.20.0.0/16')).toBe('100.64.0.0/16');
});

test('without a word every peer gets a range of the pools; one that had its own keeps it', () => {
  const view: PeerView = { prefix: '10.20.0.0/16', as: '10.20.0.0/16', use: 'Pods' };
  const book = bookOf(new Ranges(), { a: [view] });
  const unasked = (peer: string, prefix: string): string | undefined =>
    book.assign(peer, pods(prefix), UNSAID).views[0]?.as;
  expect(unasked('a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  expect(unasked('b', '10.21.0.0/16')).toBe('100.64.0.0/16');
  // Made again, the Tunnel is like that of any other peer; where all is as it may be, nothing changes.
  book.renew('b', UNSAID);
  expect(unasked('b', '10.21.0.0/16')).toBe('100.64.0.0/16');
  book.renew('a', UNSAID);
  expect(unasked('a', '10.20.0.0/16')).toBe('100.65.0.0/16');
});

test('a Tunnel that is made again keeps its views, unless there is a route by now: then others, apart from it', () => {
  const ranges = new Ranges();
  const book = bookOf(ranges);
  expect(seen(book, 'a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  expect(seen(book, 'b', '10.21.0.0/16')).toBe('10.21.0.0/16');
  ranges.avoided = ['10.20.8.0/24'];
  // A route alone changes nothing.
  expect(seen(book, 'a', '10.20.0.0/16')).toBe('10.20.0.0/16');
  for (const peer of ['a', 'b']) book.renew(peer);
  expect(seen(book, 'a', '10.20.0.0/16')).toMatch(/^100\./);
  expect(seen(book, 'b', '10.21.0.0/16')).toBe('10.21.0.0/16');
});
