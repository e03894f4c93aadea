import { expect, test } from '@jest/globals';
import { compareResourceVersions, isOlder } from '../../../src/kube/resource-version.ts';
import { parseStatus, statusError, watchError } from '../../../src/kube/status-error.ts';

test.each<[number, string | undefined, string]>([
  [400, 'BadRequest', 'Invalid'],
  [401, 'Unauthorized', 'Unauthorized'],
  [403, 'Forbidden', 'Forbidden'],
  [404, 'NotFound', 'NotFound'],
  [405, 'MethodNotAllowed', 'Invalid'],
  [408, undefined, 'Unavailable'],
  [409, 'AlreadyExists', 'AlreadyExists'],
  [409, 'Conflict', 'Conflict'],
  [409, undefined, 'Conflict'],
  [410, 'Expired', 'Expired'],
  [413, 'RequestEntityTooLarge', 'Invalid'],
  [422, 'Invalid', 'Invalid'],
  [429, 'TooManyRequests', 'TooManyRequests'],
  [500, 'InternalError', 'Unavailable'],
  [503, 'ServiceUnavailable', 'Unavailable'],
  [504, 'Timeout', 'Unavailable'],
  [302, undefined, 'Unavailable'],
])('HTTP %d with reason %s is %s', (status, reason, code) => {
  const error = statusError(status, { message: 'why', reason }, { what: 'get pod a' });
  expect(error).toMatchObject({ code, status, message: 'get pod a: why' });
});

test.each<[string, unknown]>([
  ['null', null],
  ['a list', []],
  ['a string', 'x'],
  ['wrong types', { message: 7, reason: {}, details: { retryAfterSeconds: 'soon' }, code: 'x' }],
  ['null details', { details: null }],
])('a Status that is %s still makes an error', (_what, body) => {
  expect(statusError(500, body, { what: 'x' })).toMatchObject({
    message: 'x: HTTP 500',
    retryAfterMs: undefined,
  });
  expect(watchError(body, 'x')).toMatchObject({ code: 'Unavailable' });
});

test('how long to wait comes from the header or the body, within reason', () => {
  const of = (retryAfter: string | undefined, seconds?: unknown): number | undefined =>
    statusError(429, { details: { retryAfterSeconds: seconds } }, { what: 'x', retryAfter }).retryAfterMs;
  expect([of('3'), of(undefined, 4), of('3', 4)]).toEqual([3000, 4000, 3000]);
  expect([of('soon'), of('-1'), of(undefined, -1)]).toEqual([undefined, undefined, undefined]);
  expect([of('60'), of('86400'), of('1e99'), of(undefined, 3600)]).toEqual([60_000, 60_000, 60_000, 60_000]);
});

test('a message of endless length is cut', () => {
  expect(statusError(500, { message: 'x'.repeat(1e6) }, { what: 'x' }).message.length).toBeLessThan(2100);
});

test('a page of HTML from a proxy becomes one line', () => {
  expect(parseStatus(Buffer.from('<html>\n <b>Bad\tgateway</b>\n'))).toEqual({
    message: '<html> <b>Bad gateway</b>',
  });
});

test.each<[string, string, number | undefined]>([
  ['9', '10', -1],
  ['10', '9', 1],
  ['10', '10', 0],
  ['9007199254740993', '9007199254740992', 1],
  ['', '1', undefined],
  ['abc', '1', undefined],
  ['01', '1', undefined],
  ['-1', '1', undefined],
])('%j against %j', (a, b, sign) => {
  const order = compareResourceVersions(a, b);
  expect(order === undefined ? undefined : Math.sign(order)).toBe(sign);
  expect(isOlder(a, b)).toBe(sign === -1);
});

test.each([400, 404, 422])(
  'HTTP %d without a reason comes from something on the way, and passes',
  (status) => {
    expect(statusError(status, { message: 'page not found' }, { what: 'x' }).code).toBe('Unavailable');
  },
);
