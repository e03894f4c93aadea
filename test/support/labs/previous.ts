/**
 * The program of another commit: its sources in a temporary folder, run with the modules that are installed here. It
 * is the previous commit, unless $TRIBUTARY_PREVIOUS names another one.
 */
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { roleAll } from '../../../lab/peer-process.ts';
import { run } from '../../../lab/run.ts';

const repository = join(import.meta.dirname, '..', '..', '..');

export interface Checkout {
  /** Its abbreviated ID and subject, to be shown. */
  readonly commit: string;
  readonly root: string;
  /** Removes it. */
  readonly remove: () => void;
}

/** The reason, if there is none that can be run. */
export async function previousCheckout(): Promise<Checkout | string> {
  const commit = process.env['TRIBUTARY_PREVIOUS'] ?? 'HEAD~1';
  const git = ['git', '-C', repository] as const;
  let shown: string;
  try {
    shown = (await run([...git, 'log', '-1', '--format=%h %s', commit, '--'])).trim();
  } catch {
    return `${commit} is not in this clone; a shallow one has no previous commit`;
  }
  const root = mkdtempSync(join(tmpdir(), 'tributary-previous-'));
  const remove = (): void => rmSync(root, { recursive: true, force: true });
  // This is not a git worktree: one would be recorded in .git, and stay there if this process is killed.
  const unpack = 'git -C "$0" archive --format=tar "$1" | tar -x -C "$2"';
  await run(['bash', '-o', 'pipefail', '-c', unpack, repository, commit, root]);
  symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'));
  const why = await reasonNotToRun(root);
  if (why === undefined) return { commit: shown, root, remove };
  remove();
  return `${shown}: ${why}`;
}

async function reasonNotToRun(root: string): Promise<string | undefined> {
  const main = join(root, 'src/main.ts');
  if (!existsSync(main)) return 'there is no src/main.ts';
  try {
    await run([process.execPath, main, ...roleAll(root), '--help']);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    const line = message.split('\n').find((text) => /error/i.test(text)) ?? message;
    return `it does not run with the modules that are installed: ${line.trim()}`;
  }
}
