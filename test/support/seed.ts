/**
 * Chance in tests: one seed for a run of a file, from TRIBUTARY_TEST_SEED or random. A failure says with which
 * command it is repeated.
 */
import { randomInt } from 'node:crypto';
import { relative } from 'node:path';

import { expect } from '@jest/globals';

import { type Chance, chanceOf } from '../../faults/chance.ts';

export { type Chance, chanceOf };

const LIMIT = 2 ** 31;
const chosen = randomInt(LIMIT);

/** The seed of the user, or else `fallback`, or else a random number that stays the same in this file. */
export function testSeed(fallback: number = chosen): number {
  const text = process.env['TRIBUTARY_TEST_SEED'];
  if (text === undefined || text === '') return fallback;
  const seed = Number(text);
  if (!Number.isInteger(seed) || Math.abs(seed) > LIMIT) {
    throw new Error(`TRIBUTARY_TEST_SEED is a whole number up to ${LIMIT}, not ${text}`);
  }
  return seed;
}

export interface TestPlace {
  readonly testPath?: string | undefined;
  readonly currentTestName?: string | undefined;
}

/** How the running test is repeated with the same seed. */
export function repeatCommand(seed: number, where: TestPlace = expect.getState()): string {
  const path = relative(process.cwd(), where.testPath ?? '');
  const project = /^test\/(\w+)\//.exec(path)?.[1] ?? 'unit';
  const name = (where.currentTestName ?? '').replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const quoted = `'${name.replaceAll("'", String.raw`'\''`)}'`;
  return `TRIBUTARY_TEST_SEED=${seed} node tools/jest.ts ${project} ${path} --testNamePattern=${quoted}`;
}

/** Runs work that depends on chance. If it fails, the error ends with the command that repeats it. */
export async function seeded(
  work: (chance: Chance) => Promise<void>,
  seed: number = testSeed(),
): Promise<void> {
  try {
    await work(chanceOf(seed));
  } catch (error) {
    const message = Error.isError(error) ? error.message : String(error);
    throw new Error(`${message}\nrepeated by: ${repeatCommand(seed)}`, { cause: error });
  }
}
