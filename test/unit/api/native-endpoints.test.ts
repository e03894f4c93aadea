import { expect, test } from '@jest/globals';
import { formatNativeEndpoints, parseNativeEndpoints } from '../../../src/api/native-endpoints.ts';

test('there and back', () => {
  const endpoints = [
    { address: '10.0.0.7' },
    { address: 'fd00::7', hostname: 'web-0', conditions: { ready: true, serving: true, terminating: false } },
  ];
  expect(parseNativeEndpoints(formatNativeEndpoints(endpoints))).toEqual(endpoints);
});

test('what it does not know is left out', () => {
  const text = '[{"address":"10.0.0.7","nodeName":"n","targetRef":{"kind":"Pod"},"conditions":{"other":1}}]';
  expect(parseNativeEndpoints(text)).toEqual([{ address: '10.0.0.7', conditions: {} }]);
});

test('as many as a slice may have fit into the annotations of an object', () => {
  const endpoint = {
    address: 'fd00:1111:2222:3333:4444:5555:6666:7777',
    hostname: 'x'.repeat(63),
    conditions: { ready: false, serving: false, terminating: false },
  };
  const text = formatNativeEndpoints(Array.from({ length: 1000 }, () => endpoint));
  // validation.TotalAnnotationSizeLimitB is 256 KiB.
  expect(text.length).toBeLessThan(220_000);
  expect(parseNativeEndpoints(text)).toHaveLength(1000);
});

test.each([
  ['no JSON', '[{'],
  ['no list', '{"address":"10.0.0.7"}'],
  ['no address', '[{"hostname":"a"}]'],
  ['a name', '[{"address":"kubernetes.default"}]'],
  ['a zone', '[{"address":"fe80::1%eth0"}]'],
  ['a hostname with a dot', '[{"address":"10.0.0.7","hostname":"a.b"}]'],
  ['a condition that is text', '[{"address":"10.0.0.7","conditions":{"ready":"true"}}]'],
  ['a prototype', '[{"address":"10.0.0.7","__proto__":{"ready":true}}]'],
  ['too many', JSON.stringify(Array.from({ length: 1001 }, () => ({ address: '10.0.0.7' })))],
  ['too deep', '['.repeat(30) + ']'.repeat(30)],
])('%s is refused', (_what, text) => {
  expect(() => parseNativeEndpoints(text)).toThrow('endpoints');
});
