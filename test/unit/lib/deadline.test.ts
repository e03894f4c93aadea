import { expect, test } from '@jest/globals';
import { abortError, startDeadline, untilAborted } from '../../../src/lib/deadline.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('fires when time is up, with an error that says what was waited for', async () => {
  const clock = new FakeClock();
  const deadline = startDeadline(clock, 100, 'get pod a');
  await clock.advance(99);
  expect(deadline.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(abortError(deadline.signal)).toMatchObject({
    code: 'Unreachable',
    message: 'get pod a: no answer within 100 ms',
  });
});

test('fires with its parent, and leaves nothing behind when disposed of', async () => {
  const clock = new FakeClock();
  const parent = new AbortController();
  const deadline = startDeadline(clock, 100, 'x', parent.signal);
  const disposed = startDeadline(clock, 100, 'y', parent.signal);
  disposed[Symbol.dispose]();
  parent.abort(new Error('stop'));
  expect(abortError(deadline.signal)).toMatchObject({ code: 'Aborted', cause: { message: 'stop' } });
  expect(disposed.signal.aborted).toBe(false);
  deadline[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

test('a parent that has fired already counts', () => {
  const deadline = startDeadline(new FakeClock(), 100, 'x', AbortSignal.abort(new Error('over')));
  expect(deadline.signal.aborted).toBe(true);
});

test('without its timer only the parent counts', async () => {
  const clock = new FakeClock();
  const deadline = startDeadline(clock, 100, 'x');
  deadline.stopTimer();
  await clock.advance(1000);
  expect(deadline.signal.aborted).toBe(false);
});

test('untilAborted leaves shared work to go on', async () => {
  const work = Promise.withResolvers<string>();
  const abort = new AbortController();
  const waiting = untilAborted(work.promise, abort.signal);
  abort.abort(new Error('enough'));
  await expect(waiting).rejects.toMatchObject({ code: 'Aborted' });
  work.resolve('done');
  await expect(untilAborted(work.promise, new AbortController().signal)).resolves.toBe('done');
});
