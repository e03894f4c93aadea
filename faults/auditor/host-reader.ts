/** Reads the host: processes and the rules of network namespaces. */
import { execFile } from 'node:child_process';
import { createReadStream, existsSync, readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { processIn } from './checks/processes.ts';
import { canariesIn, type Canary, overlap } from './checks/secrets.ts';
import type { Ruleset } from './checks/translation.ts';

const NFT_MS = 30_000;
const MOST_RULES = 256 * 1024 * 1024;
const execute = promisify(execFile);

/** The process of that number, with what tells it from a later one; undefined: it has ended. */
export function processOf(pid: number): { name: string; started: string } | undefined {
  const stat = read(`/proc/${pid}/stat`);
  return stat === undefined ? undefined : processIn(stat);
}

/** Processes in whose arguments a value stands. */
export function argumentsWith(canaries: readonly Canary[]): { pid: number; canary: Canary }[] {
  if (canaries.length === 0) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .flatMap((name) => {
      const text = read(`/proc/${name}/cmdline`) ?? '';
      return canariesIn(text, canaries).map((canary) => ({ pid: Number(name), canary }));
    });
}

/** Undefined: there is no such process any more. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Values that stand in a file, each once. @throws {Error} if it cannot be read */
export async function canariesInFile(path: string, canaries: readonly Canary[]): Promise<Canary[]> {
  if (!existsSync(path)) throw new Error(`there is no log file ${path}`);
  const found = new Set<Canary>();
  const length = overlap(canaries);
  let rest = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const text = rest + String(chunk);
    for (const canary of canariesIn(text, canaries)) found.add(canary);
    rest = length === 0 ? '' : text.slice(-length);
  }
  return [...found];
}

/**
 * The rules of a network namespace, by its name below /run/netns.
 *
 * @throws {Error} if there is no such namespace, or nft fails
 */
export async function rulesetOf(netns: string): Promise<Ruleset> {
  const options = { timeout: NFT_MS, maxBuffer: MOST_RULES };
  const { stdout } = await execute(
    'nsenter',
    [`--net=/run/netns/${netns}`, 'nft', '-j', 'list', 'ruleset'],
    options,
  );
  return JSON.parse(stdout) as Ruleset;
}
