import { expect, test } from '@jest/globals';
import { hasCode } from '../../../../src/lib/errors.ts';
import { formatJoinToken, parseJoinToken } from '../../../../src/peering/join/token.ts';
import { fc } from '../../../support/property.ts';

const ID = 'abcdefghijklmnopqrstuvwx23';
const SECRET = `${'Az09_-'.repeat(7)}x`;
const TEXT = `${ID}.lab-1.${SECRET}`;

test('what is written is read again, with the blanks that a file or a terminal adds', () => {
  const token = { clusterID: ID, name: 'lab-1', secret: SECRET };
  expect(formatJoinToken(token)).toBe(TEXT);
  expect(parseJoinToken(TEXT)).toEqual(token);
  expect(parseJoinToken(` ${TEXT}\n`)).toEqual(token);
});

test.each([
  ['nothing', ''],
  ['a cluster ID alone', ID],
  ['two parts', `${ID}.lab`],
  ['four parts', `${TEXT}.x`],
  ['a short ID', TEXT.slice(1)],
  ['an ID of other letters', TEXT.replace('a', 'A')],
  ['an empty name', `${ID}..${SECRET}`],
  ['a name that is a path', `${ID}.../x.${SECRET}`],
  ['a name with a slash', `${ID}.a/b.${SECRET}`],
  ['a name that is too long', `${ID}.${'n'.repeat(41)}.${SECRET}`],
  ['a short secret', TEXT.slice(0, -1)],
  ['a long secret', `${TEXT}A`],
  ['a secret with other letters', `${TEXT.slice(0, -1)}=`],
  ['a million characters', 'a'.repeat(1e6)],
])('refuses %s, and does not repeat it', (_what, text) => {
  expect(() => parseJoinToken(text)).toThrow('not of the form');
  try {
    parseJoinToken(text);
  } catch (error) {
    expect((error as Error).message).not.toContain(SECRET.slice(0, 10));
  }
});

test('whatever is thrown at it, it is Invalid or it is the same text', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' })), (text) => {
      try {
        return formatJoinToken(parseJoinToken(text)) === text.trim();
      } catch (error) {
        return hasCode(error, 'Invalid');
      }
    }),
    { numRuns: 300 },
  );
});
