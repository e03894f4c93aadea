/** The kustomizations under `examples/`, read as files. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { parseAllDocuments } from 'yaml';

export const ROOT: string = join(import.meta.dirname, '..', '..');

export interface ExampleObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: unknown;
}

export interface Example {
  /** From the root, as people type it: `examples/web-shop`. */
  readonly path: string;
  readonly kustomization: { readonly resources: readonly string[] };
  /** The other YAML files of the folder. */
  readonly files: readonly string[];
  readonly objects: readonly ExampleObject[];
}

const objectsIn = (path: string): unknown[] =>
  parseAllDocuments(readFileSync(join(ROOT, path), 'utf8')).map((document) => document.toJS() as unknown);

function exampleAt(path: string): Example {
  const files = globSync('*.yaml', { cwd: join(ROOT, path) })
    .filter((file) => file !== 'kustomization.yaml')
    .toSorted();
  return {
    path,
    kustomization: objectsIn(`${path}/kustomization.yaml`)[0] as Example['kustomization'],
    files,
    objects: files.flatMap((file) => objectsIn(`${path}/${file}`) as ExampleObject[]),
  };
}

export const EXAMPLES: readonly Example[] = globSync('examples/**/kustomization.yaml', { cwd: ROOT })
  .map((file) => dirname(file))
  .toSorted()
  .map(exampleAt);
