import { expect, test } from '@jest/globals';
import { checkedLabel, checkedSubdomain, checkedUnique } from '../../../src/api/manifest.ts';

test.each([
  ['', 'peer is empty'],
  ['Rome', 'peer "Rome" is not a DNS name'],
  ['-rome', 'is not a DNS name'],
  ['rome-', 'is not a DNS name'],
  ['ro.me', 'is not a DNS name'],
  ["rome'\n", 'is not a DNS name'],
  ['r'.repeat(64), 'has 64 characters, at most 63 are allowed'],
])('refuses the label %j in one line', (name, message) => {
  expect(() => checkedLabel('peer', name)).toThrow(message);
});

test('takes labels, and dots only where a subdomain is meant', () => {
  expect(checkedLabel('peer', 'rome-1')).toBe('rome-1');
  expect(checkedSubdomain('node', 'node-1.example')).toBe('node-1.example');
  expect(() => checkedSubdomain('node', 'a..b')).toThrow('or dots');
});

test('refuses a name given twice', () => {
  expect(() => checkedUnique('namespace', ['a', 'b', 'a'])).toThrow('namespace "a" is given twice');
});
