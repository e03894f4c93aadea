import { expect, test } from '@jest/globals';

import { selectedLog } from '../../../../src/server/kubelet/kept-log.ts';

const LOG = Buffer.from(
  '2026-01-01T00:00:00.000000001Z one\n2026-01-01T00:00:10Z \n2026-01-01T00:00:20+00:00 three words here\n',
);
const NOW = Date.parse('2026-01-01T00:00:25Z');

test.each([
  ['', 'one\n\nthree words here\n'],
  ['tailLines=0', ''],
  ['tailLines=1', 'three words here\n'],
  ['tailLines=9223372036854775807', 'one\n\nthree words here\n'],
  ['tailLines=1&timestamps=true', '2026-01-01T00:00:20+00:00 three words here\n'],
  ['sinceSeconds=15', '\nthree words here\n'],
  ['sinceTime=2026-01-01T00:00:10Z', '\nthree words here\n'],
  ['sinceTime=2026-01-01T00:01:00Z', ''],
  // As the kubelet does: first the last lines, then those that are young enough.
  ['sinceSeconds=15&tailLines=1', 'three words here\n'],
  ['sinceSeconds=1&tailLines=1', ''],
  ['limitBytes=2', 'on'],
  ['limitBytes=1000', 'one\n\nthree words here\n'],
])('a query %j selects %j', (query, expected) => {
  expect(selectedLog(LOG, new URLSearchParams(query), NOW).toString()).toBe(expected);
});

test('bytes stay as they are, and what has no time is a line like others', () => {
  const odd = Buffer.from([0x32, 0x20, 0xff, 0x00, 0x0a, 0x61, 0x0a, 0x20, 0x62]);
  expect(selectedLog(odd, new URLSearchParams(), NOW)).toEqual(odd);
  expect(selectedLog(odd, new URLSearchParams('sinceSeconds=1&timestamps=true'), NOW)).toEqual(odd);
  expect(selectedLog(Buffer.alloc(0), new URLSearchParams('tailLines=5'), NOW)).toHaveLength(0);
});
