import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Prints one plain line that any tool can read, and adds the counts and the time of each file to $TRIBUTARY_TEST_TALLY where set. */
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const files = results.testResults.map((file) => ({
      passed: file.numPassingTests,
      failed: file.testExecError !== undefined && file.numFailingTests === 0 ? 1 : file.numFailingTests,
      skipped: file.numPendingTests + file.numTodoTests,
      ms: file.perfStats.runtime,
      path: relative(process.cwd(), file.testFilePath),
    }));
    const tally = process.env.TRIBUTARY_TEST_TALLY;
    if (tally) {
      const lines = files.map(
        ({ passed, failed, skipped, ms, path }) => `${passed} ${failed} ${skipped} ${ms} ${path}\n`,
      );
      appendFileSync(tally, lines.join(''));
    } else {
      const sum = (key) => files.reduce((all, file) => all + file[key], 0);
      process.stdout.write(
        `jest: ${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`,
      );
    }
  }
}
