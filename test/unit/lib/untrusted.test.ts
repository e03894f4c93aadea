import { expect, test } from '@jest/globals';
import {
  boolean,
  map,
  matching,
  orNull,
  quoted,
  record,
  shownText,
  text,
} from '../../../src/lib/untrusted.ts';

test.each([
  ['plain', '"plain"'],
  ['"\\', '"\\"\\\\"'],
  ['line\nline', '"line\\nline"'],
  ['\u001b[31m', '"\\u001b[31m"'],
  ['\u009b31m\u202eabc\u2028', '"\\u{9b}31m\\u{202e}abc\\u{2028}"'],
  ['x'.repeat(81), `"${'x'.repeat(80)}..."`],
])('what a peer wrote is quoted without what a terminal obeys (%#)', (text, shown) => {
  expect(quoted(text)).toBe(shown);
});

test('a key __proto__ becomes a key, not a prototype', () => {
  const found = map((value) => value, 1)(JSON.parse('{"__proto__":{"a":1}}'), 'm');
  expect(Object.keys(found)).toEqual(['__proto__']);
  expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
  expect(found['a']).toBeUndefined();
});

test('a record reads own fields only, and leaves out what its form does not name', () => {
  const check = record({ a: boolean }, { b: boolean });
  const inherited: unknown = Object.create({ a: true });
  expect(() => check(inherited, 'r')).toThrow('r.a is missing');
  expect(check({ a: true, c: 1 }, 'r')).toEqual({ a: true });
});

test('null counts as absent only where the form says so', () => {
  expect(record({}, { b: orNull(boolean) })({ b: null }, 'r')).toEqual({});
  expect(() => record({}, { b: boolean })({ b: null }, 'r')).toThrow('r.b is not true or false');
  expect(() => record({ a: boolean })({ a: null }, 'r')).toThrow('r.a is not true or false');
});

test('a text that may be a secret is not quoted where it is refused, another one is', () => {
  expect(() => text({ most: 9, pattern: /^a$/ })('hunter2', 't')).toThrow(/^t holds characters/);
  expect(() => matching(/^a$/, 9)('hunter2', 't')).toThrow('t is malformed: "hunter2"');
});

test('a text of several lines keeps its lines, and nothing that a terminal would obey', () => {
  expect(shownText('one\ntwo\tthree', 100)).toBe('one\ntwo\tthree');
  expect(shownText('\u0000\u001b[2J\r\u007f\u0085\u009b', 100)).toBe('  [2J    ');
  expect(shownText('\u202eabc\u2066\u200f\u061c\u2028', 100)).toBe(' abc    ');
  expect(shownText('a👍\ud83d', 100)).toBe('a👍\ufffd');
  expect(shownText('x'.repeat(50), 20)).toBe(`${'x'.repeat(9)} [cut here]`);
  expect(shownText('x'.repeat(20), 20)).toBe('x'.repeat(20));
});
