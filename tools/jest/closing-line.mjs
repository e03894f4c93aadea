import { appendFileSync } from 'node:fs';

/** Prints one plain line that any tool can read, and adds the counts to $TRIBUTARY_TEST_TALLY where set. */
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const failedToRun = results.testResults.filter(
      (suite) => suite.testExecError !== undefined && suite.numFailingTests === 0,
    ).length;
    const passed = results.numPassedTests;
    const failed = results.numFailedTests + failedToRun;
    const skipped = results.numPendingTests + results.numTodoTests;
    const tally = process.env.TRIBUTARY_TEST_TALLY;
    if (tally) appendFileSync(tally, `${passed} ${failed} ${skipped}\n`);
    else process.stdout.write(`jest: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  }
}
