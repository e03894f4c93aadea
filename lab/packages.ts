/** What the containers workload takes from the distribution: the table lab/packages.txt, shared with tools/setup.sh. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DebianPackage {
  /** For `apt-get install`. */
  readonly name: string;
  /** A program on the PATH, or a file if it begins with `/`; absent if only dpkg can tell. */
  readonly proof?: string;
}

/** Reads the table: name, proof or `-`, and a comment with the reason. */
export function parsePackages(table: string): DebianPackage[] {
  return table
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
    .filter(([name]) => name !== '')
    .map(([name = '', proof]) => (proof === undefined || proof === '-' ? { name } : { name, proof }));
}

export const debianPackages: readonly DebianPackage[] = parsePackages(
  readFileSync(join(import.meta.dirname, 'packages.txt'), 'utf8'),
);

/** A program whose absence shows that the package is missing. */
export const packageProgram: Readonly<Record<string, string>> = Object.fromEntries(
  debianPackages
    .filter(({ proof }) => proof !== undefined && !proof.startsWith('/'))
    .map(({ name, proof = '' }) => [name, proof]),
);
