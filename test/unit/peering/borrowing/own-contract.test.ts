import { expect, test } from '@jest/globals';
import { readText } from '../../../../src/peering/borrowing/own-contract.ts';

const NAMESPACE = { homeNamespace: 'shop', tenantNamespace: 'rome-shop' };

test('what both have agreed is read', () => {
  const terms = { namespaces: [NAMESPACE], resources: { cpu: '1' }, keepForSeconds: 60 };
  expect(readText(JSON.stringify(terms))).toEqual(terms);
  expect(readText('{"namespaces":[],"resources":{}}')).toBeDefined();
});

test.each<[string, unknown]>([
  ['no object', null],
  ['a namespace that is none', { namespaces: [null], resources: {} }],
  ['a namespace that is text', { namespaces: ['shop'], resources: {} }],
  ['a namespace without its other name', { namespaces: [{ homeNamespace: 'shop' }], resources: {} }],
  ['a name that is no text', { namespaces: [NAMESPACE, { ...NAMESPACE, homeNamespace: 1 }], resources: {} }],
  ['namespaces that are no list', { namespaces: NAMESPACE, resources: {} }],
  ['resources that are null', { namespaces: [], resources: null }],
])('%s makes no contract', (_what, terms) => {
  expect(readText(JSON.stringify(terms))).toBeUndefined();
});

test('text that is no JSON is no contract', () => {
  expect(readText('{')).toBeUndefined();
});
