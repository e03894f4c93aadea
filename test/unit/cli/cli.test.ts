import { describe, expect, test } from '@jest/globals';
import { runCli, PROGRAM } from '../../../src/cli/cli.ts';
import type { CommandSpec } from '../../../src/cli/command.ts';
import { AGENT_OPTIONS } from '../../../src/config.ts';

async function tributary(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const code = await runCli(args, io, new AbortController().signal);
  return { code, out, err };
}

/** Each command with the words that call it. */
function commandsOf(spec: CommandSpec, words: readonly string[] = []): [string, CommandSpec][] {
  const below = (spec.children ?? []).flatMap((child) => commandsOf(child.spec, [...words, child.spec.name]));
  return words.length === 0 ? below : [[words.join(' '), spec], ...below];
}
const COMMANDS = commandsOf(PROGRAM);

test.each([[], ['help'], ['--help'], ['-h']])(
  '"tributary %s" shows all commands in groups',
  async (...args) => {
    const { code, out, err } = await tributary(...args.filter((arg) => arg !== undefined));
    expect([code, err]).toEqual([0, '']);
    for (const { spec } of PROGRAM.children ?? []) expect(out).toMatch(new RegExp(`^  ${spec.name} `, 'm'));
    expect(out).toContain('\nPeering:\n');
  },
);

describe.each(COMMANDS)('tributary %s', (words, spec) => {
  test('--help says how it is called, and asks no cluster', async () => {
    for (const help of ['--help', '-h']) {
      const { code, out, err } = await tributary(...words.split(' '), help);
      expect([code, err]).toEqual([0, '']);
      expect(out).toContain(`Usage: tributary ${words}`);
      expect(out).toContain(spec.summary.split(' ')[0]);
    }
    expect((await tributary('help', ...words.split(' '))).out).toContain(`Usage: tributary ${words}`);
  });

  test('its texts are sentences, and its examples call commands that exist', () => {
    expect(spec.summary).toMatch(/^[A-Z].*\.$/);
    for (const { line, does } of spec.examples ?? []) {
      expect(does).toMatch(/^[A-Z].*[^.]$/);
      for (const [, called] of line.matchAll(/tributary(?: --[a-z-]+ \S+)* ([a-z-]+)/g)) {
        expect(COMMANDS.map(([name]) => name)).toContain(called);
      }
    }
  });

  test('an unknown option is a mistake, told in one line', async () => {
    const { code, out, err } = await tributary(...words.split(' '), '--no-such-thing');
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/^.+\nsee: tributary .*--help\n$/);
  });
});

test('--version is what people try first', async () => {
  const { code, out } = await tributary('--version');
  expect([code, out]).toEqual([0, (await tributary('version')).out]);
});

test.each([
  ['pear', 'unknown command "pear"; did you mean peer?', 'tributary'],
  ['constructor', 'unknown command "constructor"', 'tributary'],
  ['token', 'say which: create, list, delete', 'tributary token'],
  ['token crate', 'unknown command "crate"; did you mean create?', 'tributary token'],
  ['run', 'say which: cluster, gateway, node, peer, peers, all', 'tributary run'],
  ['run clustr', 'unknown command "clustr"; did you mean cluster?', 'tributary run'],
  ['help pear', 'unknown command "pear"; did you mean peer?', 'tributary'],
  ['help token crate', 'unknown command "crate"; did you mean create?', 'tributary token'],
  ['peer', 'ENDPOINT is missing, or --to-context', 'tributary peer'],
  ['unpeer', 'NAME|CLUSTER_ID is missing', 'tributary unpeer'],
  ['unpeer a b', 'unexpected argument "b"', 'tributary unpeer'],
  ['peer a --toke x', 'unknown option "--toke"; did you mean --token?', 'tributary peer'],
  ['peer a --token', '--token needs a value', 'tributary peer'],
  ['peer a --name --timeout 1s', '--name needs a value; "--timeout" follows it', 'tributary peer'],
  [
    'peer a --name --name=--timeout=1s',
    '--name needs a value; "--name=--timeout=1s" follows it',
    'tributary peer',
  ],
  ['unpeer a --force=1', '--force takes no value', 'tributary unpeer'],
  ['id -o xml', '--output must be one of json, yaml, not "xml"', 'tributary id'],
  ['--contex rome id', 'unknown option "--contex"; did you mean --context?', 'tributary'],
])('"tributary %s" says what is wrong, and where to read more', async (line, complaint, command) => {
  const { code, out, err } = await tributary(...line.split(' '));
  expect([code, out, err]).toEqual([2, '', `${complaint}\nsee: ${command} --help\n`]);
});

test('options that say which cluster may stand before the command', async () => {
  const { code, err } = await tributary('--kubeconfig', '/no/such/file', 'id');
  expect(code).toBe(2);
  expect(err).toContain('/no/such/file');
});

test('a mistake in an option of a role is told by the role', async () => {
  const { code, err } = await tributary('run', 'cluster', '--peering-port', 'x');
  expect([code, err]).toEqual([2, 'tributary run cluster: --peering-port must be a port, not "x"\n']);
});

test('the help of a role shows its own options, and role all shows all of them', async () => {
  const gateway = (await tributary('run', 'gateway', '--help')).out;
  expect(gateway).toContain('--wireguard-port');
  expect(gateway).not.toContain('--kubelet-port');
  const all = (await tributary('run', 'all', '--help')).out;
  for (const name of Object.keys(AGENT_OPTIONS)) expect(all).toContain(`--${name} `);
});

test('as a plug-in of kubectl it names itself so', async () => {
  let err = '';
  const io = { out: () => {}, err: (text: string) => void (err += text) };
  await runCli(['peer'], io, new AbortController().signal, 'kubectl tributary');
  expect(err).toContain('see: kubectl tributary peer --help');
});
