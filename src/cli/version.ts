/** `tributary version`: of this program. */
import { VERSION } from '../version.ts';
import { type Command, defineCommand } from './command.ts';
import { EXIT } from './command-line.ts';
import { formatOf, OUTPUT, printedAs } from './output.ts';

export const versionCommand: Command = defineCommand({
  name: 'version',
  summary: 'Show the version of this program.',
  options: OUTPUT,
  act: async (line, { io }) => {
    const data = {
      version: VERSION,
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
    };
    io.out(printedAs(formatOf(line), data, () => `tributary ${VERSION}\n`));
    return Promise.resolve(EXIT.ok);
  },
});
