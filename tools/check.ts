/**
 * Checks format, lint, types, generated files and rooms, in parallel.
 *
 * Usage: node tools/check.ts [--all]
 *   Checks what has changed since the branch left main, in seconds; --all checks every file, without results of earlier runs.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { changedFiles, partsFor, WHOLE, type CheckPart } from './check-plan.ts';

const root = join(import.meta.dirname, '..');
const secondsSince = (start: number): string => `${((performance.now() - start) / 1000).toFixed(1)} s`;

/** Runs one part. If it fails, its output is printed in one piece. */
async function run({ name, script, args }: CheckPart): Promise<boolean> {
  const began = performance.now();
  const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => printed.push(chunk));
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', reject);
  child.once('close', resolve);
  const ok = (await promise) === 0;
  if (!ok) process.stderr.write(Buffer.concat(printed));
  console.error(`${name}: ${ok ? 'ok' : 'FAILED'}, ${secondsSince(began)}`);
  return ok;
}

const words = process.argv.slice(2);
if (words.some((word) => word !== '--all')) throw new Error('usage: node tools/check.ts [--all]');
const began = performance.now();
const changed = words.length > 0 ? undefined : changedFiles(root);
const parts = changed === undefined ? WHOLE : partsFor(changed);
console.error(parts === WHOLE ? 'checking everything' : `checking ${changed?.length ?? 0} changed files`);
const ended = await Promise.all(parts.map(run));
console.error(`checked in ${secondsSince(began)}`);
process.exitCode = ended.every(Boolean) ? 0 : 1;
