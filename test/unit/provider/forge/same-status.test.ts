import { expect, test } from '@jest/globals';
import type { PodStatus } from '../../../../src/api/wire.ts';
import { sameStatus } from '../../../../src/provider/forge/same-status.ts';

const read = (json: string): PodStatus => JSON.parse(json) as PodStatus;

test.each([
  ['{"phase":"Running"}', '{"phase":"Running"}'],
  ['{"phase":"Running","startTime":null}', '{"phase":"Running"}'],
  ['{"conditions":[]}', '{}'],
  ['{"a":{"b":null},"phase":"x"}', '{"phase":"x","a":{}}'],
  ['{"containerStatuses":[{"name":"c","lastState":{},"state":{}}]}', '{"containerStatuses":[{"name":"c"}]}'],
  [
    '{"containerStatuses":[{"name":"c","resources":{}}]}',
    '{"containerStatuses":[{"name":"c","lastState":null}]}',
  ],
])('%s is the same as %s', (a, b) => {
  expect(sameStatus(read(a), read(b))).toBe(true);
  expect(sameStatus(read(b), read(a))).toBe(true);
});

test.each([
  ['{"phase":"Running"}', '{"phase":"Pending"}'],
  ['{"phase":"Running"}', '{}'],
  ['{"a":{}}', '{}'],
  ['{"a":{}}', '{"a":[1]}'],
  ['{"a":[1,2]}', '{"a":[2,1]}'],
  ['{"a":[1]}', '{"a":[1,1]}'],
  ['{"a":"1"}', '{"a":1}'],
  ['{"state":{"running":{}}}', '{"state":{}}'],
  // A state that is there, though all of it is unset, is none that is not there.
  ['{"state":{"running":null}}', '{}'],
  ['{"constructor":"x"}', '{}'],
  ['{"__proto__":{"x":1}}', '{}'],
])('%s is another than %s', (a, b) => {
  expect(sameStatus(read(a), read(b))).toBe(false);
  expect(sameStatus(read(b), read(a))).toBe(false);
});
