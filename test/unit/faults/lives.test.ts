import { expect, test } from '@jest/globals';

import { bodyChanges, endDifferences, endFaults } from '../../../faults/auditor/checks/lives.ts';
import type { Run } from '../../../faults/auditor/history.ts';
import { body, GONE, home, LISTED, runOf } from './support/run.ts';

const found = (run: Run): string[] =>
  [...endFaults(run), ...endDifferences(run), ...bodyChanges(run)].map(({ invariant }) => invariant);

const ENDED = { phase: 'Succeeded' };
const LOST = { phase: 'Failed', reason: 'RemotePodLost' };

const runs: readonly [what: string, run: Run, expected: string[]][] = [
  ['both run', runOf([home(1, 'h')], [body(2, 'b of h')]), []],
  ['both end', runOf([home(1, 'h'), home(4, 'h', ENDED)], [body(2, 'b of h'), body(3, 'b of h', ENDED)]), []],
  ['an ended body runs again', runOf([home(1, 'h')], [body(2, 'b of h', ENDED), body(3, 'b of h')]), ['I3']],
  [
    'an old state of it, after a restore',
    runOf([home(1, 'h')], [body(2, 'b of h', ENDED), body(3, 'b of h', {}, LISTED)], { isRestored: 'milan' }),
    [],
  ],
  [
    'an ended home pod runs again',
    runOf([home(1, 'h', ENDED), home(2, 'h')], [body(1, 'b of h', {})]),
    ['I3'],
  ],
  [
    'a body begins long after the end at home',
    runOf(
      [home(1, 'h', ENDED)],
      [body(2, 'b of h', { phase: 'Pending' }), body(9, 'b of h'), body(10, 'b of h', ENDED)],
    ),
    ['I3'],
  ],
  [
    'it may have begun while nobody could look',
    runOf([home(1, 'h', ENDED)], [body(9, 'b of h'), body(10, 'b of h', ENDED)], {
      absences: [{ from: 2, to: 8, isGap: true }],
    }),
    [],
  ],
  ['a body runs on though home shows an end', runOf([home(3, 'h', ENDED)], [body(2, 'b of h')]), ['I3']],
  ['a restart', runOf([home(1, 'h')], [body(2, 'b of h'), body(3, 'b of h', { restarts: 1 })]), ['I5']],
  [
    'another container',
    runOf([home(1, 'h')], [body(2, 'b of h', { id: 'a' }), body(3, 'b of h', { id: 'b' })]),
    ['I5'],
  ],
  [
    'home changed its spec',
    runOf(
      [home(1, 'h'), home(3, 'h', { generation: 2 })],
      [body(2, 'b of h'), body(4, 'b of h', { restarts: 1 })],
    ),
    [],
  ],
  [
    'announced',
    runOf([home(1, 'h')], [body(2, 'b of h'), body(3, 'b of h', { restarts: 1 })], { lost: ['b'] }),
    [],
  ],
  [
    'deleted by nobody at home',
    runOf([home(1, 'h')], [body(2, 'b of h'), body(3, 'b of h', { isEnding: true })]),
    ['I5'],
  ],
  ['gone', runOf([home(1, 'h')], [body(2, 'b of h'), body(3, 'b of h', {}, GONE)]), ['I5']],
  [
    'gone, and home says that it is lost',
    runOf([home(1, 'h'), home(4, 'h', LOST)], [body(2, 'b of h'), body(3, 'b of h', {}, GONE)]),
    ['I5'],
  ],
  [
    'home asked, and its watch told it a little later',
    runOf(
      [home(1, 'h'), home(4, 'h', { isEnding: true })],
      [body(2, 'b of h'), body(3, 'b of h', { isEnding: true })],
    ),
    [],
  ],
  [
    'home asked too late',
    runOf(
      [home(1, 'h'), home(9, 'h', { isEnding: true })],
      [body(2, 'b of h'), body(3, 'b of h', { isEnding: true })],
    ),
    ['I5'],
  ],
  [
    'it never ran',
    runOf(
      [home(1, 'h')],
      [body(2, 'b of h', { phase: 'Pending' }), body(3, 'b of h', { phase: 'Pending' }, GONE)],
    ),
    [],
  ],
  [
    'it had ended',
    runOf(
      [home(1, 'h', ENDED)],
      [body(1, 'b of h'), body(2, 'b of h', ENDED), body(3, 'b of h', ENDED, GONE)],
    ),
    [],
  ],
  [
    'its store was put back',
    runOf([home(1, 'h')], [body(2, 'b of h'), body(3, 'b of h', {}, { isGone: true, by: 'list' })], {
      isRestored: 'milan',
    }),
    [],
  ],
];

test.each(runs)('%s', (_what, run, expected) => {
  expect(found(run)).toEqual(expected);
});
