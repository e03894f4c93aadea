import { expect, test } from '@jest/globals';

import { COOKIE, foreignTo, SECURITY_HEADERS, sessionIn } from '../../../../src/server/dashboard/guard.ts';

const HOST = { host: '127.0.0.1:8090' };
const OURS = { ...HOST, 'x-tributary-page': '1' };

test.each([
  ['GET', HOST],
  ['GET', { host: 'localhost:8090', 'sec-fetch-site': 'none' }],
  ['GET', { ...HOST, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
  ['POST', OURS],
  ['POST', { ...OURS, origin: 'http://127.0.0.1:8090', 'sec-fetch-site': 'same-origin' }],
])('%s with %j comes in', (method, headers) => expect(foreignTo(method, headers)).toBeUndefined());

test.each([
  ['another name of this machine', 'GET', { host: 'evil.example:8090' }],
  ['no name', 'GET', {}],
  ['a name that begins like ours', 'GET', { host: 'localhost.evil.example' }],
  [
    'a script of another site',
    'GET',
    { ...HOST, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
  ],
  ['the origin of another page', 'GET', { ...HOST, origin: 'http://127.0.0.1:3000' }],
  ['a form', 'POST', HOST],
  ['a sandbox', 'POST', { ...OURS, origin: 'null' }],
  ['another port of this machine', 'POST', { ...OURS, 'sec-fetch-site': 'same-site' }],
])('%s is turned away', (_what, method, headers) =>
  expect(foreignTo(method, headers)).toMatch(/another page|port-forward/),
);

test('the cookie is found among others', () => {
  expect(sessionIn({ cookie: `a=1; ${COOKIE}=abc; b=2` })).toBe('abc');
  expect(sessionIn({ cookie: `x${COOKIE}=abc` })).toBeUndefined();
  expect(sessionIn({})).toBeUndefined();
});

test('nothing inline, nothing from elsewhere, no frame', () => {
  const policy = SECURITY_HEADERS['Content-Security-Policy'];
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|\*|https?:/);
});
