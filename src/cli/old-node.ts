/** The release runs on whatever `node` a machine has, and an older one would fail somewhere, in words that say nothing. */

/** As `engines` of package.json says. */
const LEAST: readonly [major: number, minor: number] = [24, 12];

/** What to tell, where this Node.js is too old for the program; else undefined. @param version such as `24.12.0` */
export function oldNodeMessage(version: string, path: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor, leastMinor] = LEAST;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return undefined;
  return (
    `tributary needs Node.js ${LEAST.join('.')} or newer, and ${path} is ${version}. ` +
    'Install a newer one, or put it first in PATH.\n'
  );
}
