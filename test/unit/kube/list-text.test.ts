import { describe, expect, it, jest } from '@jest/globals';

import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import { ListText } from '../../../src/kube/list-text.ts';
import { itemsOf, pageOf } from '../../../src/kube/objects.ts';

const METADATA = { resourceVersion: '7', continue: 'more' };

const map = (name: string, data: Record<string, unknown> = {}): unknown => ({ metadata: { name }, data });

/** About 1 KB each. */
const many = (count: number): unknown[] =>
  Array.from({ length: count }, (_none, index) => map(`m${index}`, { text: 'x'.repeat(1000) }));

const textOf = (items: unknown, more: object = {}): string =>
  JSON.stringify({ kind: 'ConfigMapList', apiVersion: 'v1', metadata: METADATA, items, ...more });

/** @param size of the pieces in which it comes; by default it comes in one */
function parsed(
  text: string,
  size: number = Infinity,
): { items: ConfigMap[]; parts: number; resourceVersion: string; next: string } {
  const what = 'list maps';
  const list = new ListText({ what, mostLength: 64 * 1024 * 1024 });
  const parts: ConfigMap[][] = [];
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += size)
    for (const items of list.add(bytes.subarray(from, from + size)))
      parts.push(itemsOf(configMaps, items, what));
  const last = pageOf(configMaps, list.end(), what);
  return {
    items: [...parts.flat(), ...last.items],
    parts: parts.length + 1,
    resourceVersion: last.resourceVersion,
    next: last.continue ?? '',
  };
}

const whole = (items: readonly unknown[]): unknown[] =>
  items.map((item) => ({ apiVersion: 'v1', kind: 'ConfigMap', ...(item as object) }));

describe('a list', () => {
  it('that is long is parsed in parts, the last of which says of which version it is', () => {
    const items = many(300);
    const found = parsed(textOf(items));
    expect(found.items).toStrictEqual(whole(items));
    expect(found).toMatchObject({ resourceVersion: '7', next: 'more' });
    expect(found.parts).toBeGreaterThan(3);
  });

  it.each<[string, string, readonly unknown[]]>([
    ['is empty', textOf([]), []],
    ['is null', textOf(null), []],
    ['has one item', textOf(many(1)), many(1)],
    ['has white space', JSON.stringify(JSON.parse(textOf(many(100))), undefined, 1), many(100)],
    ['has its items first', `{"items":${JSON.stringify(many(100))},"metadata":{}}`, many(100)],
    ['has another array after its items', textOf(many(100), { zz: [1] }), many(100)],
    [
      'has a field of that name within',
      textOf([map('a', { items: [{ b: 1 }] })]),
      [map('a', { items: [{ b: 1 }] })],
    ],
  ])('that %s is as it was', (_, text, items) => {
    expect(parsed(text).items).toStrictEqual(whole(items));
  });

  const pair = Array.from({ length: 100 }, (_none, index) => ({
    metadata: { name: `${index}` },
    x: 'x'.repeat(500),
  }));

  it.each<[string, unknown[]]>([
    ['look like the place between two', many(3).flatMap((item) => [item, map('nested', { list: pair })])],
    [
      'hold the text of such a place',
      [...many(100), map('a', { text: `${'y'.repeat(70_000)}},{"metadata":{` }), ...many(100)],
    ],
    ['are long alone', [map('a', { text: 'z'.repeat(200_000) }), map('b', { text: 'z'.repeat(200_000) })]],
  ])('is as it was where items %s', (_, items) => {
    expect(parsed(textOf(items)).items).toStrictEqual(whole(items));
  });

  it.each<[string, string, string]>([
    ['no JSON', '{"items":[', 'not JSON'],
    ['an array', '[]', 'not an object'],
    ['without items', '{"metadata":{}}', 'not a list'],
    ['without metadata', '{"items":[]}', 'not a list'],
    ['with a number for an item', textOf([...many(200), 5]), 'not an object'],
    ['cut short', textOf(many(300)).slice(0, 200_000), 'not JSON'],
    ['with a second end', `${textOf(many(300))}]`, 'not JSON'],
    [
      'with an item twice after a comma too many',
      textOf(many(300)).replace('},{"metadata"', '},,{"metadata"'),
      'not JSON',
    ],
  ])('%s is refused', (_, text, message) => {
    expect(() => parsed(text)).toThrow(message);
  });
});

describe('a list that comes in pieces', () => {
  it.each([7, 1000, 65_536])('of %d bytes is as it was', (size) => {
    const items = [...many(150), map('ö', { text: 'é€😀'.repeat(20_000) }), ...many(150)];
    const found = parsed(textOf(items), size);
    expect(found.items).toStrictEqual(whole(items));
    expect(found.parts).toBeGreaterThan(3);
  });

  it('has an item that is longer than may be held', () => {
    const list = new ListText({ what: 'list maps', mostLength: 100_000 });
    const text = Buffer.from(textOf([map('a', { text: 'z'.repeat(200_000) })]));
    const read = (): unknown => [...list.add(text.subarray(0, 90_000)), ...list.add(text.subarray(90_000))];
    expect(read).toThrow('list maps: the answer has a part that is longer than 100000 characters');
  });
});

it('is cut at no cost that grows with the square of its length', () => {
  const nested = Array.from({ length: 20_000 }, () => ({ metadata: { name: 'n' }, x: 'x'.repeat(100) }));
  const text = textOf([map('a', { list: nested })]);
  const parse = jest.spyOn(JSON, 'parse');
  expect(parsed(text, 5000).parts).toBe(1);
  const tried = parse.mock.calls.reduce((sum, [one]) => sum + one.length, 0);
  parse.mockRestore();
  // All tries together, and the whole once more.
  expect(tried).toBeLessThan(3.5 * text.length);
});

it.each<[string, string]>([
  ['nothing that it looks for', ''],
  ['an item that does not end', `{"items":[{"metadata":{"name":"`],
])('is not looked through for each piece that comes, where a peer sends %s', (_, begin) => {
  const list = new ListText({ what: 'list maps', mostLength: 64 * 1024 * 1024 });
  const piece = Buffer.alloc(64 * 1024, ' ');
  const looks = jest.spyOn(String.prototype, 'indexOf');
  try {
    expect([...list.add(Buffer.from(begin))]).toEqual([]);
    for (let count = 0; count < 500; count++) expect([...list.add(piece)]).toEqual([]);
    const lengths = looks.mock.contexts
      .map((text) => String(text).length)
      .filter((length) => length > 300_000);
    expect(lengths.length).toBeLessThan(20);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(4 * 500 * piece.length);
  } finally {
    looks.mockRestore();
  }
});
