import { expect, test } from '@jest/globals';
import { CONDITION_STATUS_CUT } from '../../../../src/api/names.ts';
import type { Pod, PodStatus } from '../../../../src/api/wire.ts';
import { sameStatus } from '../../../../src/provider/forge/same-status.ts';
import { forgeStatus } from '../../../../src/provider/forge/status.ts';
import { mostStatusBytes, sizedStatus, statusBytes } from '../../../../src/provider/forge/status-size.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING } from '../support/pods.ts';

const shown = (home: Pod, status: object): PodStatus =>
  forgeStatus(home, remotePod(home, { status }), CONTEXT, NOW);
const cutOf = (status: PodStatus): object | undefined =>
  status.conditions?.find(({ type }) => type === CONDITION_STATUS_CUT);

test('an honest status is shown as it is', () => {
  const home = homePod();
  expect(cutOf(shown(home, RUNNING))).toBeUndefined();
  expect(sizedStatus(home, RUNNING)).toEqual({ status: RUNNING, isCut: false });
});

test.each<[string, object]>([
  ['a message', { message: 'x'.repeat(1_000_000) }],
  [
    'conditions',
    {
      conditions: Array.from({ length: 64 }, (_none, n) => ({
        type: `T${n}`,
        status: 'True',
        message: 'x'.repeat(32_000),
      })),
    },
  ],
  [
    'fields that nobody knows',
    Object.fromEntries(Array.from({ length: 64 }, (_none, n) => [`f${n}`, 'x'.repeat(32_000)])),
  ],
  [
    'lists within lists',
    { deep: Array.from({ length: 64 }, () => Array.from({ length: 64 }, () => 'x'.repeat(4_000))) },
  ],
  [
    'a container',
    {
      containerStatuses: [
        {
          name: 'main',
          ready: true,
          restartCount: 1,
          image: 'x'.repeat(32_000),
          imageID: 'x'.repeat(32_000),
          state: { waiting: { reason: 'x'.repeat(32_000), message: 'x'.repeat(32_000) } },
          lastState: { terminated: { exitCode: 1, message: 'x'.repeat(32_000) } },
          resources: {
            requests: Object.fromEntries(
              Array.from({ length: 64 }, (_none, n) => [`r${n}`, 'x'.repeat(4_000)]),
            ),
          },
        },
      ],
    },
  ],
])('%s of any size are cut', (_what, status) => {
  const home = homePod();
  const forged = shown(home, { ...RUNNING, ...status });
  // What home has of its own comes on top.
  expect(statusBytes(forged)).toBeLessThan(mostStatusBytes(home) + 2_048);
  expect(forged.phase).toBe('Running');
});

test('what is cut in sum says so, and looks the same the next time', () => {
  const home = homePod();
  const conditions = Array.from({ length: 64 }, (_none, n) => ({
    type: `T${n}`,
    status: 'True',
    message: 'x'.repeat(32_000),
  }));
  const status = { ...RUNNING, ...Object.fromEntries(conditions.map((one) => [one.type, one])) };
  const first = shown(home, status);
  expect(cutOf(first)).toMatchObject({ status: 'True', reason: 'StatusTooLarge' });
  const again = shown({ ...home, status: first }, status);
  expect(sameStatus(again, first)).toBe(true);
  expect(cutOf(shown({ ...home, status: first }, RUNNING))).toBeUndefined();
});

test('conditions of ever new types do not add up', () => {
  let home = homePod();
  for (let round = 0; round < 50; round++) {
    const conditions = Array.from({ length: 8 }, (_none, n) => ({
      type: `Round${round}Type${n}`,
      status: 'True',
      message: 'x'.repeat(4_000),
    }));
    home = { ...home, status: shown(home, { ...RUNNING, conditions }) };
  }
  expect(home.status?.conditions?.length).toBeLessThan(20);
  expect(statusBytes(home.status ?? {})).toBeLessThan(16 * 1024);
});

test('nothing in it is obeyed by a terminal, and half a character is none', () => {
  const home = homePod();
  const { message, reason, conditions } = shown(home, {
    ...RUNNING,
    reason: 'Bad\u001b[2J\nReason',
    message: 'one\ntwo\tthree\u001b[31m\u009b\u202e\u2066\ud800end',
    conditions: [{ type: 'Ready', status: 'True', reason: 'x\u0007', message: '\u007f' }],
  });
  expect(reason).toBe('Bad [2J Reason');
  expect(message).toBe('one\ntwo\tthree [31m   \ufffdend');
  expect(conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ reason: 'x', message: ' ' });
});
