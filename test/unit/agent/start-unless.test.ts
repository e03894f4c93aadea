import { expect, test } from '@jest/globals';

import { startUnless } from '../../../src/agent/parts.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { untilAborted } from '../../../src/lib/deadline.ts';
import { type Component, Lifecycle } from '../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../src/lib/log.ts';

/** What a component is given at its start, and whether it has been called off. */
const seen: AbortSignal[] = [];
const endless: Component = {
  name: 'endless',
  start: async (signal) => untilAborted(new Promise<void>(() => undefined), signal),
};
const quick: Component = { name: 'quick', start: (signal) => void seen.push(signal) };
const lifecycleOf = (...components: Component[]): Lifecycle =>
  new Lifecycle(components, { clock: systemClock, log: silentLogger, stopDeadlineMs: 1_000 });
const never = new AbortController().signal;

test('who loses while it starts does not wait for what it can no longer bring about', async () => {
  const lost = new AbortController();
  const starting = startUnless(lost.signal, lifecycleOf(quick, endless), never);
  lost.abort(new Error('somebody else took the lease'));
  await expect(starting).rejects.toThrow('somebody else took the lease');
});

test('who loses before it starts does not start', async () => {
  const lost = AbortSignal.abort(new Error('somebody else took the lease'));
  await expect(startUnless(lost, lifecycleOf(quick), never)).rejects.toThrow('somebody else');
});

test('who loses later is stopped in order, and not called off', async () => {
  const [lost, signal] = [new AbortController(), new AbortController()];
  seen.length = 0;
  await startUnless(lost.signal, lifecycleOf(quick), signal.signal);
  lost.abort(new Error('late'));
  expect(seen.map(({ aborted }) => aborted)).toEqual([false]);
  signal.abort(new Error('the process ends'));
  expect(seen.map(({ aborted }) => aborted)).toEqual([true]);
});
