/** The list of what a bundle is made of, in CycloneDX, from npm's list of all packages. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

import type { BuildStamp } from '../../src/version.ts';

interface Component {
  'bom-ref': string;
  name: string;
}

export interface Sbom {
  serialNumber: string;
  metadata: { timestamp: string; component: Component & { type: string; version: string } };
  components: Component[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

/** All packages of the lock file. With `--omit=dev` npm leaves out packages that both the product and its tests use. */
export const npmSbom = (root: string): Sbom =>
  JSON.parse(
    execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  ) as Sbom;

/** Only packages of which a part is in the bundle, and nothing that differs from build to build. */
export function sbomOf(all: Sbom, inputs: readonly string[], stamp: BuildStamp): Sbom {
  const bundled = new Set(inputs.flatMap((path) => packageOf(path) ?? []));
  const components = all.components.filter(({ name }) => bundled.has(name));
  const unknown = bundled.difference(new Set(components.map(({ name }) => name)));
  if (unknown.size > 0)
    throw new Error(`npm does not list what the bundle holds: ${[...unknown].join(', ')}`);
  const { component } = all.metadata;
  const kept = new Set([component, ...components].map((one) => one['bom-ref']));
  const dependencies = all.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }));
  const sbom = {
    ...all,
    metadata: {
      ...all.metadata,
      timestamp: stamp.date,
      component: { ...component, name: 'tributary', type: 'application' },
    },
    components,
    dependencies,
  };
  const digest = createHash('sha256')
    .update(stamp.commit + JSON.stringify([components, dependencies]))
    .digest('hex');
  // RFC 9562: a UUID of version 8, made from what it names.
  const [, ...parts] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digest) ?? [];
  const [low, middle, version, variant, node] = parts;
  return { ...sbom, serialNumber: `urn:uuid:${low}-${middle}-8${version}-8${variant}-${node}` };
}

/** `node_modules/a/node_modules/@b/c/x.js` is of `@b/c`; undefined for our own sources. */
export const packageOf = (path: string): string | undefined =>
  /^.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
