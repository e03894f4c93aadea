/** `tributary version`: of this program. */
import { BUILD, VERSION } from '../version.ts';
import { type Command, defineCommand } from './command.ts';
import { EXIT } from './command-line.ts';
import { formatOf, OUTPUT, printedAs } from './output.ts';

export const versionCommand: Command = defineCommand({
  name: 'version',
  summary: 'Show the version of this program, and what it was built from.',
  options: OUTPUT,
  examples: [{ line: 'tributary version -o json', does: 'Show it as JSON' }],
  act: async (line, { io }) => {
    const built = BUILD === undefined ? '' : ` (commit ${BUILD.commit}, built ${BUILD.date})`;
    const data = {
      version: VERSION,
      ...BUILD,
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
    };
    io.out(printedAs(formatOf(line), data, () => `tributary ${VERSION}${built}\n`));
    return Promise.resolve(EXIT.ok);
  },
});
