import { expect, test } from '@jest/globals';
import { TributaryError } from '../../../src/lib/errors.ts';
import { awaited, eventually } from '../../support/eventually.ts';

const answers = (...given: unknown[]) => {
  let index = 0;
  return async (): Promise<boolean> => {
    const answer = given[Math.min(index++, given.length - 1)];
    if (Error.isError(answer)) throw answer;
    return Promise.resolve(answer as boolean);
  };
};
const notServed = new TributaryError('Unavailable', 'get Timetable first: 404 page not found');

test('a server that does not serve yet is asked again', async () => {
  await eventually('it is there', answers(notServed, false, notServed, true));
});

test('another failure ends the wait at once', async () => {
  const forbidden = new TributaryError('Forbidden', 'you may not');
  await expect(eventually('it is there', answers(false, forbidden, true))).rejects.toBe(forbidden);
  const fault = new TypeError('no such field');
  await expect(eventually('it is there', answers(fault, true))).rejects.toBe(fault);
});

test('a missed deadline says what was waited for, the last failure and what was seen last', async () => {
  const seen = async (): Promise<object> => Promise.resolve({ items: 3 });
  await expect(awaited('it is there', answers(notServed), { deadlineMs: 0, seen })).rejects.toThrow(
    /^not within 0 ms: it is there; get Timetable first: 404 page not found; \{\s*"items": 3\s*\}$/v,
  );
  await expect(eventually('it is there', answers(notServed, false), 20)).rejects.toThrow(
    /^not within 60 ms: it is there$/v,
  );
});
