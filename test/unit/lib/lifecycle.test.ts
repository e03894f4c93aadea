import { getEventListeners } from 'node:events';

import { expect, test } from '@jest/globals';

import { type Component, Lifecycle, subscribing } from '../../../src/lib/lifecycle.ts';
import { Listeners } from '../../../src/lib/listeners.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('a component subscribes when it starts, and ends that when it stops', async () => {
  const listeners = new Listeners<[name: string]>();
  const heard: string[] = [];
  const component = subscribing('triggers', () => [listeners.add((name) => heard.push(name))]);
  expect(component.name).toBe('triggers');
  listeners.tell('before');
  await component.start?.(new AbortController().signal);
  listeners.tell('between');
  await component.stop?.();
  listeners.tell('after');
  expect(heard).toEqual(['between']);
});

test('components that are ready at once start in several turns of the event loop', async () => {
  let now = 0;
  const clock = Object.assign(new FakeClock(), { monotonic: () => now });
  const seen: string[] = [];
  const component = (name: string): Component => ({
    name,
    start: () => {
      seen.push(name);
      now += 10;
    },
  });
  const lifecycle = new Lifecycle(['a', 'b'].map(component), { clock, log: silentLogger, stopDeadlineMs: 1 });
  setImmediate(() => seen.push('others'));
  await lifecycle.start(new AbortController().signal);
  expect(seen).toEqual(['a', 'others', 'b']);
});

test('what has stopped is held by no signal that outlives it', async () => {
  const { signal } = new AbortController();
  const seen: AbortSignal[] = [];
  const component: Component = { name: 'a', start: (given) => void seen.push(given) };
  const options = { clock: new FakeClock(), log: silentLogger, stopDeadlineMs: 1 };
  const lifecycle = new Lifecycle([component], options);
  await lifecycle.start(signal);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  await lifecycle.stop();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  expect(seen.map(({ aborted }) => aborted)).toEqual([true]);
});
