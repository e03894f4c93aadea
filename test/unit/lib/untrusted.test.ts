import { expect, test } from '@jest/globals';
import { mapAt, quoted } from '../../../src/lib/untrusted.ts';

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
  const map = mapAt('m', JSON.parse('{"__proto__":{"a":1}}'), {
    most: 1,
    entry: (_at, _key, value) => value,
  });
  expect(Object.keys(map)).toEqual(['__proto__']);
  expect(Object.getPrototypeOf(map)).toBe(Object.prototype);
  expect(map['a']).toBeUndefined();
});
