/** What a release is built from. Nothing in it depends on when and where it is built, so that two builds are equal. */
import { execFileSync } from 'node:child_process';

import type { BuildStamp } from '../../src/version.ts';

/** `epoch`: $SOURCE_DATE_EPOCH, seconds (https://reproducible-builds.org/specs/source-date-epoch/); else the commit's time counts. */
export function stampOf(root: string, epoch: string | undefined): BuildStamp {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const seconds = epoch ?? git('log', '-1', '--format=%ct');
  if (!/^\d{1,12}$/.test(seconds))
    throw new Error(`SOURCE_DATE_EPOCH must be a number of seconds, not "${seconds}"`);
  const isDirty = git('status', '--porcelain', '--untracked-files=no') !== '';
  return {
    commit: git('rev-parse', '--short=12', 'HEAD') + (isDirty ? '-dirty' : ''),
    date: new Date(Number(seconds) * 1000).toISOString().replace('.000Z', 'Z'),
  };
}
