/** The tests of one file: documents that are read one after another, at the same clusters. */
import { beforeAll, expect, test } from '@jest/globals';

import { short } from '../../../support/long.ts';
import type { Reader } from './reader.ts';
import { type Reading, titleOf } from './reading.ts';

export function follow(readings: readonly Reading[], prepare: () => Promise<Reader>): void {
  let reader: Reader;
  /** Each document begins with what those before it have left. */
  let broken: string | undefined;

  // They take too long for each run, in which test/unit/documents.test.ts finds blocks that no reading has.
  const isRun = short('readings of documents', { short: 0, long: readings.length }) > 0;

  beforeAll(async () => {
    if (isRun) reader = await prepare();
  }, 600_000);

  (isRun ? test : test.skip).each(readings.map((reading) => ({ title: titleOf(reading), reading })))(
    '$title',
    async ({ title, reading }) => {
      expect(broken).toBeUndefined();
      broken = title;
      await reader.read(reading);
      broken = undefined;
    },
    900_000,
  );
}
