import { describe, expect, test } from '@jest/globals';
import { type Goal, inTurn } from '../../../bench/frame/bench.ts';
import { documentsOf } from '../../../bench/frame/document.ts';
import { differences, goalText, isReached, ratios, valueText } from '../../../bench/frame/goals.ts';
import { curvePlot, goalPlot } from '../../../bench/frame/plot.ts';
import { joined, type Done, type Run } from '../../../bench/frame/run.ts';
import { resultText } from '../../../bench/frame/text.ts';

const goal = (more: Partial<Goal> = {}): Goal => ({
  id: 'P1',
  what: 'speed',
  values: [0.9, 0.97, 0.99],
  ...more,
});

const machine = { cpu: 'a cpu', cores: 2, memoryGiB: 24, kernel: '6.1', node: 'v26', kubernetes: 'v1.36' };
const done = (name: string, goals: Goal[]): Done => ({
  name,
  title: `title of ${name}`,
  what: 'one with another',
  parameters: { pods: 10 },
  rounds: 3,
  date: '2026-01-01',
  seconds: 7,
  machine,
  load: 0.5,
  found: {
    measured: [
      { contender: 'agent', figure: 'pods/s', values: [1, 3, 2] },
      { contender: 'null mirror', figure: 'pods/s', values: [2, 2, 2] },
      { contender: 'agent', figure: 'sockets', values: [4, 4, 4], digits: 0 },
    ],
    goals,
    curves: [
      {
        title: 'growth',
        x: 'pods',
        y: 'MiB',
        lines: [
          {
            name: 'agent',
            points: [
              [0, 1],
              [10, 3],
            ],
          },
        ],
      },
    ],
  },
});
const run = (...benches: Done[]): Run => ({ version: '0.1.0', date: '2026-01-01', benches });

describe('goals', () => {
  test('are judged by the median of the rounds', () => {
    expect(isReached(goal({ atLeast: 0.95 }))).toBe(true);
    expect(isReached(goal({ atLeast: 0.98 }))).toBe(false);
    expect(isReached(goal({ atMost: 0.96 }))).toBe(false);
    expect(goalText(goal({ atLeast: 0.95 }))).toBe('≥ 0.95');
  });

  test('without a figure are not reached', () => {
    expect(isReached(goal({ values: [Number.NaN], atMost: 1 }))).toBe(false);
    expect(isReached(goal({ values: [], atMost: 1 }))).toBe(false);
  });

  test('show as many digits as it takes to see whether they are reached', () => {
    expect(valueText(goal({ values: [0.9661], atLeast: 0.97 }))).toBe('0.966');
    expect(valueText(goal({ values: [1.0004, 0.5, 1.5], atMost: 1 }))).toBe('1.0004 (0.5000–1.5000)');
    expect(valueText(goal({ values: [0.49], atMost: 0.5, digits: 0 }))).toBe('0');
    expect(valueText(goal({ values: [24.6], atMost: 24.5, digits: 0 }))).toBe('25');
    expect(valueText(goal({ values: [25.4], atMost: 25, digits: 0 }))).toBe('25.4');
    expect(valueText(goal({ values: [0.9661], atLeast: 0.95 }))).toBe('0.97');
    expect(valueText(goal({ values: [Number.NaN], atMost: 1 }))).toBe('NaN (NaN–NaN)');
  });

  test('compare round by round', () => {
    expect(ratios([2, 9], [1, 3])).toEqual([2, 3]);
    expect(differences([2, 9], [1, 3])).toEqual([1, 6]);
  });
});

test('a result has a row for each figure and a column for each contender', () => {
  const text = resultText(done('burst', [goal({ atLeast: 0.95 })]), { pods: 10 });
  expect(text).toMatch(/pods\/s +2\.0 \(1\.0–3\.0\) +2\.0\n/u);
  expect(text).toMatch(/P1 +speed +≥ 0\.95 +0\.97 \(0\.90–0\.99\) +reached/u);
});

test('a result with other parameters says for which ones its goals are meant', () => {
  const found = done('burst', [goal({ atLeast: 0.95 })]);
  const note = 'Goals are meant for the default parameters; here pods is 10 instead of 1000.';
  expect(resultText(found, { pods: 1_000 })).toContain(note);
  expect(resultText(found, { pods: 10 })).not.toContain('Goals are meant');
  expect(resultText(done('burst', []), { pods: 1_000 })).not.toContain('Goals are meant');
});

describe('runs', () => {
  test('are joined; later figures take the place of earlier ones', () => {
    const later = { ...done('a', []), seconds: 9 };
    const both = joined(run(done('a', []), done('b', [])), run(later, done('c', [])));
    expect(both.benches.map(({ name, seconds }) => `${name} ${seconds}`)).toEqual(['a 9', 'b 7', 'c 7']);
  });
});

describe('the document', () => {
  const introduction = 'How to read it.';
  const defaults = new Map([['burst', { pods: 10 }]]);

  test('has figures, goals, and what bounds those that are missed', () => {
    const missed = goal({ id: 'P3', atLeast: 1 });
    const { markdown, plots } = documentsOf({
      run: run(done('burst', [goal({ atLeast: 0.95 }), missed])),
      introduction,
      defaults,
      bounds: new Map([['P3', 'The disk does.\n']]),
    });
    expect(markdown).toContain('1 of 2 are reached; missed: P3.');
    expect(markdown).toContain('| pods/s | 2.0 (1.0–3.0) | 2.0 |');
    expect(markdown).toContain('**What bounds P3.** The disk does.');
    expect([...plots.keys()]).toEqual(['goals.svg', 'burst-1.svg']);
    expect(markdown).toContain('![growth](benchmarks/burst-1.svg)');
  });

  test('names the machine of each benchmark', () => {
    const other = { ...done('idle', []), machine: { ...machine, cpu: 'another' } };
    const of = (...benches: Done[]): string =>
      documentsOf({
        run: run(...benches),
        introduction,
        defaults: new Map([...defaults, ['idle', { pods: 10 }]]),
        bounds: new Map(),
      }).markdown;
    const rest = '24 GiB, Linux 6.1, Node.js v26, Kubernetes v1.36';
    expect(of(done('burst', []))).toContain(`Tributary 0.1.0 on 2 cores (a cpu), ${rest}.`);
    const both = of(done('burst', []), other);
    expect(both).toContain(
      `on 2 machines, of which each section names its own: on 2 cores (a cpu), ${rest}; and on 2 cores (another), ${rest}.`,
    );
    expect(both).toContain('2026-01-01, another, 3 rounds');
  });

  test('says how each benchmark is repeated, when it was measured, and how long that took', () => {
    const old = {
      ...done('burst', [goal({ atLeast: 0.95 })]),
      date: '2025-12-31',
      seconds: 3_660,
      rounds: 1,
    };
    const { markdown } = documentsOf({
      run: run(old, done('idle', [])),
      introduction,
      defaults: new Map([
        ['burst', { pods: 1_000 }],
        ['idle', { pods: 10 }],
      ]),
      bounds: new Map(),
    });
    expect(markdown).toContain('Repeat it: `make bench BENCH=burst ROUNDS=1 SET=pods=10`.');
    expect(markdown).toContain('2025-12-31, a cpu, 1 round, pods 10, 1 h 1 min, load 0.5 before.');
    expect(markdown).toContain(
      'Goals are meant for the default parameters; here pods is 10 instead of 1000.',
    );
    expect(markdown).toContain('Repeat it: `make bench BENCH=idle ROUNDS=3`.');
    expect(markdown).toContain('Measured from 2025-12-31 to 2026-01-01 with');
    expect(markdown).toContain('The 2 benchmarks below took 1 h 1 min together');
  });

  test('names the version before that took part', () => {
    const { found } = done('burst', []);
    const measured = [...found.measured, { contender: 'before', figure: 'pods/s', values: [1, 1, 1] }];
    const both = { ...done('burst', []), before: '0123abcd', found: { ...found, measured } };
    const { markdown } = documentsOf({ run: run(both), introduction, defaults, bounds: new Map() });
    expect(markdown).toContain(
      'Repeat it: `make bench BENCH=burst ROUNDS=3 BEFORE=../before`. Here `before` is commit 0123abcd.',
    );
  });

  test('is refused for a benchmark that there is no longer', () => {
    const parts = { run: run(done('gone', [])), introduction, defaults, bounds: new Map() };
    expect(() => documentsOf(parts)).toThrow('has a benchmark gone, and bench/benches.ts does not');
  });

  test('is refused while nobody says what bounds a missed goal', () => {
    const missed = run(done('burst', [goal({ atLeast: 1 })]));
    expect(() => documentsOf({ run: missed, introduction, defaults, bounds: new Map() })).toThrow(
      'P1 missed: write what bounds it, and what shows that, into bench/bounds/ID.md',
    );
  });
});

describe('plots', () => {
  test('put what is better to the right, whichever way the goal points', () => {
    const at = (one: Goal): number => Number(/<rect x="([\d.]+)"/u.exec(goalPlot([one]))?.[1]);
    const middle = at(goal({ values: [1], atLeast: 1 }));
    expect(at(goal({ values: [1.5], atLeast: 1 }))).toBeGreaterThan(middle);
    expect(at(goal({ values: [0.5], atMost: 1 }))).toBeGreaterThan(middle);
    expect(at(goal({ values: [1.5], atMost: 1 }))).toBeLessThan(middle);
  });

  test('stay within the picture, and take words as words', () => {
    const svg = goalPlot([goal({ what: 'a < b & c', values: [1e9, 0], atLeast: 1 })]);
    expect(svg).toContain('a &lt; b &amp; c');
    for (const [, x] of svg.matchAll(/cx="([^"]+)"/gu)) expect(Number(x)).toBeLessThanOrEqual(690);
  });

  test('draw what grows in proportion as a straight line from zero', () => {
    const lines = [
      {
        name: 'agent',
        points: [
          [0, 0],
          [50, 5],
          [100, 10],
        ] as const,
      },
    ];
    const drawn = /polyline points="([^"]+)"/u.exec(curvePlot({ title: 't', x: 'x', y: 'y', lines }))?.[1];
    const [[x0 = 0, y0 = 0] = [], [x1 = 0, y1 = 0] = [], [x2 = 0, y2 = 0] = []] =
      drawn?.split(' ').map((point) => point.split(',').map(Number)) ?? [];
    expect(x1 - x0).toBeCloseTo(x2 - x1, 0);
    expect(y1 - y0).toBeCloseTo(y2 - y1, 0);
  });
});

test.each([1, 2, 3, 4, 5])('of %i contenders each follows each other equally often', (count) => {
  const all = Array.from({ length: count }, (_, index) => index);
  const rounds = Array.from({ length: count % 2 === 0 ? count : 2 * count }, (_, round) => round + 1);
  const orders = rounds.map((round) => inTurn(all, round));
  for (const order of orders) expect(new Set(order)).toEqual(new Set(all));
  const often = (these: readonly unknown[]): number[] =>
    Array.from(Map.groupBy(these, String).values(), ({ length }) => length);
  const pairs = orders.flatMap((order) => order.slice(1).map((next, index) => `${order[index]} ${next}`));
  const turns = rounds.length / count;
  expect(often(pairs)).toEqual(Array.from({ length: count * (count - 1) }, () => turns));
  expect(often(orders.map(([first]) => first))).toEqual(all.map(() => turns));
});
