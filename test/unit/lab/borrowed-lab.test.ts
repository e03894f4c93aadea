import { expect, test } from '@jest/globals';

import { isFit } from '../../support/labs/borrowed-lab.ts';

test.each([
  ['of this program', '/built/one/dist/main.js', false, true],
  ['of another state of the sources, left by a run that was killed', '/built/two/dist/main.js', false, false],
  ['whose making was broken off', undefined, false, false],
  ['that is kept for whoever writes tests, and furnished again', '/built/two/dist/main.js', true, true],
])('a borrowed lab %s', (_, furnisher, kept, expected) => {
  expect(isFit(furnisher, '/built/one/dist/main.js', kept)).toBe(expected);
});
