import { createHook } from 'node:async_hooks';

import { afterEach, expect, test } from '@jest/globals';
import { Counter, Registry } from 'prom-client';
import { silentLogger } from '../../../src/lib/log.ts';
import { OpsServer } from '../../../src/server/ops.ts';
import type { ComponentStates } from '../../../src/server/ops.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let server: OpsServer;
afterEach(async () => server.stop());

const states: { now: ComponentStates } = { now: { order: ['a', 'b', 'c'], starting: undefined } };
const wrong: { live: string | undefined; ready: string | undefined } = { live: undefined, ready: undefined };

let clock: FakeClock;

async function start(): Promise<void> {
  clock = new FakeClock();
  const registry = new Registry();
  new Counter({ name: 'things_total', help: 'Things.', registers: [registry] }).inc(2);
  server = new OpsServer({
    host: '127.0.0.1',
    port: 0,
    registry,
    live: [{ name: 'loop', check: () => wrong.live }],
    ready: [
      { name: 'home', check: () => wrong.ready },
      {
        name: 'broken',
        check: () => {
          if (wrong.ready !== undefined) throw new Error('cannot tell');
          return undefined;
        },
      },
    ],
    components: () => states.now,
    waiting: 'c',
    log: silentLogger,
    clock,
  });
  await server.start(new AbortController().signal);
}

async function ask(path: string, method = 'GET'): Promise<[number, string]> {
  const response = await fetch(`http://127.0.0.1:${server.port ?? 0}${path}`, { method });
  return [response.status, await response.text()];
}

test('all is well', async () => {
  await start();
  for (const path of ['/healthz', '/livez', '/readyz']) expect(await ask(path)).toEqual([200, 'ok\n']);
  expect((await ask('/metrics'))[1]).toContain('things_total 2');
  expect(await ask('/nothing')).toEqual([404, 'not found\n']);
  expect(await ask('/healthz', 'POST')).toEqual([405, 'GET only\n']);
});

test('what fails is listed', async () => {
  await start();
  wrong.ready = 'not synced';
  states.now = { order: ['a', 'b', 'c'], starting: 'b' };
  expect(await ask('/readyz')).toEqual([503, 'startup: starting b\nhome: not synced\nbroken: cannot tell\n']);
  expect(await ask('/livez')).toEqual([200, 'ok\n']);
  expect(JSON.parse((await ask('/debug/components'))[1])).toEqual({
    components: [
      { name: 'a', state: 'started' },
      { name: 'b', state: 'starting' },
      { name: 'c', state: 'waiting' },
    ],
  });
  wrong.live = 'stuck';
  expect(await ask('/livez')).toEqual([503, 'loop: stuck\n']);
});

test('one that waits to lead is ready', async () => {
  await start();
  wrong.live = undefined;
  wrong.ready = undefined;
  states.now = { order: ['a', 'b', 'c', 'd'], starting: 'c' };
  expect(await ask('/readyz')).toEqual([200, 'ok\n']);
  states.now = { order: ['a', 'b', 'c', 'd'], starting: 'd' };
  expect(await ask('/readyz')).toEqual([503, 'startup: starting d\n']);
});

test('whoever asks about the start hears of it until it is over, but for a minute only', async () => {
  await start();
  wrong.live = undefined;
  states.now = { order: ['a', 'b', 'c'], starting: 'b' };
  expect(await ask('/livez?start')).toEqual([503, 'startup: starting b\n']);
  expect(await ask('/livez')).toEqual([200, 'ok\n']);
  await clock.advance(59_000);
  expect(await ask('/livez?start')).toEqual([503, 'startup: starting b\n']);
  await clock.advance(1_000);
  expect(await ask('/livez?start')).toEqual([200, 'ok\n']);
  expect(await ask('/readyz')).toEqual([503, 'startup: starting b\n']);
  wrong.live = 'stuck';
  expect(await ask('/livez?start')).toEqual([503, 'loop: stuck\n']);
  wrong.live = undefined;
  states.now = { order: ['a', 'b', 'c'], starting: undefined };
});

test('an answer says when it was given, and leaves no timer that wakes the process', async () => {
  await start();
  const timers: string[] = [];
  const hook = createHook({
    init: (_id, type) => {
      const stack = type === 'Timeout' ? (new Error().stack ?? '') : '';
      if (stack.includes('utcDate')) timers.push(stack);
    },
  }).enable();
  const response = await fetch(`http://127.0.0.1:${server.port ?? 0}/readyz`);
  hook.disable();
  expect(Math.abs(Date.parse(response.headers.get('date') ?? '') - Date.now())).toBeLessThan(60_000);
  expect(timers).toEqual([]);
});

test('a port that is taken fails the start', async () => {
  await start();
  const second = new OpsServer({
    host: '127.0.0.1',
    port: server.port ?? 0,
    registry: new Registry(),
    live: [],
    ready: [],
    components: () => states.now,
    log: silentLogger,
  });
  await expect(second.start(new AbortController().signal)).rejects.toMatchObject({ code: 'Conflict' });
  expect(second.port).toBeUndefined();
});
