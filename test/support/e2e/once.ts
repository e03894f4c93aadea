/**
 * What the files of a folder need of their lab and is done by the first of them only: to load an image, to install. It is
 * noted in the lab's own folder, since each file runs in modules of its own.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Lab } from '../../../lab/lab.ts';

/** Does `work` unless the last that was done under this name was the same: `value` says what it depends on. */
export async function once(
  lab: Lab,
  name: string,
  value: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const file = noteOf(lab, name);
  if (existsSync(file) && readFileSync(file, 'utf8') === value) return;
  // Work that fails half-way is done again.
  forget(lab, name);
  await work();
  writeFileSync(file, value);
}

/** It has been undone or changed: the next file does it again. */
export const forget = (lab: Lab, name: string): void => rmSync(noteOf(lab, name), { force: true });

const noteOf = (lab: Lab, name: string): string =>
  join(lab.spec.dataDirectory, `once-${name.replaceAll(/[^a-z-]/g, '-')}`);
