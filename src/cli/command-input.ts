import { createInterface } from 'node:readline/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import { TributaryError } from '../lib/errors.ts';
import type { CommandInput } from './manifests-output.ts';

const MAX_BYTES = 65_536;

/** What a person types or a pipe brings. Nothing is read before somebody asks. */
export function commandInput(
  stdin: Pick<ReadStream, 'isTTY'> & NodeJS.ReadableStream,
  stdout: Pick<WriteStream, 'isTTY'> & NodeJS.WritableStream,
): CommandInput {
  return {
    get isTerminal() {
      return stdin.isTTY && stdout.isTTY;
    },
    async ask(question, signal) {
      const reader = createInterface({ input: stdin, output: stdout });
      try {
        return await reader.question(question, { signal });
      } finally {
        reader.close();
      }
    },
    async readAll() {
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of stdin) {
        const bytes = Buffer.from(chunk);
        size += bytes.length;
        if (size > MAX_BYTES) throw new TributaryError('Invalid', 'standard input is longer than 64 KiB');
        chunks.push(bytes);
      }
      return Buffer.concat(chunks).toString('utf8');
    },
  };
}
