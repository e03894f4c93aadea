/**
 * The images that Kubernetes' own end-to-end suite asks for, under its names and tags (test/utils/image/manifest.go): made
 * of Debian packages and of the suite's own programs.
 */
import { readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { binaries } from './binaries.ts';
import { cacheDir, cached, shortHash, type Progress } from './cache.ts';
import { debianRoot } from './debian-root.ts';
import { ociArchive, type ImageSpec } from './oci-image.ts';
import { Authority } from './pki.ts';
import { RunError } from './run.ts';
import type { TarEntry } from './tar.ts';

/** Real programs where a spec reads what they print: busybox has other options, and prefers its own applets. */
const packages = [
  'libc6',
  'libc-bin',
  'bash',
  'coreutils',
  'grep',
  'sed',
  'procps',
  'hostname',
  'util-linux',
  'curl',
  'bind9-dnsutils',
  'netcat-openbsd',
  'iproute2',
  'nginx',
  'busybox-static',
] as const;

const hook = join(import.meta.dirname, 'images', 'conformance-hook.sh');
const REGISTRY = 'registry.k8s.io/e2e-test-images';
const ARCHIVE = 'conformance.tar';

/** Path of one OCI archive of all of them, made once. */
export async function conformanceImages(progress: Progress = () => {}): Promise<string> {
  const programs = await binaries(progress, ['agnhost', 'nonewprivs', 'pause']);
  const contents = {
    agnhost: readFileSync(programs.agnhost),
    nonewprivs: readFileSync(programs.nonewprivs),
    pause: readFileSync(programs.pause),
  };
  const writers = ['images-conformance.ts', 'debian-root.ts', 'oci-image.ts', 'tar.ts'];
  const key = shortHash(
    packages.join(' '),
    ...[hook, ...writers.map((file) => join(import.meta.dirname, file))].map((path) => readFileSync(path)),
    ...Object.values(contents),
  );
  const entry = join(cacheDir(), 'images', `conformance-${key}`);
  await cached(
    entry,
    async (out) => {
      progress("making the images of Kubernetes' suite");
      const root = join(out, 'root.tar');
      try {
        await debianRoot({ packages, hook, archive: root });
      } catch (cause) {
        const [message, printed] =
          cause instanceof RunError ? [cause.message, cause.printed] : [String(cause), ''];
        const reason = printed.trim().split('\n').at(-1) || message;
        throw new Error(
          `making the images of Kubernetes' suite failed: ${reason} (it needs mmdebstrap and a Debian mirror)`,
          { cause },
        );
      }
      await writeFile(join(out, ARCHIVE), ociArchive(await images(readFileSync(root), contents)));
      rmSync(root);
    },
    progress,
  );
  return join(entry, ARCHIVE);
}

interface Contents {
  readonly agnhost: Buffer;
  readonly nonewprivs: Buffer;
  readonly pause: Buffer;
}

/**
 * Specs that name the shell by its path read the words of busybox' own. Those that look it up print their environment, which
 * that shell does not hand on whole (conformance-hook.sh).
 */
const BUSYBOX_SHELL: readonly TarEntry[] = [
  { type: 'symlink', path: 'bin/sh', target: 'busybox' },
  { type: 'symlink', path: 'usr/local/bin/sh', target: '../../../bin/bash' },
];

async function images(base: Buffer, contents: Contents): Promise<ImageSpec[]> {
  const agnhost = await agnhostEntries(contents.agnhost);
  const nonewprivs: TarEntry[] = [
    { type: 'file', path: 'usr/local/bin/nnp', content: contents.nonewprivs, mode: 0o4755 },
  ];
  const web = (name: string): ImageSpec => ({
    name: `${REGISTRY}/${name}:1.8`,
    base,
    // The specs only read which picture it would be.
    entries: [
      ...agnhost,
      { type: 'file', path: 'data.json', content: Buffer.from(`{"image": "${name}.jpg"}`) },
    ],
    entrypoint: ['/agnhost'],
    command: ['test-webserver'],
  });
  const nginx = { base, entries: [], command: ['nginx', '-g', 'daemon off;'] };
  const agnhostImage = { base, entries: agnhost, entrypoint: ['/agnhost'], command: ['pause'] };
  return [
    { name: `${REGISTRY}/agnhost:2.63.0`, ...agnhostImage },
    // Older, for specs that replace one image by another one: the same programs under another name.
    { name: `${REGISTRY}/agnhost:2.55`, ...agnhostImage },
    { name: `${REGISTRY}/busybox:1.37.0-1`, base, entries: BUSYBOX_SHELL, command: ['sh'] },
    { name: `${REGISTRY}/glibc-dns-testing:2.0.0`, base, entries: [], command: ['sh'] },
    { name: `${REGISTRY}/nginx:1.15-4`, ...nginx },
    { name: `${REGISTRY}/nginx:1.27-0`, ...nginx },
    { name: `${REGISTRY}/nonewprivs:1.4`, base, entries: nonewprivs, command: ['nnp'] },
    { name: `${REGISTRY}/nonroot:1.5`, base, entries: [], command: ['id', '-u'], user: '1234' },
    web('kitten'),
    web('nautilus'),
    {
      name: 'registry.k8s.io/pause:3.10.2',
      entries: [{ type: 'file', path: 'pause', content: contents.pause, mode: 0o755 }],
      entrypoint: ['/pause'],
      user: '65535:65535',
    },
  ];
}

async function agnhostEntries(program: Buffer): Promise<TarEntry[]> {
  const authority = await Authority.create('conformance');
  const { cert, key } = await authority.issue({ commonName: 'localhost', dns: ['localhost'] });
  return [
    { type: 'file', path: 'agnhost', content: program, mode: 0o755 },
    // Specs call it by both names, to see which entrypoint was taken.
    { type: 'symlink', path: 'agnhost-2', target: 'agnhost' },
    // What `agnhost porter` serves with.
    { type: 'file', path: 'localhost.crt', content: Buffer.from(cert) },
    { type: 'file', path: 'localhost.key', content: Buffer.from(key) },
  ];
}
