import { expect, test } from '@jest/globals';
import { parseSeconds } from '../../../src/cli/durations.ts';

test.each([
  ['1s', 1],
  ['90s', 90],
  ['5m', 300],
  ['24h', 86_400],
  ['3650d', 315_360_000],
])('%s is %i seconds', (text, seconds) => {
  expect(parseSeconds(text)).toBe(seconds);
});

test.each(['', '0s', '5', '1.5h', '-1s', '1w', '1S', 'NaNs', '3651d'])('"%s" is no duration', (text) => {
  expect(() => parseSeconds(text)).toThrow(/is not a duration from 1s to 3650d/);
});

test('bounds belong to what is taken', () => {
  const bounds = { least: 0, most: 86_400 };
  expect(['0s', '1d'].map((text) => parseSeconds(text, bounds))).toEqual([0, 86_400]);
  expect(() => parseSeconds('25h', bounds)).toThrow(
    '"25h" is not a duration from 0s to 1d, such as 60s or 1h',
  );
});

test('a wrong one is told with its option', () => {
  expect(() => parseSeconds('5', { option: 'lost-after', least: 10, most: 604_800 })).toThrow(
    /^--lost-after: "5" is not a duration from 10s to 7d, such as 60s or 1h$/,
  );
});
