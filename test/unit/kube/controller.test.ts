import { afterEach, expect, test } from '@jest/globals';
import { Controller, type ControllerOptions } from '../../../src/kube/controller.ts';
import { type ErrorCode, TributaryError } from '../../../src/lib/errors.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

interface World {
  controller: Controller;
  clock: FakeClock;
  /** Keys in the order of their runs. */
  runs: string[];
  lines: { level: string; message: string; key?: string; error?: string }[];
  outcomes: string[];
}

const controllers: Controller[] = [];

afterEach(async () => {
  for (const controller of controllers.splice(0)) await controller.stop();
});

async function world(
  reconcile: (key: string, run: number) => ReturnType<ControllerOptions['reconcile']>,
  concurrency = 1,
): Promise<World> {
  const clock = new FakeClock();
  const runs: string[] = [];
  const lines: World['lines'] = [];
  const outcomes: string[] = [];
  const controller = new Controller({
    name: 'test',
    concurrency,
    clock,
    random: () => 0.5,
    log: createLogger({
      level: 'info',
      now: () => 0,
      write: (line) => lines.push(JSON.parse(line) as World['lines'][number]),
    }),
    metrics: { reconciled: (_name, outcome) => outcomes.push(outcome), depth: () => undefined },
    reconcile: (key) => reconcile(key, runs.push(key)),
  });
  controllers.push(controller);
  controller.start(new AbortController().signal);
  return { controller, clock, runs, lines, outcomes };
}

const failing = (code: ErrorCode, details = {}): Promise<never> =>
  Promise.reject(new TributaryError(code, `it is ${code}`, details));

test('a run that asks to be run again is', async () => {
  const { controller, clock, runs, outcomes } = await world((_key, run) =>
    Promise.resolve(run === 1 ? { requeueAfterMs: 1000 } : undefined),
  );
  controller.add('a');
  await clock.advance(999);
  expect(runs).toEqual(['a']);
  await clock.advance(1);
  expect(runs).toEqual(['a', 'a']);
  expect(outcomes).toEqual(['requeue', 'ok']);
});

test.each<{ code: ErrorCode; details?: object; withinMs: number; outcome: string; levels: string[] }>([
  { code: 'Conflict', withinMs: 100, outcome: 'conflict', levels: [] },
  { code: 'Unavailable', withinMs: 100, outcome: 'error', levels: ['warn'] },
  { code: 'Unreachable', withinMs: 100, outcome: 'error', levels: ['warn'] },
  { code: 'NotFound', withinMs: 100, outcome: 'error', levels: ['warn'] },
  {
    code: 'TooManyRequests',
    details: { retryAfterMs: 4000 },
    withinMs: 5000,
    outcome: 'error',
    levels: ['warn'],
  },
  { code: 'Invalid', withinMs: 300000, outcome: 'terminal', levels: ['warn'] },
])('$code is retried within its time and not much before', async (row) => {
  const { code, details = {}, withinMs, outcome, levels } = row;
  const { controller, clock, runs, lines, outcomes } = await world((_key, run) =>
    run === 1 ? failing(code, details) : Promise.resolve(),
  );
  controller.add('a');
  await clock.advance(withinMs * 0.4);
  expect(runs).toHaveLength(1);
  await clock.advance(withinMs * 0.6);
  expect(runs).toHaveLength(2);
  expect(outcomes).toEqual([outcome, 'ok']);
  expect(lines.filter(({ message }) => message === 'reconcile failed').map(({ level }) => level)).toEqual(
    levels,
  );
});

test('a server that names no time to wait, time and again, is asked ever more rarely', async () => {
  const { controller, clock, runs } = await world(async (_key, run) =>
    run > 50 ? undefined : failing('TooManyRequests', { retryAfterMs: 0 }),
  );
  controller.add('a');
  await clock.advance(60_000);
  expect(runs.length).toBeGreaterThan(5);
  expect(runs.length).toBeLessThan(15);
});

test('an error that lasts is logged once, another once more, and its end too', async () => {
  let error = 'first';
  const { controller, clock, lines } = await world(() =>
    error === '' ? Promise.resolve() : Promise.reject(new TributaryError('Unavailable', error)),
  );
  controller.add('a');
  await clock.advance(600_000);
  error = 'second';
  await clock.advance(600_000);
  error = '';
  await clock.advance(600_000);
  expect(lines.map(({ message, error: text }) => text ?? message)).toEqual([
    'first',
    'second',
    'reconciled again',
  ]);
});

test('a bug is an error with its place, and is retried', async () => {
  const { controller, clock, lines, runs } = await world((_key, run) =>
    run === 1 ? Promise.reject(new TypeError('undefined is not a function')) : Promise.resolve(),
  );
  controller.add('a');
  await clock.advance(1000);
  expect(runs).toHaveLength(2);
  expect(lines[0]).toMatchObject({ level: 'error', stack: expect.stringContaining('controller.test.ts') });
});

test('retries of a lasting error slow down to a minute', async () => {
  const { controller, clock, runs } = await world(() => failing('Unavailable'));
  controller.add('a');
  await clock.advance(3_600_000);
  // Half the cap of 60 s at this source of chance: 120 an hour, and a few at the beginning.
  expect(runs.length).toBeGreaterThan(115);
  expect(runs.length).toBeLessThan(135);
});

test('as many keys at a time as permitted, and never one twice', async () => {
  const running = new Map<string, () => void>();
  let most = 0;
  const { controller, clock } = await world(async (key) => {
    expect(running.has(key)).toBe(false);
    const { promise, resolve } = Promise.withResolvers<void>();
    running.set(key, resolve);
    most = Math.max(most, running.size);
    await promise;
    running.delete(key);
  }, 3);
  for (const key of ['a', 'b', 'c', 'd', 'e']) controller.add(key);
  await settle();
  controller.add('a');
  expect([...running.keys()]).toEqual(['a', 'b', 'c']);
  expect(controller.load).toMatchObject({ waiting: 2, running: 3 });
  while (running.size > 0) {
    for (const release of running.values()) release();
    await clock.advance(0);
  }
  expect(most).toBe(3);
});

test('stop waits for what runs and begins nothing new', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { controller, runs } = await world(() => promise);
  controller.add('a');
  controller.add('b');
  await settle();
  let stopped = false;
  const stopping = controller.stop().then(() => (stopped = true));
  await settle();
  expect(stopped).toBe(false);
  resolve();
  await stopping;
  expect(runs).toEqual(['a']);
});

test('abandon fires the signal of what runs', async () => {
  const clock = new FakeClock();
  let reason: unknown;
  const controller = new Controller({
    name: 'test',
    concurrency: 1,
    clock,
    log: createLogger({ level: 'error', now: () => 0, write: () => undefined }),
    reconcile: async (_key, { signal }) => {
      await clock.sleep(1e6, signal).catch((error: unknown) => (reason = error));
    },
  });
  controller.start(new AbortController().signal);
  controller.add('a');
  await settle();
  controller.abandon(new Error('lost'));
  await controller.stop();
  expect(reason).toMatchObject({ message: 'lost' });
});
