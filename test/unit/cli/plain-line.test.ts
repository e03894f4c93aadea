import { expect, test } from '@jest/globals';
import { plainLine } from '../../../src/cli/plain-line.ts';
import type { CommandSpec, CommandEnvironment } from '../../../src/cli/spec.ts';
import type { CommandLine } from '../../../src/cli/command-line.ts';
import { defineCommand } from '../../../src/cli/command.ts';

const options = {
  name: { value: 'NAME', text: 'a name' },
  'dns-domain': { value: 'DOMAIN', text: 'a domain' },
  quiet: { text: 'a flag' },
};

/** What the parser makes of the same line. */
async function parsed(args: readonly string[]): Promise<CommandLine | undefined> {
  let seen: CommandLine | undefined;
  const spec: CommandSpec = {
    name: 'x',
    summary: 'x',
    options,
    act: async (line) => {
      seen = line;
      return Promise.resolve(0);
    },
  };
  const io = { out: () => {}, err: () => {} };
  await defineCommand(spec).run(args, { io } as unknown as CommandEnvironment);
  return seen;
}

test.each([
  [[]],
  [['--name', 'a']],
  [['--name', 'a', '--name', 'b']],
  [['--name=a=b', '--dns-domain', 'cluster.local']],
  [['--name', '', '--dns-domain=x y\nz']],
])('%j is read as the parser reads it', async (args) => {
  const line = plainLine(options, args);
  expect(line).toBeDefined();
  expect(line).toEqual(await parsed(args));
});

test.each([
  [['--help']],
  [['-h']],
  [['--name']],
  [['--name=']],
  [['--name', '--dns-domain', 'x']],
  [['--name', '-h']],
  [['--nam', 'x']],
  [['--quiet']],
  [['--quiet', 'x']],
  [['--constructor', 'x']],
  [['word']],
  [['--', 'word']],
])('%j is left to the parser', (args) => {
  expect(plainLine(options, args)).toBeUndefined();
});
