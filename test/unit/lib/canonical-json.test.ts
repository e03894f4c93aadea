import { expect, test } from '@jest/globals';
import { canonicalText } from '../../../src/lib/canonical-json.ts';
import { fc } from '../../support/property.ts';

test('keys are sorted by UTF-16 code units, numbers and text are as in RFC 8785', () => {
  const value = { '\u20ac': 1, '\r': 2, 1: 4.5, '\ud83d\ude00': 1e30, a: [true, null, 0.002, 'é\u000f"\\'] };
  expect(canonicalText(value)).toBe(
    '{"\\r":2,"1":4.5,"a":[true,null,0.002,"é\\u000f\\"\\\\"],"€":1,"😀":1e+30}',
  );
});

test.each([
  ['undefined', undefined],
  ['NaN', { amount: Number.NaN }],
  ['Infinity', [Number.POSITIVE_INFINITY]],
  ['a function', () => 1],
  ['a lone surrogate', { text: '\ud800' }],
])('%s has no canonical form', (_name, value) => {
  expect(() => canonicalText(value)).toThrow(expect.objectContaining({ code: 'Invalid' }));
});

test('a property that is undefined counts as absent, as JSON would send it', () => {
  expect(canonicalText({ a: undefined, b: 1 })).toBe('{"b":1}');
});

/** The same value with the keys of every object the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reversed(item)]),
  );
}

test('the order of keys is of no account, and parsing gives the value back', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      // Lone surrogates are refused; fast-check makes none by default.
      const text = canonicalText(value);
      expect(canonicalText(reversed(value))).toBe(text);
      expect(canonicalText(JSON.parse(text))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});
