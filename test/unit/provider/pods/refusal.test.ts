import { expect, test } from '@jest/globals';
import { type ErrorCode, TributaryError } from '../../../../src/lib/errors.ts';
import { failureToTell, refusalOf, withPolicy } from '../../../../src/provider/pods/refusal.ts';

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

test('a budget of writes that is spent is told apart from a server with too much to do', () => {
  const causes = [{ reason: 'WriteBudgetSpent', message: 'x' }];
  expect(refusalOf(new TributaryError('TooManyRequests', 'x', { causes, retryAfterMs: 7000 }))).toEqual({
    reason: 'WriteBudgetSpent',
    message: 'x',
    retryAfterMs: 7000,
  });
});

test.each([
  ['violates PodSecurity "baseline:latest": privileged (container "main" ...)', 'podSecurity'],
  ['their priority is bounded by the annotation tributary.dev/max-priority', 'maxPriority'],
  ['"" by the annotation tributary.dev/runtime-class of the namespace, not "gvisor"', 'runtimeClassName'],
  ['labels in the annotation tributary.dev/node-selector of the namespace', 'nodeSelector'],
  ['pods of peers run as no account of this cluster', undefined],
])('%s: the field of the policy is %s', (message, field) => {
  const refusal = { reason: 'Forbidden', message } as const;
  const said = field === undefined ? '' : ` (${field} of the provider's SharingPolicy "guests")`;
  expect(withPolicy(refusal, 'guests')).toEqual({ reason: 'Forbidden', message: `${message}${said}` });
  expect(withPolicy(refusal, undefined)).toEqual(refusal);
});

test.each([
  ['Forbidden', 'pods is forbidden', 'ForeignAccessDenied'],
  ['Unavailable', 'create Pod a in t: etcdserver: mvcc: database space exceeded', 'ForeignWriteFailed'],
  ['Unavailable', 'failed calling webhook "x.example.org": context deadline exceeded', 'ForeignWriteFailed'],
  ['Unavailable', 'etcdserver: leader changed', undefined],
  ['Unreachable', 'connection failed', undefined],
  ['Conflict', 'the object has been modified', undefined],
] as const)('%s, %s: the owner is told %s', (code, message, reason) => {
  expect(failureToTell(new TributaryError(code, message))).toBe(reason);
});
