import { describe, expect, test } from '@jest/globals';

import { changedSizes, durationText, hasBefore, repeatCommand } from '../../../bench/frame/repeat.ts';
import { storedParts } from '../../../bench/frame/stored.ts';
import { BENCHES } from '../../../bench/benches.ts';
import { parseCommand } from '../../../bench/frame/command-line.ts';

const contenders = (
  ...names: string[]
): { measured: { contender: string; figure: string; values: number[] }[]; goals: [] } => ({
  measured: names.map((contender) => ({ contender, figure: 'ms', values: [1] })),
  goals: [],
});

describe('the command that repeats a result', () => {
  const result = {
    name: 'idle',
    rounds: 5,
    parameters: { seconds: 40, settle: 90 },
    found: contenders('peer'),
  };

  test('sets what differs from the defaults', () => {
    expect(changedSizes(result.parameters, { seconds: 60, settle: 90 })).toEqual([['seconds', 40]]);
    expect(repeatCommand(result, { seconds: 60, settle: 90 })).toBe(
      'make bench BENCH=idle ROUNDS=5 SET=seconds=40',
    );
    expect(repeatCommand(result, { seconds: 60, settle: 30 })).toBe(
      'make bench BENCH=idle ROUNDS=5 SET=seconds=40,settle=90',
    );
    expect(repeatCommand(result, result.parameters)).toBe('make bench BENCH=idle ROUNDS=5');
  });

  test('needs the version before where it took part', () => {
    expect(hasBefore(contenders('agent', 'before'))).toBe(true);
    expect(hasBefore(contenders('cluster, before'))).toBe(true);
    expect(hasBefore(contenders('before, no pods'))).toBe(true);
    expect(hasBefore(contenders('agent', 'the day before'))).toBe(false);
    expect(repeatCommand({ ...result, found: contenders('before') }, result.parameters)).toBe(
      'make bench BENCH=idle ROUNDS=5 BEFORE=../before',
    );
  });
});

test('a time is told in units that a person plans with', () => {
  expect([39, 89, 100, 729, 3_600, 4_412].map(durationText)).toEqual([
    '39 s',
    '89 s',
    '2 min',
    '12 min',
    '1 h',
    '1 h 14 min',
  ]);
});

/** As make hands them on. */
const optionsOf = (command: string): string[] =>
  command
    .split(' ')
    .slice(2)
    .flatMap((word) => {
      const [, name = '', value = ''] = /^([A-Z]+)=(.*)$/u.exec(word) ?? [];
      if (name === 'SET') return value.split(',').map((size) => `--set=${size}`);
      return [`--${name.toLowerCase()}=${value}`];
    });

test('each stored result is repeated by a command that is understood, with the parameters that it had', () => {
  const { run, defaults } = storedParts();
  for (const done of run.benches) {
    const command = parseCommand(optionsOf(repeatCommand(done, defaults.get(done.name) ?? {})), BENCHES);
    expect(command).toMatchObject({ verb: 'run', rounds: done.rounds, benches: [{ name: done.name }] });
    const changed = 'changed' in command ? command.changed : {};
    expect({ ...defaults.get(done.name), ...changed }).toEqual(done.parameters);
  }
});

test('the default parameters of each benchmark are within its limits', () => {
  for (const { name, parameters } of BENCHES) {
    const sizes = Object.entries(parameters).map(([key, value]) => `--set=${key}=${value}`);
    expect(parseCommand(['--bench', name, ...sizes], BENCHES)).toMatchObject({ changed: parameters });
  }
});
