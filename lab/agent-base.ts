/**
 * The two images that the Dockerfile stands on, made locally because the lab uses no registry: a runtime of a few
 * Debian libraries and tools, unpacked but never configured (no dpkg, no apt, no perl), and on top of it Node.js
 * and npm for the build stages. Made once; the cache entry is named after all that goes in.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { buildah, buildahLocked } from './buildah.ts';
import { cacheDir, cached, shortHash, type Progress } from './cache.ts';
import { run, RunError } from './run.ts';

export interface AgentBase {
  /** Builds: runtime, node, npm. */
  readonly build: string;
  /** Ships: libraries and tools, without node. */
  readonly runtime: string;
}

const suite = 'bookworm';
/** Downloading some 20 MB of packages, on whatever network there is. */
const timeoutMs = 10 * 60_000;
/** The npm that installs inside the build. */
const npmVersion = '11.19.1';
const packageList = join(import.meta.dirname, 'images', 'runtime-packages.txt');
const hook = join(import.meta.dirname, 'images', 'runtime-hook.sh');

/** Never loaded: documents, translations, and character sets that only iconv(3) knows. */
const leftOut = ['/usr/share/*', '/usr/lib/*/gconv/*', '/usr/lib/*/audit/*', '/lib/*/audit/*'];

/** Names of the two images in buildah's storage. */
export async function agentBase(progress: Progress): Promise<AgentBase> {
  const node = nodeProgram();
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  const key = shortHash(
    readFileSync(packageList),
    readFileSync(hook),
    readFileSync(import.meta.filename),
    version,
    npmVersion,
  );
  const names = {
    build: `lab.local/tributary-build:${key}`,
    runtime: `lab.local/tributary-runtime:${key}`,
  };
  await cached(
    join(cacheDir(), 'images', `agent-base-${key}`),
    async (dir) => {
      const began = performance.now();
      progress(`making the base of the agent's image (${suite}, node ${version})`);
      try {
        await rootFilesystem(dir);
        await buildahLocked(async () => {
          await importRuntime(dir, names.runtime);
          await addNode(dir, node, names);
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

async function rootFilesystem(dir: string): Promise<void> {
  const packages = packageNames(readFileSync(packageList, 'utf8'));
  await run(
    [
      'mmdebstrap',
      '--mode=root',
      '--variant=extract',
      `--include=${packages.join(',')}`,
      ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
      // The only hook that this variant runs once the packages are there.
      `--extract-hook=${hook}`,
      suite,
      join(dir, 'root.tar'),
    ],
    { timeoutMs },
  );
}

async function importRuntime(dir: string, name: string): Promise<void> {
  const container = await buildah('from', 'scratch');
  await buildah('add', '--quiet', container, join(dir, 'root.tar'), '/');
  await buildah('config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', container);
  await buildah('commit', '--quiet', '--rm', container, name);
}

async function addNode(dir: string, node: string, names: AgentBase): Promise<void> {
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
