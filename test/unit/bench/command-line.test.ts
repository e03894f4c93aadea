/** What a person may ask of a benchmark. */
import 'reflect-metadata';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import {
  assigned,
  changedParameters,
  chooseBenches,
  isMistake,
  positiveNumber,
  wholeNumber,
} from '../../../bench/frame/arguments.ts';
import type { Bench } from '../../../bench/frame/bench.ts';
import { listText, parseCommand, type RunCommand } from '../../../bench/frame/command-line.ts';
import { checkCheckout, checkWritable } from '../../../bench/frame/places.ts';
import { checkPossible, chosen } from '../../../bench/frame/run.ts';

const bench = (name: string, more: Partial<Bench> = {}): Bench => ({
  name,
  title: `title of ${name}`,
  what: 'one with another',
  parameters: { pods: 10 },
  run: async () => Promise.resolve({ measured: [], goals: [] }),
  ...more,
});

const idle = bench('idle', { parameters: { seconds: 60, settle: 90 }, limits: { settle: { least: 0 } } });
const start = bench('start', {
  parameters: { ops: 18_100 },
  limits: { ops: { least: 1_024, most: 65_500 } },
});
const ALL = [bench('burst'), idle, start, bench('outage', { parameters: {} })];

/** The message of the refusal, which is one line. */
function refusal(...args: string[]): string {
  try {
    parseCommand(args, ALL);
  } catch (error) {
    if (!isMistake(error)) throw error;
    expect(error.message).not.toContain('\n');
    return error.message;
  }
  throw new Error(`${args.join(' ')} is not refused`);
}

describe('a command', () => {
  test('runs all benchmarks five times with their own parameters, unless it says otherwise', () => {
    expect(parseCommand([], ALL)).toEqual({
      verb: 'run',
      benches: ALL,
      changed: {},
      rounds: 5,
      json: undefined,
      before: undefined,
      others: [],
      nodeFlags: [],
    });
  });

  test('says what runs, how often, and with what', () => {
    const args = [
      '--bench',
      'idle',
      '--rounds=2',
      '--set',
      'settle=0',
      '--json',
      'run.json',
      '--before',
      '../before',
    ];
    const more = ['--other', 'x=run --now=1', '--node-flag=--cpu-prof', '--check'];
    const command = parseCommand([...args, ...more], ALL) as RunCommand;
    expect(command).toEqual({
      verb: 'check',
      benches: [idle],
      changed: { settle: 0 },
      rounds: 2,
      json: 'run.json',
      before: '../before',
      others: [{ name: 'x', command: 'run --now=1' }],
      nodeFlags: ['--cpu-prof'],
    });
  });

  test('takes variables of make that are empty as not given', () => {
    const command = parseCommand(['--bench=', '--json=', '--before='], ALL) as RunCommand;
    expect(command).toMatchObject({ benches: ALL, json: undefined, before: undefined });
  });

  test('may ask for help or for a list', () => {
    expect(parseCommand(['--help', '--list'], ALL)).toEqual({ verb: 'help' });
    expect(parseCommand(['--list'], ALL)).toEqual({ verb: 'list' });
    expect(listText([idle, bench('outage', { parameters: {} })])).toBe(
      'idle: title of idle [seconds=60, settle=90]\noutage: title of outage\n',
    );
  });

  test.each([
    [['--rounds', '0'], 'rounds is to be a whole number from 1 on, not "0"'],
    [['--rounds', 'abc'], 'rounds is to be a whole number from 1 on, not "abc"'],
    [['--rounds', '1.5'], 'rounds is to be a whole number from 1 on, not "1.5"'],
    [['--rounds', '-1'], 'rounds is to be a whole number from 1 on, not "-1"'],
    [['--rounds='], 'rounds is to be a whole number from 1 on, not ""'],
    [['--rounds'], "Option '--rounds <value>' argument missing; --help lists all options"],
    [['--round', '3'], "Unknown option '--round'; --help lists all options"],
    [['idle'], 'unexpected idle: benchmarks are named by --bench NAME,NAME'],
    [['--bench', 'x'], 'there is no benchmark x; there are burst, idle, start, outage'],
    [['--set', 'pods=0'], 'pods is to be a whole number from 1 on, not "0"'],
    [['--set', 'pods=-5'], 'pods is to be a whole number from 1 on, not "-5"'],
    [['--set', 'settle=-1'], 'settle is to be a whole number from 0 on, not "-1"'],
    [['--set', 'ops=70000'], 'ops is to be a whole number from 1024 to 65500, not "70000"'],
    [['--bench', 'idle', '--set', 'pods=3'], 'there is no parameter pods; there are seconds, settle'],
    [['--bench', 'outage', '--set', 'pods=3'], 'there is no parameter pods; outage has none'],
    [['--set', 'pods'], '"pods" is not of the form NAME=VALUE'],
  ])('%j is refused in one line', (args, message) => {
    expect(refusal(...args)).toBe(message);
  });
});

describe('arguments', () => {
  test('choose benchmarks in their own order, and all without a name', () => {
    const all = [bench('a'), bench('b'), bench('c')];
    expect(chooseBenches(all, 'c, a').map(({ name }) => name)).toEqual(['a', 'c']);
    expect(chooseBenches(all, '')).toHaveLength(3);
  });

  test('assign at the first sign of equality only', () => {
    expect(assigned(['a=b=c'])).toEqual([['a', 'b=c']]);
    expect(() => assigned(['=b'])).toThrow('"=b" is not of the form NAME=VALUE');
  });

  test('hold for all benchmarks that have a parameter', () => {
    const benches = [bench('a', { limits: { pods: { least: 0 } } }), bench('b')];
    expect(changedParameters(['pods=20'], benches)).toEqual({ pods: 20 });
    expect(() => changedParameters(['pods=0'], benches)).toThrow(
      'pods is to be a whole number from 1 on, not "0"',
    );
    expect(() => changedParameters(['pods=20,peers=3'], benches)).toThrow('not "20,peers=3"');
  });

  test('change only parameters that a benchmark has', () => {
    expect(chosen({ pods: 10 }, { pods: 3, peers: 4 })).toEqual({ pods: 3 });
  });

  test('are numbers', () => {
    expect(wholeNumber('pods', ' 12 ')).toBe(12);
    expect(positiveNumber('minutes', '0.5')).toBe(0.5);
    for (const text of ['', ' ', '0', '-1', 'x', 'Infinity'])
      expect(() => positiveNumber('minutes', text)).toThrow(
        `minutes is to be a number above 0, not "${text}"`,
      );
  });
});

test('a benchmark that cannot run with these sizes is refused before any runs', () => {
  const large = bench('large', { problem: ({ pods }) => ((pods ?? 0) > 20 ? 'no room' : undefined) });
  expect(() => checkPossible([bench('a'), large], {})).not.toThrow();
  expect(() => checkPossible([bench('a'), large], { pods: 21 })).toThrow(
    'benchmark large cannot run here: no room',
  );
});

describe('files and folders', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'places-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('are looked at, and left as they are', () => {
    checkWritable(join(folder, 'new.json'));
    expect(readdirSync(folder)).toEqual([]);
    writeFileSync(join(folder, 'old.json'), 'old');
    checkWritable(join(folder, 'old.json'));
    expect(readFileSync(join(folder, 'old.json'), 'utf8')).toBe('old');
  });

  test('are refused where nothing can be written', () => {
    const nowhere = join(folder, 'none', 'x.json');
    expect(() => checkWritable(nowhere)).toThrow(
      `${nowhere} cannot be written: there is no folder ${join(folder, 'none')}`,
    );
    expect(() => checkWritable(folder)).toThrow(`${folder} cannot be written: `);
  });

  test('are refused as another version without what it is built from', () => {
    for (const part of ['package.json', 'src']) mkdirSync(join(folder, part));
    expect(() => checkCheckout(folder)).toThrow('it has no node_modules');
    mkdirSync(join(folder, 'node_modules'));
    expect(checkCheckout(relative(process.cwd(), folder))).toBe(folder);
  });
});
