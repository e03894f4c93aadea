/**
 * The two images that the Dockerfile stands on, made locally because the lab uses no registry: a runtime of a few
 * Debian libraries and tools, unpacked but never configured (no dpkg, no apt, no perl), and on top of it Node.js,
 * npm and wireguard-go for the build stages. Made once; the cache entry is named after all that goes in.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { binaries } from './binaries.ts';
import { buildah, buildahLocked } from './buildah.ts';
import { cacheDir, cached, shortHash, type Progress } from './cache.ts';
import { debianRoot, debianSuite } from './debian-root.ts';
import { run, RunError } from './run.ts';

export interface AgentBase {
  /** Builds: runtime, node, npm, wireguard-go. */
  readonly build: string;
  /** Ships: libraries and tools, without node. */
  readonly runtime: string;
}

/** The npm that installs inside the build. */
const npmVersion = '11.19.1';
const packageList = join(import.meta.dirname, 'images', 'runtime-packages.txt');
const hook = join(import.meta.dirname, 'images', 'runtime-hook.sh');

/** Names of the two images in buildah's storage. */
export async function agentBase(progress: Progress): Promise<AgentBase> {
  const node = nodeProgram();
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  const programs = { node, wireguard: (await binaries(progress, ['wireguard-go']))['wireguard-go'] };
  const key = shortHash(
    readFileSync(packageList),
    readFileSync(hook),
    readFileSync(import.meta.filename),
    readFileSync(join(import.meta.dirname, 'debian-root.ts')),
    version,
    npmVersion,
    readFileSync(programs.wireguard),
  );
  const names = {
    build: `lab.local/tributary-build:${key}`,
    runtime: `lab.local/tributary-runtime:${key}`,
  };
  await cached(
    join(cacheDir(), 'images', `agent-base-${key}`),
    async (dir) => {
      const began = performance.now();
      progress(`making the base of the agent's image (${debianSuite}, node ${version})`);
      try {
        const packages = packageNames(readFileSync(packageList, 'utf8'));
        await debianRoot({ packages, hook, archive: join(dir, 'root.tar') });
        await buildahLocked(async () => {
          await importRuntime(dir, names.runtime);
          await addPrograms(dir, programs, names);
        }, progress);
      } catch (cause) {
        throw new Error(baseFailure(cause), { cause });
      }
      rmSync(join(dir, 'root.tar'));
      progress(`made the base of the agent's image in ${((performance.now() - began) / 1000).toFixed(0)} s`);
    },
    progress,
  );
  return names;
}

/** One line: the missing program, or the last thing that was said. */
export function baseFailure(cause: unknown): string {
  const [message, printed] = cause instanceof RunError ? [cause.message, cause.printed] : [String(cause), ''];
  const reason = printed.trim().split('\n').at(-1) || message;
  return `making the base of the agent image failed: ${reason} (it needs buildah, mmdebstrap and npm, a Debian mirror and the npm registry)`;
}

async function importRuntime(dir: string, name: string): Promise<void> {
  const container = await buildah('from', 'scratch');
  await buildah('add', '--quiet', container, join(dir, 'root.tar'), '/');
  await buildah('config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', container);
  await buildah('commit', '--quiet', '--rm', container, name);
}

async function addPrograms(
  dir: string,
  { node, wireguard }: { node: string; wireguard: string },
  names: AgentBase,
): Promise<void> {
  const copy = join(dir, 'node');
  cpSync(node, copy);
  // A quarter of the program is symbols. Without strip(1) the image is merely larger.
  await run(['strip', copy]).catch(() => undefined);
  const npm = join(dir, 'npm');
  mkdirSync(npm);
  await run(['npm', 'pack', '--silent', '--pack-destination', npm, `npm@${npmVersion}`]);
  await run(['tar', '-xzf', join(npm, `npm-${npmVersion}.tgz`), '-C', npm]);
  writeFileSync(
    join(dir, 'npm.sh'),
    '#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/npm-cli.js "$@"\n',
    {
      mode: 0o755,
    },
  );

  const container = await buildah('from', '--pull-never', names.runtime);
  await buildah('copy', '--quiet', container, copy, '/usr/local/bin/node');
  await buildah('copy', '--quiet', '--chmod=755', container, wireguard, '/usr/local/bin/wireguard-go');
  await buildah('copy', '--quiet', container, join(npm, 'package'), '/usr/local/lib/node_modules/npm');
  await buildah('copy', '--quiet', container, join(dir, 'npm.sh'), '/usr/local/bin/npm');
  await buildah('commit', '--quiet', '--rm', container, names.build);
  for (const left of [copy, npm, join(dir, 'npm.sh')]) rmSync(left, { recursive: true });
}

/** The names in a package list: one a line, `#` starts a comment. */
export const packageNames = (list: string): string[] =>
  list
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter(Boolean);

/** The node that runs us is the one that ships: npm's package pins it. */
function nodeProgram(): string {
  const packaged = join(import.meta.dirname, '..', 'node_modules', 'node', 'bin', 'node');
  return realpathSync(existsSync(packaged) ? packaged : process.execPath);
}
