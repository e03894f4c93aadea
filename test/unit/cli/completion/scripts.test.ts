import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { SCRIPTS } from '../../../../src/cli/completion/scripts.ts';

/** The scripts in the shells themselves, with a program that answers what it was asked. */

let directory: string;

/** Words that name what to answer; the program writes down what it was called with. */
const ANSWERS = `#!/bin/sh
printf '<%s>' "$@" >"$LOG"
case "$*" in
  *--namespaces*) printf 'shop\\tone\\nshop-db\\ttwo\\n:6\\n' ;;
  *--context=*) printf '%s\\n' '--context=arn:aws:one' '--context=arn:aws:two' ':4' ;;
  *--kubeconfig*) echo ':0' ;;
  *quiet*) echo 'no such thing' >&2; echo ':4' ;;
  *broken*) echo 'no such thing' >&2; exit 1 ;;
  *) printf 'peer\\tPeer with: another\\npeerings\\tList\\n:4\\n' ;;
esac
`;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tributary-completion-'));
  writeFileSync(join(directory, 'tributary'), ANSWERS);
  chmodSync(join(directory, 'tributary'), 0o755);
  writeFileSync(join(directory, 'kubeconfig.yaml'), '');
  for (const [shell, script] of Object.entries(SCRIPTS))
    writeFileSync(join(directory, `${shell}.script`), script);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function run(shell: string, args: readonly string[]): { code: number | null; out: string[]; err: string } {
  // oxlint-disable-next-line node/no-process-env
  const path = [directory, process.env['PATH'] ?? ''].join(delimiter);
  const env = { PATH: path, HOME: directory, LOG: join(directory, 'log') };
  const { status, stdout, stderr } = spawnSync(shell, args, { cwd: directory, env, encoding: 'utf8' });
  return { code: status, out: (stdout ?? '').split('\n').filter((line) => line !== ''), err: stderr };
}

/** As bash calls the function: it cuts words at = and : too. */
function bash(line: string): { out: string[]; err: string } {
  const words = line.split(/([=:])| /).filter((word) => word !== undefined);
  const kept = words.filter((word, at) => word !== '' || at === words.length - 1);
  const quoted = kept.map((word) => `'${word}'`).join(' ');
  return run('bash', [
    '-c',
    `source ./bash.script && complete -p tributary >/dev/null && COMP_WORDS=(${quoted}) COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
COMP_LINE='${line}' COMP_POINT=\${#COMP_LINE}; _tributary tributary && printf '%s\\n' "\${COMPREPLY[@]}" "$(cat "$LOG")"`,
  ]);
}

test.each([
  ['tributary pe', ['peer', 'peerings', '<__complete><pe>']],
  ['tributary token ', ['peer', 'peerings', '<__complete><token><>']],
  ['tributary peer x --namespaces sh', ['shop', 'shop-db', '<__complete><peer><x><--namespaces><sh>']],
  ['tributary --context=arn:aw', ['aws:one', 'aws:two', '<__complete><--context=arn:aw>']],
  ['tributary --kubeconfig kube', ['kubeconfig.yaml', '<__complete><--kubeconfig><kube>']],
  ['tributary quiet ', ['<__complete><quiet><>']],
  ['tributary broken ', ['<__complete><broken><>']],
])('bash completes "%s"', (line, wanted) => {
  expect(bash(line)).toEqual(expect.objectContaining({ out: wanted, err: '' }));
});

const has = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

/** As zsh calls the function: words are cut at blanks; shows what it gives to zsh. */
function zsh(line: string): ReturnType<typeof run> {
  const words = line.split(' ').map((word) => `'${word}'`);
  return run('zsh', [
    '-fc',
    `words=(${words.join(' ')}) CURRENT=${words.length}
_describe() { print -rl -- "\${values[@]}" }
_files() { print -rl -- \${words[CURRENT]}* }
source ./zsh.script && _tributary && print -r -- "$(<$LOG)"`,
  ]);
}

const fish = (line: string): ReturnType<typeof run> =>
  run('fish', ['--no-config', '-c', `source ./fish.script; complete -C '${line}'; cat $LOG`]);

describe.each([
  { shell: 'zsh', check: '-nf', between: ':', colon: String.raw`\:`, completed: zsh },
  { shell: 'fish', check: '--no-execute', between: '\t', colon: ':', completed: fish },
])('$shell', ({ shell, check, between, colon, completed }) => {
  const tested = has(shell) ? test : test.skip;
  const peers = [`peer${between}Peer with: another`, `peerings${between}List`];
  const contexts = ['one', 'two'].map((name) => `--context=arn${colon}aws${colon}${name}`);

  tested('takes the script', () => {
    expect(run(shell, [check, `${shell}.script`])).toEqual({ code: 0, out: [], err: '' });
  });

  tested.each([
    ['tributary pe', [...peers, '<__complete><pe>']],
    ['tributary token ', [...peers, '<__complete><token><>']],
    [
      'tributary peer x --namespaces sh',
      [`shop${between}one`, `shop-db${between}two`, '<__complete><peer><x><--namespaces><sh>'],
    ],
    ['tributary --context=arn:aw', [...contexts, '<__complete><--context=arn:aw>']],
    ['tributary --kubeconfig kube', ['kubeconfig.yaml', '<__complete><--kubeconfig><kube>']],
    ['tributary quiet ', ['<__complete><quiet><>']],
    ['tributary broken ', ['<__complete><broken><>']],
  ])('completes "%s"', (line, wanted) => {
    expect(completed(line)).toEqual({ code: 0, out: wanted, err: '' });
  });
});
