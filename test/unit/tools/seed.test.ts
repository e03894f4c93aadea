import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { fc } from '../../support/property.ts';
import { chanceOf, repeatCommand, seeded, testSeed } from '../../support/seed.ts';

const NAME = 'TRIBUTARY_TEST_SEED';
let given: string | undefined;
beforeEach(() => {
  given = process.env[NAME];
  delete process.env[NAME];
});
afterEach(() => {
  if (given === undefined) delete process.env[NAME];
  else process.env[NAME] = given;
});

describe('the seed', () => {
  test('is the same in a whole file, and what the user gives goes before', () => {
    expect(testSeed()).toBe(testSeed());
    expect(testSeed(7)).toBe(7);
    process.env[NAME] = '-12';
    expect(testSeed(7)).toBe(-12);
  });

  test.each(['x', '1.5', '1e12'])('is no %s', (text) => {
    process.env[NAME] = text;
    expect(() => testSeed()).toThrow(`TRIBUTARY_TEST_SEED is a whole number up to 2147483648, not ${text}`);
  });
});

test('the same seed gives the same numbers, another one others', () => {
  const take = (seed: number): unknown => {
    const chance = chanceOf(seed);
    return [chance.below(1e9), chance.between(5, 1e9), chance.bytes(20)];
  };
  expect(take(1)).toEqual(take(1));
  expect(take(1)).not.toEqual(take(2));
});

test('numbers stay in their range, and reach both ends of it', () => {
  const chance = chanceOf(1);
  const seen = new Set(Array.from({ length: 200 }, () => chance.between(3, 6)));
  expect(seen).toEqual(new Set([3, 4, 5]));
});

test('the command names the suite, the file and the test, whatever stands in its name', () => {
  const testPath = join(process.cwd(), 'test/integration/a.test.ts');
  expect(repeatCommand(5, { testPath, currentTestName: "it's 1 + 1 (b)" })).toBe(
    String.raw`TRIBUTARY_TEST_SEED=5 node tools/jest.ts integration test/integration/a.test.ts ` +
      String.raw`--testNamePattern='it'\''s 1 \+ 1 \(b\)'`,
  );
});

test('what fails by chance says how it is repeated, and keeps its reason', async () => {
  const reason = new Error('both are wrong');
  const failing = seeded(async () => Promise.reject(reason), 11);
  await expect(failing).rejects.toMatchObject({ cause: reason });
  await expect(failing).rejects.toThrow(
    /^both are wrong\nrepeated by: TRIBUTARY_TEST_SEED=11 node tools\/jest\.ts unit test\/unit\/tools\/seed/,
  );
});

describe('a property', () => {
  const wrong = fc.property(fc.integer(), (number) => number < 100);

  test('that does not hold says how it is run again, with a counterexample', () => {
    const run = (): void => fc.assert(wrong);
    expect(run).toThrow(/Counterexample: \[100\]/);
    expect(run).toThrow(/repeated by: TRIBUTARY_TEST_SEED=-?\d+ node tools\/jest\.ts unit .*seed\.test\.ts/);
  });

  test('that is asynchronous says so, too', async () => {
    const later = fc.asyncProperty(fc.integer(), async (number) => Promise.resolve(number < 100));
    await expect(fc.assert(later)).rejects.toThrow(/repeated by: TRIBUTARY_TEST_SEED=/);
  });

  test('has the seed of this run', () => {
    process.env[NAME] = given;
    if (given === undefined) delete process.env[NAME];
    expect(fc.check(wrong).seed).toBe(testSeed());
    expect(fc.readConfigureGlobal().seed).toBe(testSeed());
  });
});
