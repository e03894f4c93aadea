/** fast-check, with the seed of this run; a property that does not hold says how it is run again. */
import fc from 'fast-check';

import { repeatCommand, testSeed } from './seed.ts';

fc.configureGlobal({
  seed: testSeed(),
  reporter: (details) => {
    if (!details.failed) return;
    const cause = details.errorInstance ?? undefined;
    const report = fc.defaultReportMessage(details);
    throw new Error(`${report}\nrepeated by: ${repeatCommand(details.seed)}`, { cause });
  },
});

export { fc };
