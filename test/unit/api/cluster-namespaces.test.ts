import { expect, test } from '@jest/globals';
import { isClusterNamespace, isClusterNamespaceIn } from '../../../src/api/cluster-namespaces.ts';

test.each([
  ['kube-system', true],
  ['kube-', true],
  ['tributary-system', true],
  ['tributary-of-ours', true],
  ['kubernetes', false],
  ['my-kube-system', false],
  ['tributary', false],
  ['default', false],
])('%s: a part of the cluster itself? %s', (name, expected) => {
  expect(isClusterNamespace(name)).toBe(expected);
  // RE2 and ECMAScript agree on a pattern as plain as this.
  const [, pattern = ''] = /\.matches\('(.*)'\)$/u.exec(isClusterNamespaceIn('name')) ?? [];
  expect(new RegExp(pattern, 'u').test(name)).toBe(expected);
});

test('the namespace that the program runs in is one, whatever it is called', () => {
  expect(isClusterNamespace('liquid', 'liquid')).toBe(true);
  expect(isClusterNamespace('liquid', 'other')).toBe(false);
});
