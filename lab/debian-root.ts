import { run } from './run.ts';

const suite = 'bookworm';
/** Downloading tens of MB of packages, on whatever network there is. */
const timeoutMs = 10 * 60_000;

/** Never loaded: documents, translations, and character sets that only iconv(3) knows. */
const leftOut = ['/usr/share/*', '/usr/lib/*/gconv/*', '/usr/lib/*/audit/*', '/lib/*/audit/*'];

export const debianSuite: string = suite;

/**
 * The file tree of Debian packages and what they depend on as a tar archive, unpacked but never configured: no
 * package's script has run, so a hook makes what they would have.
 *
 * @param hook a program that is given the tree's path
 */
export async function debianRoot(options: {
  packages: readonly string[];
  hook: string;
  archive: string;
}): Promise<void> {
  await run(
    [
      'mmdebstrap',
      '--mode=root',
      '--variant=extract',
      `--include=${options.packages.join(',')}`,
      ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
      // The only hook that this variant runs once the packages are there.
      `--extract-hook=${options.hook}`,
      suite,
      options.archive,
    ],
    { timeoutMs },
  );
}
