import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

/** Runs the program while nobody reads one of its streams: what it says on the other one, and its exit code. */
async function unread(
  stream: 'stdout' | 'stderr',
  args: readonly string[],
): Promise<{ said: string; code: unknown }> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child[stream].destroy();
  child[stream === 'stdout' ? 'stderr' : 'stdout'].setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = (await once(child, 'close')) as [unknown];
  return { said, code };
}

/** As of a program that SIGPIPE has ended. */
const QUIET = { said: '', code: 141 };

test.each([[['--help']], [['version']], [['completion', 'bash']]])(
  'a reader that goes away ends %j without a word',
  async (args) => {
    expect(await unread('stdout', args)).toEqual(QUIET);
  },
);

test('so does one that does not want to know what went wrong', async () => {
  expect(await unread('stderr', ['no-such-command'])).toEqual(QUIET);
});
