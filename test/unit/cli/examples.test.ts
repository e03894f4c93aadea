import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';

import { openCluster } from '../../../src/cli/peering/environment.ts';
import { PROGRAM } from '../../../src/cli/cli.ts';
import { type Command, type CommandSpec, defineCommand } from '../../../src/cli/command.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { callsIn, commandsIn, shellLines } from './support/shell-lines.ts';

/** What documents and examples tell people to type has the form that the commands want; nothing is done. */

const root = join(import.meta.dirname, '..', '..', '..');

/** The whole command line, of which no command acts. */
const idle = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  ...(spec.children !== undefined && {
    children: spec.children.map((child): Command => ({ ...child, spec: idle(child.spec) })),
  }),
  ...(spec.act !== undefined && { act: async () => Promise.resolve(0) }),
});
const program = defineCommand({ ...idle(PROGRAM), name: 'tributary' }, '');

/** What is wrong with it. */
async function complaint(args: readonly string[]): Promise<string | undefined> {
  let err = '';
  const io = { out: () => {}, err: (text: string) => void (err += text) };
  const { signal } = new AbortController();
  const code = await program.run(args, { io, signal, clock: systemClock, open: openCluster });
  return code === 0 && err === '' ? undefined : `tributary ${args.join(' ')}: ${err.trim()}`;
}

async function complaints(lines: readonly { line: string; where: string }[]): Promise<string[]> {
  const all = lines.flatMap(({ line, where }) => callsIn(line).map((args) => ({ args, where })));
  const told = await Promise.all(all.map(async ({ args, where }) => [where, await complaint(args)] as const));
  return told.flatMap(([where, why]) => (why === undefined ? [] : [`${where}: ${why}`]));
}

function examplesOf(spec: CommandSpec, path: string): { line: string; where: string }[] {
  const below = (spec.children ?? []).flatMap((child) =>
    examplesOf(child.spec, `${path} ${child.spec.name}`),
  );
  return [...(spec.examples ?? []).map(({ line }) => ({ line, where: path })), ...below];
}

test('each example of a command can be typed as it stands', async () => {
  const examples = examplesOf(PROGRAM, 'tributary');
  expect(examples.length).toBeGreaterThan(10);
  expect(examples.filter(({ line }) => callsIn(line).length === 0)).toEqual([]);
  expect(await complaints(examples)).toEqual([]);
});

const documents = globSync(['*.md', '{docs,examples,lab,src}/**/*.md'], { cwd: root }).toSorted();

test('each call in a code block of a document can be typed as it stands', async () => {
  const lines = documents.flatMap((path) =>
    shellLines(readFileSync(join(root, path), 'utf8')).map(({ line, at }) => ({
      line,
      where: `${path}:${at}`,
    })),
  );
  expect(lines.flatMap(({ line }) => callsIn(line)).length).toBeGreaterThan(20);
  expect(await complaints(lines)).toEqual([]);
});

test('each call in the text of a document names a command and options that there are', async () => {
  const spans = documents.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .replaceAll(/^```.*?^```/gms, '')
      .matchAll(/`(tributary\s[^`]+)`/g)
      .map(([, line = '']) => ({ line: line.replaceAll(/\s+(?:\.\.\.)?/g, ' '), where: path }))
      .toArray(),
  );
  expect(spans.length).toBeGreaterThan(20);
  const said = await complaints(spans);
  // In a sentence, what is not spoken of is left out, or stands in capitals for any of its kind.
  const isLeftOut = (line: string): boolean =>
    / is (?:missing|required)|say which|needs a value|unknown command "[A-Z]+"/.test(line);
  expect(said.filter((line) => !isLeftOut(line))).toEqual([]);
});

describe('lines of shell', () => {
  test.each([
    [
      'tributary id | tee x',
      [
        ['tributary', 'id'],
        ['tee', 'x'],
      ],
    ],
    ['source <(tributary completion bash)', [['source'], ['tributary', 'completion', 'bash']]],
    [
      'tributary id > file && echo "a b; c" # more',
      [
        ['tributary', 'id'],
        ['file', 'file'],
        ['echo', 'a b; c'],
      ],
    ],
    ['KUBECONFIG=x tributary peer "a b"', [['KUBECONFIG=x', 'tributary', 'peer', 'a b']]],
    ['tributary x 2>&1 y', [['tributary', 'x'], ['y']]],
  ])('%s', (line, wanted) => {
    expect(commandsIn(line)).toEqual(wanted);
  });

  test('a typo in a document would be found', async () => {
    const wrong = [
      'tributary pear x',
      'tributary peer x --tokn y',
      'tributary id -o xml',
      'kubectl tributary unpeer a b',
    ];
    const found = await complaints(wrong.map((line) => ({ line, where: 'here' })));
    expect(found).toHaveLength(wrong.length);
  });
});
