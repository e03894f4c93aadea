/**
 * Ends with 0 where node_modules holds just what package-lock.json names, so that an `npm ci` by hand is not repeated by
 * tools/setup.sh. npm writes what it has installed into node_modules/.package-lock.json.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Package {
  version?: string;
  integrity?: string;
  optional?: boolean;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}
export interface LockFile {
  packages?: Record<string, Package>;
}

/** @param installed as npm wrote it; `wanted`: the lock file; `manifest`: package.json, which the lock file may no longer fit */
export function isInstalled(wanted: LockFile, installed: LockFile, manifest: Package): boolean {
  const { '': root = {}, ...locked } = wanted.packages ?? {};
  const there = installed.packages ?? {};
  const isSame = (path: string): boolean =>
    there[path]?.version === locked[path]?.version && there[path]?.integrity === locked[path]?.integrity;
  return (
    Object.keys(locked).length > 0 &&
    // Optional ones may be for another machine.
    Object.entries(locked).every(
      ([path, { optional }]) => isSame(path) || (optional === true && there[path] === undefined),
    ) &&
    Object.keys(there).every((path) => path in locked) &&
    isEqual(root.dependencies, manifest.dependencies) &&
    isEqual(root.devDependencies, manifest.devDependencies)
  );
}

const isEqual = (one: Record<string, string> = {}, other: Record<string, string> = {}): boolean =>
  Object.keys(one).length === Object.keys(other).length &&
  Object.entries(one).every(([name, range]) => other[name] === range);

if (import.meta.main) {
  const read = (file: string): unknown =>
    JSON.parse(readFileSync(join(import.meta.dirname, '..', file), 'utf8'));
  try {
    const [wanted, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map(read);
    const isThere = isInstalled(wanted as LockFile, installed as LockFile, read('package.json') as Package);
    process.exitCode = isThere ? 0 : 1;
  } catch {
    process.exitCode = 1;
  }
}
