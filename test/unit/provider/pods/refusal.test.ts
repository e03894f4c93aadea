import { expect, test } from '@jest/globals';
import { type ErrorCode, TributaryError } from '../../../../src/lib/errors.ts';
import { refusalOf } from '../../../../src/provider/pods/refusal.ts';

test.each<[ErrorCode, string, string | undefined]>([
  ['Forbidden', 'exceeded quota: tributary', 'ExceededQuota'],
  ['Forbidden', 'violates PodSecurity', 'Forbidden'],
  ['Invalid', 'spec.x: Invalid value', 'Invalid'],
  ['NotFound', 'namespaces "t" not found', 'TenantNamespaceNotFound'],
  ['Conflict', 'x', undefined],
  ['Unavailable', 'x', undefined],
  ['Unavailable', 'Internal error occurred: failed calling webhook "quota": timeout', 'Forbidden'],
  ['Unreachable', 'x', undefined],
  ['Unauthorized', 'x', undefined],
  ['TooManyRequests', 'x', undefined],
])('%s "%s" is refused as %s', (code, message, reason) => {
  expect(refusalOf(new TributaryError(code, message))?.reason).toBe(reason);
});
