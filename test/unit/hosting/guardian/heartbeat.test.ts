import { expect, test } from '@jest/globals';
import { Heartbeat } from '../../../../src/hosting/guardian/heartbeat.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const pulse = (mark: string | undefined, seconds = 40): { mark: string | undefined; seconds: number } => ({
  mark,
  seconds,
});

function timer(): { clock: FakeClock; lapse: Heartbeat; moves: string[] } {
  const clock = new FakeClock();
  const moves: string[] = [];
  const lapse: Heartbeat = new Heartbeat(clock, () => moves.push(lapse.state));
  return { clock, lapse, moves };
}

test('who has never renewed is unknown for ever', async () => {
  const { clock, lapse } = timer();
  lapse.heard('a', pulse(undefined));
  await clock.advance(3_600_000);
  expect(lapse.state).toBe('Unknown');
});

test('what is first seen may be old: a full duration is waited for, and a renewal is life', async () => {
  const { clock, lapse, moves } = timer();
  lapse.heard('a', pulse('1'));
  await clock.advance(19_999);
  expect(lapse.state).toBe('Unknown');
  await clock.advance(20_000);
  lapse.heard('a', pulse('1'));
  expect(lapse.state).toBe('Late');
  await clock.advance(1);
  expect(lapse.state).toBe('Away');
  lapse.heard('a', pulse('2'));
  expect(moves).toEqual(['Late', 'Away', 'Present']);
});

test('the newest of several Leases counts', async () => {
  const { clock, lapse, moves } = timer();
  lapse.heard('a', pulse('1'));
  lapse.heard('b', pulse(undefined));
  await clock.advance(30_000);
  lapse.heard('b', pulse('1'));
  expect(lapse.state).toBe('Present');
  await clock.advance(39_999);
  expect(lapse.state).toBe('Late');
  await clock.advance(1);
  expect(moves).toEqual(['Late', 'Present', 'Late', 'Away']);
});

test('who was only late is present at once, and late again after as long', async () => {
  const { clock, lapse, moves } = timer();
  lapse.heard('a', pulse('1'));
  for (const mark of ['2', '3']) {
    await clock.advance(20_000);
    expect(lapse.state).toBe('Late');
    lapse.heard('a', pulse(mark));
    expect(lapse.state).toBe('Present');
  }
  await clock.advance(19_999);
  lapse.heard('a', pulse('4'));
  await clock.advance(19_999);
  expect(moves).toEqual(['Late', 'Present', 'Late', 'Present']);
});

test.each([
  [0, 10_000],
  [-5, 10_000],
  [NaN, 10_000],
  [1e9, 300_000],
])('a Lease of %s seconds is believed for %s ms', async (seconds, ms) => {
  const { clock, lapse } = timer();
  lapse.heard('a', pulse('1', seconds));
  await clock.advance(ms - 1);
  expect(lapse.state).toBe('Late');
  await clock.advance(1);
  expect(lapse.state).toBe('Away');
});
