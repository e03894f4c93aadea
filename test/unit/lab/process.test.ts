import { spawn } from 'node:child_process';

import { expect, test } from '@jest/globals';

import {
  isAlive,
  MARK,
  markedProcesses,
  parseStat,
  processAt,
  signalProcess,
  waitGone,
} from '../../../lab/process.ts';

const stat = (state: string, threads = 1): string =>
  `7 (a) b) c) ${state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 ${threads} 0 4711 0 0`;

test('a start time is found behind a name with brackets', () => {
  expect(parseStat(7, stat('S'))).toEqual({ pid: 7, startTime: '4711' });
});

test.each(['Z', 'X'])('state %s is not alive', (state) => {
  expect(parseStat(7, stat(state))).toBeUndefined();
});

test('a zombie of which threads are left is alive: they may still hold its ports', () => {
  expect(parseStat(7, stat('Z', 2))).toEqual({ pid: 7, startTime: '4711' });
});

test('this process is alive, one with its pid and another start is not and gets no signal', () => {
  const self = processAt(process.pid);
  expect(self && isAlive(self)).toBe(true);
  const other = { pid: process.pid, startTime: '1' };
  expect(isAlive(other)).toBe(false);
  expect(signalProcess(other, 'SIGKILL')).toBe(false);
});

test('processes are found by their mark and waited for', async () => {
  const mark = `/nowhere/${process.pid}`;
  const child = spawn('sleep', ['60'], { env: { ...process.env, [MARK]: mark }, stdio: 'ignore' });
  await new Promise((started) => child.once('spawn', started));
  const found = markedProcesses(mark);
  expect(found.map(({ pid }) => pid)).toEqual([child.pid]);
  expect(await waitGone(found, 1)).toBe(false);
  for (const process of found) signalProcess(process, 'SIGKILL');
  expect(await waitGone(found, 5_000)).toBe(true);
  expect(markedProcesses(mark)).toEqual([]);
});
