import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** From the message of a failed test: the expected and the received value. */
const MESSAGE_LINES = 24;

const short = (text = '') => stripVTControlCharacters(text).split('\n').slice(0, MESSAGE_LINES).join('\n');

function failuresOf({ testResults, testExecError, failureMessage, numFailingTests }) {
  const failed = testResults
    .filter(({ status }) => status === 'failed')
    .map(({ fullName, failureMessages }) => ({ test: fullName, message: short(failureMessages[0]) }));
  return testExecError !== undefined && numFailingTests === 0
    ? [...failed, { test: '(the file itself)', message: short(failureMessage ?? '') }]
    : failed;
}

/** Prints one plain line that any tool can read; adds one line of JSON for each file (tools/tally.ts) to $TRIBUTARY_TEST_TALLY where set. */
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const files = results.testResults.map((file) => ({
      passed: file.numPassingTests,
      failed: file.testExecError !== undefined && file.numFailingTests === 0 ? 1 : file.numFailingTests,
      skipped: file.numPendingTests + file.numTodoTests,
      ms: file.perfStats.runtime,
      path: relative(process.cwd(), file.testFilePath),
      failures: failuresOf(file),
    }));
    const tally = process.env.TRIBUTARY_TEST_TALLY;
    if (tally) {
      appendFileSync(tally, files.map((file) => `${JSON.stringify(file)}\n`).join(''));
    } else {
      const sum = (key) => files.reduce((all, file) => all + file[key], 0);
      process.stdout.write(
        `jest: ${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped\n`,
      );
    }
  }
}
