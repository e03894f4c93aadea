import { expect, test } from '@jest/globals';
import { LABEL_VALUE_PATTERN } from '../../../../src/api/limits.ts';
import {
  baseNames,
  clusterLabel,
  ingressClassesOf,
  offeredStorageClassesOf,
  storageClassesOf,
} from '../../../../src/peering/borrowing/names.ts';

const ID = 'abcdefghijklmnopqrstuvwxyz';

test.each([
  ['milan', 'milan'],
  ['Milan (north)', 'Milan-north'],
  ['_milan.', 'milan'],
  [`${'a'.repeat(62)}--b`, 'a'.repeat(62)],
  ['東京', 'abcdefgh'],
  ['', 'abcdefgh'],
  [undefined, 'abcdefgh'],
])('a cluster that calls itself %p is %s', (name, label) => {
  const [nodeName] = baseNames(name, ID);
  expect(clusterLabel(name, ID, nodeName)).toBe(label);
  expect(clusterLabel(name, ID, nodeName)).toMatch(new RegExp(LABEL_VALUE_PATTERN, 'u'));
});

// Namespaces that are to go to milan must not go to whoever calls itself so.
test.each([
  ['milan', 'milan-abcde', 'milan-abcdefgh'],
  ['Milan', 'evil', 'Milan-abcdefgh'],
  ['milan', undefined, 'milan-abcdefgh'],
  [`${'a'.repeat(53)}._${'b'.repeat(20)}`, 'evil', `${'a'.repeat(53)}-abcdefgh`],
  ['', 'evil', 'abcdefgh'],
])('a cluster that calls itself %p, whose nodes are named after %p, is %s', (name, nodeName, label) => {
  expect(clusterLabel(name, ID, nodeName)).toBe(label);
  expect(label).toMatch(new RegExp(LABEL_VALUE_PATTERN, 'u'));
});

test('classes of Ingresses: as people say, then those of the same name', () => {
  expect(ingressClassesOf()).toEqual({});
  expect(ingressClassesOf({ web: 'nginx', haproxy: 'traefik', '': 'nginx' }, ['nginx', 'haproxy'])).toEqual({
    '': 'nginx',
    web: 'nginx',
    haproxy: 'traefik',
    nginx: 'nginx',
  });
});

test('classes that the kind VirtualNode does not take hold up none of the others', () => {
  const offered = ['nginx', 'Upper', 'a/b', '__proto__', 'constructor'];
  expect(Object.entries(ingressClassesOf({}, offered))).toEqual([
    ['constructor', 'constructor'],
    ['nginx', 'nginx'],
  ]);
  const many = Array.from({ length: 100 }, (_, index) => `class-${index}`);
  const classes = ingressClassesOf({ web: 'zebra' }, many);
  expect(Object.keys(classes)).toHaveLength(64);
  expect(classes['web']).toBe('zebra');
});

test('StorageClasses: only as people say, never one of the same name', () => {
  expect(storageClassesOf(undefined)).toEqual({});
  expect(storageClassesOf({ fast: 'ssd', 'Not/AName': 'ssd', slow: '' })).toEqual({ fast: 'ssd' });
  expect(offeredStorageClassesOf([{ name: 'ssd' }, { name: 'Bad/Name' }, { name: 'hdd' }])).toEqual([
    'hdd',
    'ssd',
  ]);
  expect(offeredStorageClassesOf(undefined)).toEqual([]);
});
