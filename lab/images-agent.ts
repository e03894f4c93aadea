/** The image of Tributary itself, built from the repository's Dockerfile on local bases. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

import { agentBase, type AgentBase } from './agent-base.ts';
import { buildah, buildahLocked, pruneLayers } from './buildah.ts';
import { cacheDir, cached, shortHash, type Progress } from './cache.ts';
import { run, RunError } from './run.ts';

/** The name under which pods ask for it. */
export const agentImageName = 'lab.local/tributary:1';

const repository = join(import.meta.dirname, '..');
const inputs = [
  'Dockerfile',
  '.containerignore',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'src',
  'web',
  'tools/build-page.ts',
  'tools/build-program.ts',
  'tools/without-models.ts',
];
/** Older builds are only useful to go back to a commit. */
const buildsKept = 3;

/**
 * Path of the OCI archive of lab.local/tributary:1. If nothing has changed, only a hash is computed; if a source has
 * changed, one layer is built.
 */
export async function agentImage(progress: Progress = () => {}, root: string = repository): Promise<string> {
  const base = await agentBase(progress);
  const images = join(cacheDir(), 'images');
  const entry = join(images, `agent-${shortHash(JSON.stringify(base), ...contents(root))}`);
  await cached(
    entry,
    async (out) => {
      // One build at a time: two would fill the same layers twice.
      await buildahLocked(async () => build(root, base, out, progress), progress);
    },
    progress,
  );
  prune(images);
  return join(entry, 'tributary.tar');
}

/** Every input's path and bytes, in a fixed order. Another version may lack some. */
export function contents(root: string): (string | Buffer)[] {
  return inputs
    .filter((input) => existsSync(join(root, input)))
    .flatMap((input) => files(join(root, input)))
    .flatMap((file) => [`\0${relative(root, file)}\0`, readFileSync(file)]);
}

function files(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => files(join(path, entry.name)));
}

async function build(root: string, base: AgentBase, out: string, progress: Progress): Promise<void> {
  const began = performance.now();
  const seconds = (): string => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  progress('building the agent image');
  const npmCache = join(cacheDir(), 'npm');
  await mkdir(npmCache, { recursive: true });
  const npmrc = join(out, 'npmrc');
  writeFileSync(npmrc, await npmConfiguration());
  try {
    await buildah(
      'bud',
      '--isolation=chroot',
      '--pull-never',
      '--network=host',
      '--layers',
      '--force-rm',
      ...certificates.filter(existsSync).map((path) => `--volume=${path}:${path}:ro`),
      `--volume=${npmrc}:${npmGlobal.config}:ro`,
      `--volume=${npmCache}:${npmGlobal.cache}`,
      `--build-arg=BASE_IMAGE=${base.build}`,
      // It brings wireguard-go along.
      `--build-arg=GO_IMAGE=${base.build}`,
      `--build-arg=RUNTIME_IMAGE=${base.runtime}`,
      `--tag=${agentImageName}`,
      root,
    );
  } catch (cause) {
    throw new Error(buildFailure(cause), { cause });
  }
  rmSync(npmrc);
  progress(`built the agent image in ${seconds()}`);
  await buildah(
    'push',
    '--quiet',
    '--compression-format=zstd',
    agentImageName,
    `oci-archive:${join(out, 'tributary.tar')}:${agentImageName}`,
  );
  progress(`wrote the agent image: ${seconds()} in all`);
  await pruneLayers();
}

/** Where Debian and others keep certificate authorities, perhaps with one of the proxy of the network. */
const certificates = ['/etc/ssl/certs'];

/** In the build container: npm's own configuration for a node in /usr/local/bin, whatever the home of its user is. */
const npmGlobal = { config: '/usr/local/etc/npmrc', cache: '/var/cache/npm' };

/** The registry of the machine, its authorities, and short time limits: a build without a network must say so soon. */
async function npmConfiguration(): Promise<string> {
  const registry = await run(['npm', 'config', 'get', 'registry']);
  const bundle = '/etc/ssl/certs/ca-certificates.crt';
  return [
    `registry=${registry.trim().split('\n').at(-1)}`,
    `cache=${npmGlobal.cache}`,
    ...(existsSync(bundle) ? [`cafile=${bundle}`] : []),
    'fetch-retries=1',
    'prefer-offline=true',
    'update-notifier=false',
    '',
  ].join('\n');
}

/** One line: the network, or the first thing that npm or tsc called an error. */
export function buildFailure(cause: unknown): string {
  const [message, printed] = cause instanceof RunError ? [cause.message, cause.printed] : [String(cause), ''];
  if (/E(NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT)\b|SELF_SIGNED_CERT/.test(printed)) {
    return 'building the agent image failed: npm ci needs the npm registry, which cannot be reached';
  }
  // buildah's own last word only repeats the step.
  const line = printed
    .split('\n')
    .find((text) => /error/i.test(text) && !text.startsWith('Error: building at'));
  return `building the agent image failed: ${(line ?? message).trim()}`;
}

/** Removes all but the latest builds, with their locks. */
function prune(images: string): void {
  const builds = readdirSync(images)
    .filter((name) => /^agent-[0-9a-f]{12}$/.test(name))
    .map((name) => ({ name, time: statSync(join(images, name)).mtimeMs }))
    .sort((a, b) => b.time - a.time);
  for (const { name } of builds.slice(buildsKept)) {
    rmSync(join(images, name), { recursive: true, force: true });
    rmSync(join(images, `${name}.lock`), { force: true });
  }
}
