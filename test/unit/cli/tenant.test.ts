import { expect, test } from '@jest/globals';
import { parseCidrs, parseClasses, parseNodeSelector, parseTolerations } from '../../../src/cli/tenant.ts';

test('a node selector is labels with values', () => {
  expect(parseNodeSelector(undefined)).toBeUndefined();
  expect(parseNodeSelector('a=b, example.com/lends=yes')).toEqual({ a: 'b', 'example.com/lends': 'yes' });
  expect(parseNodeSelector('a=')).toEqual({ a: '' });
});

test.each(['a', 'a=b=c', '=b', 'a=b c', 'A.B/=x', `${'k'.repeat(400)}=v`])('no node selector: %s', (text) => {
  expect(() => parseNodeSelector(text)).toThrow('is not of the form label=value');
});

test.each([
  ['a', { key: 'a', operator: 'Exists' }],
  ['a=b', { key: 'a', operator: 'Equal', value: 'b' }],
  ['example.com/a:NoSchedule', { key: 'example.com/a', operator: 'Exists', effect: 'NoSchedule' }],
  ['a=b:NoExecute', { key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute' }],
])('the toleration %s', (text, wanted) => {
  expect(parseTolerations(text)).toEqual([wanted]);
});

test.each(['a:Never', ':NoSchedule', '=b', 'a=b=c', 'a:NoSchedule:NoExecute', 'a"b'])(
  'no toleration: %s',
  (text) => {
    expect(() => parseTolerations(text)).toThrow('is not of the form');
  },
);

test('classes are names and ranges are CIDRs', () => {
  expect(parseClasses('storage class', 'fast,rook.ceph')).toEqual(['fast', 'rook.ceph']);
  expect(() => parseClasses('storage class', 'Fast')).toThrow('storage class');
  expect(parseCidrs(undefined)).toBeUndefined();
  expect(parseCidrs('10.0.0.0/8,fd00::/8')).toEqual(['10.0.0.0/8', 'fd00::/8']);
  expect(() => parseCidrs('10.0.0.1/8')).toThrow('is not a CIDR');
});
