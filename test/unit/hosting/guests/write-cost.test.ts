import { expect, test } from '@jest/globals';

import type { WriteQuestion } from '../../../../src/api/admission.ts';
import {
  changesNothing,
  costOfPodWrite,
  costOfWrite,
  tooLarge,
} from '../../../../src/hosting/guests/write-cost.ts';

const question = (change: Partial<WriteQuestion>): WriteQuestion => ({
  namespace: 'a',
  group: '',
  resource: 'configmaps',
  name: 'x',
  operation: 'CREATE',
  object: {},
  oldObject: undefined,
  isDryRun: false,
  ...change,
});

test('a small object costs more than its bytes, a pod all its versions, a Service its endpoints', () => {
  expect(costOfWrite(question({}), 100, 50)).toBe(1124);
  expect(costOfPodWrite(4096, true)).toBe(6 * 5120);
  expect(costOfWrite(question({ resource: 'pods', operation: 'UPDATE' }), 4096, 50)).toBe(3 * 5120);
  expect(costOfWrite(question({ resource: 'services' }), 976, 50)).toBe(2000 + 50 * 512);
  expect(costOfWrite(question({ resource: 'services', group: 'example.com' }), 976, 50)).toBe(2000);
});

test('an update that changes nothing is known', () => {
  const object = { metadata: { resourceVersion: '1' }, data: { a: 'b' } };
  expect(changesNothing(question({ operation: 'UPDATE', object, oldObject: structuredClone(object) }))).toBe(
    true,
  );
  expect(changesNothing(question({ operation: 'UPDATE', object, oldObject: { ...object, data: {} } }))).toBe(
    false,
  );
  expect(changesNothing(question({ operation: 'CREATE', object }))).toBe(false);
});

test.each([
  ['pods', '', 64 * 1024],
  ['services', '', 128 * 1024],
  ['pods', 'example.com', 128 * 1024],
  // Base64 and metadata; a policy of the API server bounds what they hold.
  ['secrets', '', Math.floor((128 * 1024 * 4) / 3) + 32 * 1024],
])('%s of group "%s" are of %s bytes at most', (resource, group, most) => {
  expect(tooLarge({ resource, group }, most, 128)).toBeUndefined();
  expect(tooLarge({ resource, group }, most + 1, 128)).toMatch(/of \d+ bytes at most.*writes\.objectKiB/u);
});
