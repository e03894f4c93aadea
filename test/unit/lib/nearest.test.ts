import { expect, test } from '@jest/globals';

import { nearestOf } from '../../../src/lib/nearest.ts';

test.each([
  ['oneProces', 'oneProcess'],
  ['Network', 'network'],
  ['netwrok', 'network'],
  ['agent', 'agents'],
  ['ag', undefined],
  ['somethingElse', undefined],
  ['', undefined],
])('%s: %s', (word, meant) => {
  expect(nearestOf(word, ['network', 'oneProcess', 'agents', 'nodeArgs'])).toBe(meant);
});
