/** `tributary version`: of this program. */
import { BUILD, VERSION } from '../version.ts';
import { type Command, defineCommand } from './command.ts';
import { EXIT } from './command-line.ts';
import { formatOf, OUTPUT, printedAs } from './output.ts';
import { versionLine } from './version-line.ts';

export const versionCommand: Command = defineCommand({
  name: 'version',
  summary: 'Show the version of this program, and what it was built from.',
  options: OUTPUT,
  examples: [{ line: 'tributary version -o json', does: 'Show it as JSON' }],
  act: async (line, { io }) => {
    const data = {
      version: VERSION,
      ...BUILD,
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
    };
    io.out(printedAs(formatOf(line), data, versionLine));
    return Promise.resolve(EXIT.ok);
  },
});
