import { expect, test } from '@jest/globals';

import { chanceOf, oneOf } from '../../../faults/chance.ts';
import { type RandomRun, randomRun } from '../../../faults/pods/random.ts';
import { OPERATIONS } from '../../../faults/pods/workload.ts';

const SEEDS = Array.from({ length: 2_000 }, (_none, index) => index + 1);
const RUNS = SEEDS.map(randomRun);

const all = (of: (run: RandomRun) => string | undefined): string[] =>
  [...new Set(RUNS.map(of))].filter((one) => one !== undefined).toSorted();

test('a seed says all of a run', () => {
  expect(SEEDS.map(randomRun)).toEqual(RUNS);
  expect(randomRun(4711)).toEqual({
    operation: expect.any(String),
    fault: expect.objectContaining({ kind: expect.any(String) }),
    lastsMs: expect.any(Number),
  });
});

test('neighbouring seeds are different runs', () => {
  const texts = new Set(RUNS.map((run) => JSON.stringify(run)));
  expect(texts.size).toBeGreaterThan(RUNS.length * 0.98);
});

test('each operation, side and kind of fault occurs', () => {
  expect(all(({ operation }) => operation)).toEqual([...OPERATIONS].toSorted());
  expect(all(({ fault }) => fault.sides.join())).toEqual(['home', 'home,provider', 'provider']);
  expect(all(({ fault }) => fault.kind)).toEqual([
    'away',
    'cold',
    'cut',
    'kills',
    'requests',
    'stop',
    'watches',
  ]);
  for (const run of RUNS) {
    expect(run.lastsMs).toBeGreaterThanOrEqual(500);
    expect(run.lastsMs).toBeLessThan(4_000);
  }
});

test('each fault of a request occurs, and only where it changes something', () => {
  const said = ({ fault }: RandomRun): string | undefined => {
    if (fault.kind !== 'requests') return undefined;
    const { kind, ...rest } = fault.fault;
    return `${kind} ${'when' in rest ? rest.when : 'code' in rest ? rest.code : ''} of ${fault.of}`;
  };
  const everywhere = ['cut after', 'cut before', 'delay ', 'silence ', 'truncate '];
  const codes = [410, 429, 500, 503].map((code) => `status ${code}`);
  const wanted = [
    ...[...everywhere, ...codes].flatMap((one) => [`${one} of all`, `${one} of writes`]),
    'duplicate  of writes',
    'empty  of lists',
    'stale  of lists',
  ];
  expect(all(said)).toEqual(wanted.toSorted());
});

test('each fault of a watch, and each false beginning, occurs', () => {
  expect(
    all(({ fault }) =>
      fault.kind === 'watches'
        ? `${fault.fault.kind}${'code' in fault.fault ? fault.fault.code : ''}`
        : undefined,
    ),
  ).toEqual(['delay', 'duplicate', 'error410', 'error500', 'reorder', 'replay', 'silence', 'truncate']);
  expect(all(({ fault }) => (fault.kind === 'cold' ? fault.fault.kind : undefined))).toEqual([
    'empty',
    'stale',
    'status',
    'truncate',
  ]);
});

test('percentages and delays keep to their bounds', () => {
  for (const { fault } of RUNS) {
    if (fault.kind === 'requests') {
      expect(fault.percent).toBeGreaterThanOrEqual(10);
      expect(fault.percent).toBeLessThan(80);
    }
    if ('fault' in fault && fault.fault.kind === 'delay') {
      expect(fault.fault.ms).toBeGreaterThanOrEqual(50);
      expect(fault.fault.ms).toBeLessThan(1_500);
    }
  }
});

test('chance: numbers of a seed, within bounds, and all of them', () => {
  const numbers = (seed: number): number[] => {
    const chance = chanceOf(seed);
    return Array.from({ length: 500 }, () => chance.between(3, 10));
  };
  expect(numbers(1)).toEqual(numbers(1));
  expect(numbers(1)).not.toEqual(numbers(2));
  expect([...new Set(numbers(1))].toSorted((a, b) => a - b)).toEqual([3, 4, 5, 6, 7, 8, 9]);
  expect(chanceOf(1).bytes(5)).toHaveLength(5);
  expect(oneOf(chanceOf(1), ['only'])).toBe('only');
});
