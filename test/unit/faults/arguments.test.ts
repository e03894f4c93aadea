import { expect, test } from '@jest/globals';
import { parseArguments } from '../../../faults/arguments.ts';

test('without options all runs are made, each with a seed of its own', () => {
  const { seed, ...options } = parseArguments([]);
  expect(seed).toBeGreaterThan(0);
  expect(options).toMatchObject({ podRuns: 400, peerRuns: 200, only: [], podStride: 1, isPlanted: false });
});

test('planted bugs are looked for at fewer writes, unless it is said at how many', () => {
  expect(parseArguments(['--planted'])).toMatchObject({ podStride: 8, patienceSeconds: 15, isPlanted: true });
  expect(parseArguments(['--planted', '--stride', '3'])).toMatchObject({ podStride: 3, patienceSeconds: 15 });
});

test('runs are named', () => {
  expect(parseArguments(['--run', 'kill:create:home:before:3,random:7']).only).toEqual([
    { kind: 'kill', operation: 'create', side: 'home', when: 'before', write: 3 },
    { kind: 'random', seed: 7 },
  ]);
});

test.each([
  [['--run', 'nope'], '--run: there is no run "nope"; see faults/README.md'],
  [['--runs', '-1'], /argument/u],
  [['--runs=-1'], '--runs is a whole number from 0 on, not "-1"'],
  [['--seed', ''], '--seed is a whole number from 1 on, not ""'],
  [['--lanes', '1.5'], '--lanes is a whole number from 1 on, not "1.5"'],
  [['--nope'], /Unknown option '--nope'/u],
])('what is wrong is said in a line: %j', (args, message) => {
  expect(() => parseArguments(args)).toThrow(message);
});
