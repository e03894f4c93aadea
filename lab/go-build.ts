/** Builds programs of one Go module, statically and reproducibly, and says in one line why it could not. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { moduleDir, type BinaryModule, type BinaryName } from './binary-table.ts';
import { BuildProgress } from './build-progress.ts';
import type { Progress } from './cache.ts';

const run = promisify(execFile);

/** A build of several minutes must not look like a hang. */
const heartbeatMs = 10_000;

export interface GoBuild {
  readonly names: readonly BinaryName[];
  /** An empty folder. */
  readonly out: string;
}

/** Builds these programs into the folder `out`; the path of each there. */
export async function goBuild(
  module: BinaryModule,
  { names, out }: GoBuild,
  progress: Progress,
): Promise<Map<BinaryName, string>> {
  const dir = moduleDir(module);
  const go = await goCommand(dir);
  const packages = names.map((name) => packageOf(module, name));
  const flags = buildFlags(module);
  const what = names.length > 4 ? `${names.length} programs` : names.join(', ');
  progress(`building ${what}`);
  const stale = await stalePackages(go, { dir, flags, packages });
  const work = new BuildProgress({
    packages: stale,
    programs: names.length,
    clock: () => performance.now(),
  });
  const heartbeat = setInterval(
    () => progress(`building ${what}: ${work.line(readdirSync(out).length)}`),
    heartbeatMs,
  );
  try {
    await build(go, { dir, args: ['-v', ...flags, '-o', `${out}/`, ...packages], what }, () =>
      work.compiled(),
    );
  } finally {
    clearInterval(heartbeat);
  }
  progress(`built ${what} in ${work.seconds()} s`);
  return new Map(names.map((name) => [name, join(out, fileOf(packageOf(module, name)))]));
}

function packageOf(module: BinaryModule, name: BinaryName): string {
  const source = module.programs[name];
  if (source === undefined) throw new Error(`the module ${module.name} has no program ${name}`);
  return source.package;
}

/** The name that `go build` gives a program: the last part of its package path that is not a version. */
export const fileOf = (path: string): string =>
  path.split('/').findLast((part) => !/^v\d+$/.test(part)) ?? path;

/** -mod=readonly is said here because the command line wins over GOFLAGS, which may ask for something else. */
export function buildFlags(module: BinaryModule): string[] {
  const goMod = readFileSync(join(moduleDir(module), 'go.mod'), 'utf8');
  const variables = Object.entries(module.variables?.(goMod) ?? {}).map(
    ([name, value]) => ` -X ${name}=${value}`,
  );
  return [
    '-mod=readonly',
    '-trimpath',
    '-buildvcs=false',
    // Nobody debugs these programs, and without that compiling takes a sixth less time.
    '-gcflags=all=-dwarf=false',
    '-ldflags',
    `-s -w${variables.join('')}`,
  ];
}

/** The go command, and what its environment needs for a module. */
interface GoCommand {
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
}

/** A workspace or another platform from the environment would change what is built. */
function buildEnvironment(): NodeJS.ProcessEnv {
  const { GOOS: _os, GOARCH: _arch, ...rest } = process.env;
  // The compiler collects its garbage less often: more memory, a sixth less time.
  return { GOGC: '400', ...rest, CGO_ENABLED: '0', GOWORK: 'off' };
}

/**
 * Counts the packages to be compiled. Modules are downloaded here, so that the build after it only compiles. If this
 * fails, the build reports the same failure.
 */
async function stalePackages(
  { program, env }: GoCommand,
  { dir, flags, packages }: { dir: string; flags: readonly string[]; packages: readonly string[] },
): Promise<number> {
  const args = ['list', '-deps', '-f', '{{if .Stale}}{{.ImportPath}}{{end}}', ...flags, ...packages];
  const listed = await run(program, args, { cwd: dir, env, maxBuffer: 1 << 26 }).catch(() => undefined);
  return listed?.stdout.split('\n').filter(Boolean).length ?? 0;
}

async function build(
  { program, env }: GoCommand,
  { dir, args, what }: { dir: string; args: readonly string[]; what: string },
  onPackage: () => void,
): Promise<void> {
  const child = spawn(program, ['build', ...args], { cwd: dir, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  for await (const line of createInterface(child.stderr)) {
    if (isPackage(line)) onPackage();
    else errors += `${line}\n`;
  }
  const code = child.exitCode ?? (await once(child, 'close'))[0];
  if (code !== 0) throw new Error(buildFailure(what, errors));
}

/** A line of `go build -v`: a package that is being compiled. */
const isPackage = (line: string): boolean => /^[\w./~-]+$/.test(line);

/** One line: the first that is not about a download, with a hint if the network is the cause. */
export function buildFailure(name: string, errors: string): string {
  const lines = errors
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('go: downloading '));
  const offline = /dial tcp|no such host|i\/o timeout|TLS handshake|x509:|connection refused/.test(errors);
  const hint = offline ? ' (the Go module proxy cannot be reached: see `go env GOPROXY`)' : '';
  return `building ${name} failed: ${lines.find((line) => !line.startsWith('#'))?.trim() ?? 'no reason given'}${hint}`;
}

/** From this version on, Go fetches a newer version of itself from the module proxy, if that is permitted. */
const FETCHES_TOOLCHAINS = '1.21';

/**
 * A Go that satisfies the module: on the PATH, where go.dev's archive puts it, or where Debian puts those of its backports
 * (tools/setup.sh installs one). Where all are older, one that can fetch a newer toolchain is told to.
 */
async function goCommand(dir: string): Promise<GoCommand> {
  const wanted = /^go (\S+)/m.exec(readFileSync(join(dir, 'go.mod'), 'utf8'))?.[1] ?? '';
  const places = [
    'go',
    ...['/usr/local/go/bin/go'].filter((place) => existsSync(place)),
    ...globSync('/usr/lib/go-1.*/bin/go'),
  ];
  const env = buildEnvironment();
  const found = await Promise.all(
    places.map(async (program) => {
      // Run outside of the module: the version that the module requires would be an error here.
      const answer = await run(program, ['env', 'GOVERSION'], { cwd: '/', env }).catch(() => undefined);
      return { program, version: answer?.stdout.trim().replace(/^go/, '') ?? '' };
    }),
  );
  const fit = found.find(({ version }) => atLeast(version, wanted));
  if (fit !== undefined) return { program: fit.program, env };
  const older = found.find(({ version }) => atLeast(version, FETCHES_TOOLCHAINS));
  if (older !== undefined) return { program: older.program, env: { ...env, GOTOOLCHAIN: 'auto' } };
  throw new Error(
    `Go ${wanted} or newer is needed to build the lab's programs: install it from your distribution or https://go.dev/dl`,
  );
}

/** Compares dotted versions number by number; an empty one is less than any. */
export function atLeast(version: string, wanted: string): boolean {
  const numbers = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);
  const [have, want] = [numbers(version), numbers(wanted)];
  if (have.length === 0) return false;
  for (let i = 0; i < want.length; i += 1) {
    const difference = (have[i] ?? 0) - (want[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
