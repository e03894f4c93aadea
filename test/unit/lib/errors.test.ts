import { expect, test } from '@jest/globals';
import { errorMessage } from '../../../src/lib/errors.ts';

test.each([
  ['text', 'text'],
  [undefined, 'undefined'],
  [new Error(''), 'unknown error'],
  [new Error('outer', { cause: new Error('inner') }), 'outer: inner'],
  [new Error('outer for inner', { cause: new Error('inner') }), 'outer for inner'],
  [new AggregateError([]), 'unknown error'],
  // As Node says that none of several addresses answers.
  [
    new AggregateError([new Error('refused at ::1'), new Error('refused at 127.0.0.1')]),
    'refused at ::1, refused at 127.0.0.1',
  ],
  [new AggregateError([new Error('one')], 'all in one'), 'all in one'],
])('the message of %p', (error, expected) => {
  expect(errorMessage(error)).toBe(expected);
});
