import { expect, test } from '@jest/globals';

import { shownDifferences, shownFaults } from '../../../faults/auditor/checks/shown.ts';
import type { Run } from '../../../faults/auditor/history.ts';
import { body, GONE, home, LISTED, runOf, type Shape } from './support/run.ts';

const found = (run: Run): string[] =>
  [...shownFaults(run), ...shownDifferences(run)].map(({ invariant }) => invariant);

const PENDING: Shape = { phase: 'Pending' };
const begun = home(1, 'h', PENDING);
const pending = body(2, 'b of h', PENDING);
const running = body(3, 'b of h');
const LOST: Shape = { phase: 'Failed', reason: 'RemotePodLost' };

const runs: readonly [what: string, run: Run, expected: string[]][] = [
  ['home follows', runOf([begun, home(4, 'h')], [pending, running]), []],
  ['home has not followed yet', runOf([begun], [pending, running]), ['I7']],
  ['home shows what never was', runOf([begun, home(4, 'h'), home(5, 'h', PENDING)], [pending]), ['I4']],
  ['home shows it much too early', runOf([begun, home(4, 'h')], [pending, body(9, 'b of h')]), ['I4']],
  ['two watches are a little apart', runOf([begun, home(4, 'h')], [pending, body(5, 'b of h')]), []],
  [
    'home goes back',
    runOf(
      [begun, home(5, 'h', { restarts: 1 }), home(6, 'h'), home(7, 'h', { restarts: 1 })],
      [pending, running, body(4, 'b of h', { restarts: 1 })],
    ),
    ['I4'],
  ],
  [
    'the body itself went there and back',
    runOf(
      [begun, home(4, 'h'), home(6, 'h', { isReady: false }), home(8, 'h')],
      [pending, running, body(5, 'b of h', { isReady: false }), body(7, 'b of h')],
    ),
    [],
  ],
  [
    'home skips states',
    runOf(
      [begun, home(9, 'h', { restarts: 2 })],
      [pending, running, body(4, 'b of h', { restarts: 1 }), body(5, 'b of h', { restarts: 2 })],
    ),
    [],
  ],
  [
    'another container id',
    runOf([begun, home(4, 'h', { id: 'x' })], [pending, body(3, 'b of h', { id: 'y' })]),
    ['I4', 'I7'],
  ],
  [
    'home says that a ready pod is not ready',
    runOf([begun, home(4, 'h'), home(5, 'h', { isReady: false })], [pending, running]),
    [],
  ],
  [
    'ready, and its body is not',
    runOf([begun, home(4, 'h')], [pending, body(3, 'b of h', { isReady: false })]),
    ['I4', 'I7'],
  ],
  [
    'lost',
    runOf([begun, home(4, 'h'), home(6, 'h', LOST)], [pending, running, body(5, 'b of h', {}, GONE)]),
    [],
  ],
  [
    'said to be lost, and goes on',
    runOf([begun, home(4, 'h'), home(6, 'h', LOST)], [pending, running]),
    ['I4', 'I7'],
  ],
  [
    'failed for no reason',
    runOf([begun, home(4, 'h'), home(6, 'h', { phase: 'Failed' })], [pending, running]),
    ['I4', 'I7'],
  ],
  [
    'ended by its deletion',
    runOf(
      [begun, home(4, 'h'), home(6, 'h', { phase: 'Failed', isEnding: true })],
      [pending, running, body(5, 'b of h', {}, GONE)],
    ),
    [],
  ],
  ['back to Pending', runOf([begun, home(4, 'h'), home(5, 'h', PENDING)], [running]), ['I4', 'I7']],
  [
    'it may have been so in a gap',
    runOf(
      [begun, home(4, 'h', { restarts: 1 }), home(9, 'h', { restarts: 2 })],
      [pending, body(6, 'b of h', { restarts: 2 }, LISTED)],
      {
        absences: [{ from: 3, to: 6, isGap: true }],
      },
    ),
    [],
  ],
  [
    'an old state at home, after a restore of home',
    runOf([begun, home(4, 'h'), home(5, 'h', PENDING, LISTED), home(6, 'h')], [pending, running], {
      isRestored: 'home',
    }),
    [],
  ],
  [
    'made anew: restarts are added up',
    runOf(
      [begun, home(4, 'h'), home(8, 'h', { restarts: 3 })],
      [
        pending,
        running,
        body(5, 'b of h', {}, GONE),
        body(7, 'c of h', {
          annotations: { 'tributary.dev/recreated': '{"count":1,"restarts":{"main":3}}' },
        }),
      ],
    ),
    [],
  ],
];

test.each(runs)('%s', (_what, run, expected) => {
  expect(found(run)).toEqual(expected);
});

test('what is said names the value, what the body was, and the times', () => {
  const run = runOf([begun, home(4, 'h')], [pending]);
  expect(shownFaults(run)[0]?.what).toBe(
    'home pod shop/h (uid h) shows at 00:00:04.000 Running, ready [main running, 0 restarts], which its remote pod never was; that was Pending, not ready',
  );
});
