import { expect, test } from '@jest/globals';

import { bodyDifferences, bodyFaults } from '../../../faults/auditor/checks/bodies.ts';
import type { Run } from '../../../faults/auditor/history.ts';
import { body, GONE, home, runOf } from './support/run.ts';

const found = (run: Run): string[] =>
  [...bodyDifferences(run), ...bodyFaults(run)].map(({ invariant }) => invariant);

const REFUSED = {
  phase: 'Pending',
  conditions: [{ type: 'tributary.dev/Offloaded', status: 'False', reason: 'ExceededQuota' }],
};
const LOST_BY_LIST = { isGone: true, by: 'list' } as const;

const runs: readonly [what: string, run: Run, expected: string[]][] = [
  ['one pod, one body', runOf([home(1, 'h')], [body(2, 'b of h')]), []],
  ['no body', runOf([home(1, 'h')], []), ['I1']],
  ['its body is gone', runOf([home(1, 'h')], [body(2, 'b of h'), body(3, 'b of h', {}, GONE)]), ['I1']],
  ['refused, and home says so', runOf([home(1, 'h', REFUSED)], []), []],
  [
    'it runs and says that it is refused',
    runOf([home(1, 'h', { ...REFUSED, phase: 'Running' })], []),
    ['I1'],
  ],
  ['on another node', runOf([home(1, 'h', { node: 'other' })], []), []],
  ['in another namespace', runOf([home(1, 'h', { namespace: 'other' })], []), []],
  ['it has ended', runOf([home(1, 'h', { phase: 'Failed' })], []), []],
  ['it is being deleted', runOf([home(1, 'h', { isEnding: true })], []), []],
  ['two bodies', runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'b of h')]), ['I1', 'I1', 'I1']],
  [
    'two for a moment',
    runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'b of h'), body(4, 'a of h', {}, GONE)], {
      lost: ['a'],
    }),
    ['I1'],
  ],
  [
    'one after the other',
    runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'a of h', {}, GONE), body(4, 'b of h')]),
    ['I1'],
  ],
  [
    'one after the other, the first lost, as was said',
    runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'a of h', {}, GONE), body(3, 'b of h')], {
      lost: ['h'],
    }),
    [],
  ],
  [
    'the first went with the store of the provider',
    runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'a of h', {}, LOST_BY_LIST), body(3, 'b of h')], {
      isRestored: 'milan',
    }),
    [],
  ],
  [
    'the first went by an event, though the provider was restored at some time',
    runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'a of h', {}, GONE), body(4, 'b of h')], {
      isRestored: 'milan',
    }),
    ['I1'],
  ],
  ['a body of nobody', runOf([], [body(2, 'b of h')]), ['I2']],
  ['its home pod is gone', runOf([home(1, 'h'), home(3, 'h', {}, GONE)], [body(2, 'b of h')]), ['I2']],
  [
    'both are gone',
    runOf([home(1, 'h'), home(3, 'h', {}, GONE)], [body(2, 'b of h'), body(4, 'b of h', {}, GONE)]),
    [],
  ],
  ['its home pod is elsewhere', runOf([home(1, 'h', { node: 'other' })], [body(2, 'b of h')]), ['I2']],
  [
    'a finished pod keeps its body',
    runOf([home(1, 'h', { phase: 'Succeeded' })], [body(2, 'b of h', { phase: 'Succeeded' })]),
    [],
  ],
];

test.each(runs)('%s', (_what, run, expected) => {
  expect(found(run)).toEqual(expected);
});

test('what is said names both pods and the time', () => {
  const run = runOf([home(1, 'h')], [body(2, 'a of h'), body(3, 'b of h')]);
  expect(bodyFaults(run)[0]?.what).toBe(
    'two remote pods of home pod h at once, from 00:00:03.000 to now: tenant/a (uid a) in milan and tenant/b (uid b) in milan',
  );
});
