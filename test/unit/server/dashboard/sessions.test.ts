import { expect, test } from '@jest/globals';

import { silentLogger } from '../../../../src/lib/log.ts';
import { SignInCodes } from '../../../../src/server/dashboard/codes.ts';
import type { DashboardVisitor } from '../../../../src/server/dashboard/ports.ts';
import { Sessions } from '../../../../src/server/dashboard/sessions.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const limits = { sessions: 2, idleMs: 1000, totalMs: 5000 };

function setUp(): {
  clock: FakeClock;
  sessions: Sessions;
  closed: string[];
  visitor: (user: string) => DashboardVisitor;
} {
  const clock = new FakeClock();
  const closed: string[] = [];
  const visitor = (user: string): DashboardVisitor => ({
    user,
    model: () => ({}),
    review: async () => Promise.resolve(),
    act: async () => Promise.resolve(''),
    onChange: () => () => undefined,
    close: async () => {
      closed.push(user);
      return Promise.resolve();
    },
  });
  return { clock, closed, visitor, sessions: new Sessions({ clock, log: silentLogger, limits }) };
}

test('a session is found by its ID, and by nothing else', () => {
  const { sessions, visitor } = setUp();
  const id = sessions.begin(visitor('ann'));
  expect(id).toMatch(/^[\w-]{43}$/);
  expect(sessions.find(id)?.visitor.user).toBe('ann');
  for (const other of [undefined, '', `${id}x`, id.slice(1)]) expect(sessions.find(other)).toBeUndefined();
});

test('one that is idle ends, and one with an open stream does not, until its whole time is over', async () => {
  const { clock, sessions, closed, visitor } = setUp();
  const [ann, bob] = [sessions.begin(visitor('ann')), sessions.begin(visitor('bob'))];
  const bobs = sessions.find(bob);
  if (bobs !== undefined) sessions.streaming(bobs);
  await clock.advance(1000);
  expect(sessions.find(ann)).toBeUndefined();
  expect(sessions.find(bob)).toBe(bobs);
  await clock.advance(4000);
  expect(sessions.find(bob)).toBeUndefined();
  expect(bobs?.ended.aborted).toBe(true);
  expect(closed).toEqual(['ann', 'bob']);
});

test('who comes when all places are taken gets that of the quietest', async () => {
  const { clock, sessions, closed, visitor } = setUp();
  const ann = sessions.begin(visitor('ann'));
  await clock.advance(10);
  sessions.begin(visitor('bob'));
  await clock.advance(10);
  sessions.find(ann);
  sessions.begin(visitor('eve'));
  expect(closed).toEqual(['bob']);
  expect(sessions.size).toBe(2);
});

test('a session has so many streams, and no more', () => {
  const { sessions, visitor } = setUp();
  const session = sessions.find(sessions.begin(visitor('ann')));
  if (session === undefined) throw new Error('no session');
  const ends = Array.from({ length: 6 }, () => sessions.streaming(session));
  expect(sessions.streaming(session)).toBeUndefined();
  ends[0]?.();
  expect(sessions.streaming(session)).toBeDefined();
});

test('a code gives its token once, within a minute', async () => {
  const clock = new FakeClock();
  const codes = new SignInCodes(clock);
  const [first, second] = [codes.make('a'), codes.make('b')];
  expect(codes.take(first)).toBe('a');
  expect(codes.take(first)).toBeUndefined();
  await clock.advance(60_000);
  expect(codes.take(second)).toBeUndefined();
});

test('only the newest codes are kept', () => {
  const codes = new SignInCodes(new FakeClock());
  const [first, ...others] = Array.from({ length: 9 }, (_, i) => codes.make(`t${i}`));
  expect(codes.take(first ?? '')).toBeUndefined();
  expect(codes.take(others[7] ?? '')).toBe('t8');
});
