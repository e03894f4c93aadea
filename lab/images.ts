/**
 * The images that every lab cluster is given: what a node needs (pause), what a cluster needs (CoreDNS,
 * metrics-server) and what the test pods run (busybox). Made from local programs, once, into the cache.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { binaries } from './binaries.ts';
import { cacheDir, cached, shortHash, type Progress } from './cache.ts';
import { ociImage, type ImageSpec } from './oci-image.ts';

export interface SystemImages {
  readonly pause: string;
  readonly busybox: string;
  readonly coredns: string;
  readonly metricsServer: string;
}

/** What tests and `kubectl cp` call inside a busybox container. */
export const neededApplets = [
  'sh',
  'httpd',
  'nc',
  'wget',
  'tar',
  'md5sum',
  'sleep',
  'stty',
  'nslookup',
  'ping',
  'timeout',
] as const;

/** Paths of the OCI archives of lab.local/pause:1, busybox:1, coredns:1 and metrics-server:1. */
export async function systemImages(progress: Progress = () => {}): Promise<SystemImages> {
  const programs = await binaries(progress, ['pause', 'coredns', 'metrics-server']);
  const [pause, busybox, coredns, metricsServer] = await Promise.all([
    image(programs.pause, (program) => daemonImage('pause', program, '65535:65535'), progress),
    image(busyboxProgram(), busyboxImage, progress),
    // Root, because port 53 is below 1024; its pod drops every capability but the one for that.
    image(programs.coredns, (program) => daemonImage('coredns', program), progress),
    image(
      programs['metrics-server'],
      (program) => daemonImage('metrics-server', program, '65532:65532'),
      progress,
    ),
  ]);
  return { pause, busybox, coredns, metricsServer };
}

/** Path of the OCI archive of lab.local/local-path-provisioner:1. */
export async function localPathImage(progress: Progress = () => {}): Promise<string> {
  const name = 'local-path-provisioner';
  const programs = await binaries(progress, [name]);
  return image(programs[name], (program) => daemonImage(name, program, '65532:65532'), progress);
}

/** Path of the OCI archive of lab.local/greeter:1. */
export async function greeterImage(progress: Progress = () => {}): Promise<string> {
  const programs = await binaries(progress, ['greeter']);
  return image(programs.greeter, (program) => daemonImage('greeter', program, '65532:65532'), progress);
}

/** One archive from one program; the hash covers the program and the code that lays out the image. */
async function image(
  program: string,
  spec: (program: Buffer) => ImageSpec,
  progress: Progress,
): Promise<string> {
  const name = basename(program);
  const content = readFileSync(program);
  const writers = ['images.ts', 'oci-image.ts', 'tar.ts'].map((file) =>
    readFileSync(join(import.meta.dirname, file)),
  );
  const entry = join(cacheDir(), 'images', `${name}-${shortHash(content, ...writers)}`);
  const archive = `${name}.tar`;
  await cached(
    entry,
    async (out) => {
      const began = performance.now();
      await writeFile(join(out, archive), ociImage(spec(content)));
      progress(`made the ${name} image in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    },
    progress,
  );
  return join(entry, archive);
}

/** A static program alone in its image, as its entrypoint. */
function daemonImage(name: string, program: Buffer, user?: string): ImageSpec {
  return {
    name: `lab.local/${name}:1`,
    entries: [{ type: 'file', path: name, content: program, mode: 0o755 }],
    entrypoint: [`/${name}`],
    ...(user !== undefined && { user }),
  };
}

/**
 * A shell and its tools. Known of Debian 12's busybox 1.35: `wget -T` crashes (use `timeout 3 wget`), `nc` has no
 * `-z`, and `nslookup` of a short name ignores the search list.
 */
function busyboxImage(program: Buffer): ImageSpec {
  return {
    name: 'lab.local/busybox:1',
    entries: [
      { type: 'file', path: 'bin/busybox', content: program, mode: 0o755 },
      ...applets(busyboxProgram())
        .filter((applet) => applet !== 'busybox')
        .map((applet) => ({ type: 'symlink', path: `bin/${applet}`, target: 'busybox' }) as const),
      { type: 'directory', path: 'root', mode: 0o700 },
      { type: 'directory', path: 'usr/bin' },
      { type: 'directory', path: 'var/www' },
    ],
    command: ['sh'],
  };
}

const applets = (program: string): string[] =>
  execFileSync(program, ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean);

/** The static busybox of the distribution; a dynamic one would not start in an image of its own. */
function busyboxProgram(): string {
  const found = ['/bin/busybox', '/usr/bin/busybox'].find((path) => {
    try {
      const list = applets(path);
      return neededApplets.every((applet) => list.includes(applet)) && isStatic(readFileSync(path));
    } catch {
      return false;
    }
  });
  if (found !== undefined) return found;
  throw new Error('a static busybox is missing: apt-get install busybox-static');
}

/** Whether a 64-bit ELF program asks for no interpreter (program header type PT_INTERP, 3): then it is static. */
export function isStatic(program: Buffer): boolean {
  const [headers, size, count] = [
    Number(program.readBigUInt64LE(32)),
    program.readUInt16LE(54),
    program.readUInt16LE(56),
  ];
  return Array.from({ length: count }, (_, i) => program.readUInt32LE(headers + i * size)).every(
    (type) => type !== 3,
  );
}
