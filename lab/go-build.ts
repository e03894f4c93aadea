/** Builds the programs of one Go module, statically and reproducibly, and says in one line why it could not. */
import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { moduleDir, pinnedVersion, programNames, type BinaryModule } from './binary-table.ts';
import type { Progress } from './cache.ts';

const run = promisify(execFile);

/** A build of several minutes must not look like a hang. */
const heartbeatMs = 15_000;

/** Builds every program of the module into the folder `out`. */
export async function goBuild(module: BinaryModule, out: string, progress: Progress): Promise<void> {
  const dir = moduleDir(module);
  const go = await goProgram(module.name, dir);
  const [first = '', ...others] = programNames(module);
  // With several packages -o names a folder; with one it names the file (etcd's would be called "server").
  const target = others.length > 0 ? `${out}/` : join(out, first);
  const began = performance.now();
  const seconds = (): string => `${((performance.now() - began) / 1000).toFixed(0)} s`;
  progress(`building ${module.name} (${programNames(module).join(', ')})`);
  const heartbeat = setInterval(() => progress(`building ${module.name}: ${seconds()} so far`), heartbeatMs);
  try {
    await build(go, dir, buildArguments(module, target), module.name);
  } finally {
    clearInterval(heartbeat);
  }
  progress(`built ${module.name} in ${seconds()}`);
}

/** -mod=readonly is said here because the command line wins over GOFLAGS, which may ask for something else. */
export function buildArguments(module: BinaryModule, target: string): string[] {
  const version = pinnedVersion(readFileSync(join(moduleDir(module), 'go.mod'), 'utf8'));
  const variables = Object.entries(module.variables?.(version) ?? {}).map(
    ([name, value]) => ` -X ${name}=${value}`,
  );
  return [
    'build',
    '-mod=readonly',
    '-trimpath',
    '-buildvcs=false',
    '-ldflags',
    `-s -w${variables.join('')}`,
    '-o',
    target,
    ...Object.values(module.programs),
  ];
}

/** A workspace or another platform from the environment would change what is built. */
function buildEnvironment(): NodeJS.ProcessEnv {
  const { GOOS: _os, GOARCH: _arch, ...rest } = process.env;
  return { ...rest, CGO_ENABLED: '0', GOWORK: 'off' };
}

async function build(go: string, dir: string, args: string[], name: string): Promise<void> {
  const child = spawn(go, args, { cwd: dir, env: buildEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const code = await new Promise<number | null>((ended, failed) => {
    child.once('error', failed);
    child.once('close', ended);
  });
  if (code !== 0) throw new Error(buildFailure(name, errors));
}

/** One line: the first that is not a download, and a hint where the network is at fault. */
export function buildFailure(name: string, errors: string): string {
  const lines = errors
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('go: downloading '));
  const offline = /dial tcp|no such host|i\/o timeout|TLS handshake|x509:|connection refused/.test(errors);
  const hint = offline ? ' (the Go module proxy cannot be reached: see `go env GOPROXY`)' : '';
  return `building ${name} failed: ${lines.find((line) => !line.startsWith('#'))?.trim() ?? 'no reason given'}${hint}`;
}

/**
 * The go command, of a version that satisfies the module. `go env` inside the module says which toolchain would
 * build it: Go 1.21 and later fetch a newer one by themselves where GOTOOLCHAIN allows it.
 */
async function goProgram(name: string, dir: string): Promise<string> {
  const wanted = /^go (\S+)/m.exec(readFileSync(join(dir, 'go.mod'), 'utf8'))?.[1] ?? '1.26';
  const places = ['go', '/usr/local/go/bin/go'].filter((place) => place === 'go' || existsSync(place));
  const found = await Promise.all(
    places.map(async (place) => {
      const answer = await run(place, ['env', 'GOVERSION'], { cwd: dir, env: buildEnvironment() }).catch(
        () => undefined,
      );
      return { place, version: answer?.stdout.trim().replace(/^go/, '') ?? '' };
    }),
  );
  const go = found.find(({ version }) => atLeast(version, wanted));
  if (go !== undefined) return go.place;
  throw new Error(
    `Go 1.26 or newer is needed to build ${name}: install it from your distribution or https://go.dev/dl`,
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
