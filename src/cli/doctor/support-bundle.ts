/** `tributary support-bundle`: one archive with all that somebody else needs to help. */
import { createWriteStream, existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';

import { writeArchive } from '../../doctor/bundle/archive.ts';
import { collectBundle } from '../../doctor/bundle/collect.ts';
import { examine } from '../../doctor/examine.ts';
import { TributaryError } from '../../lib/errors.ts';
import { VERSION } from '../../version.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { gatherFacts } from './gather.ts';

interface BundleArguments {
  /** Default: a name with the time, in the current folder. */
  file: string | undefined;
}

export const supportBundleCommand: Command = clusterCommand({
  name: 'support-bundle',
  summary: 'Pack objects, logs, metrics and the doctor’s findings into one archive.',
  about:
    'Data of Secrets, tokens, private keys and values of environment variables are left out, by their names and by their form. ' +
    'Nothing knows all forms: look through the archive before you pass it on.',
  options: {
    file: {
      value: 'FILE',
      text: 'where to write it; must not exist',
      fallback: 'tributary-support-TIME.tar.gz',
      names: 'files',
    },
  },
  examples: [{ line: 'tributary support-bundle --file fault.tar.gz', does: 'Packs all of it' }],
  parse: ({ values }): BundleArguments => ({ file: checkedFile(values['file']) }),
  run: runSupportBundle,
});

/** Before anything is collected: that takes a while. Throws Invalid. */
function checkedFile(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  if (existsSync(file))
    throw new TributaryError('Invalid', `--file: ${file} is there already; name another one`);
  if (!existsSync(dirname(file)))
    throw new TributaryError('Invalid', `--file: there is no folder ${dirname(file)}`);
  return file;
}

async function runSupportBundle({ file }: BundleArguments, session: Session): Promise<number> {
  const { client, clock, signal, io } = session;
  const now = clock.now();
  const time = new Date(now).toISOString();
  const folder = `tributary-support-${time.replaceAll(/[-:]|\.\d+/gu, '')}`;
  const target = file ?? `${folder}.tar.gz`;
  const findings = examine(await gatherFacts(session));
  const title = `Tributary ${VERSION}, ${time}`;
  const entries = collectBundle({ client, clock, signal, findings, title });
  // Only for its owner: what is left out is known by its form, and nothing knows all forms.
  const to = createWriteStream(target, { mode: 0o600, flags: 'wx' });
  try {
    await writeArchive(entries, { folder, mtimeMs: now, to });
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'EEXIST') await rm(target, { force: true });
    throw error;
  }
  io.out(
    `${target} is written. Secrets are left out as far as they can be told; look through it before you pass it on\n`,
  );
  return EXIT.ok;
}
