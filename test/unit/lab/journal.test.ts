import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { Journal, replay, type JournalEntry } from '../../../lab/journal.ts';
import { knownDaemons } from '../../../lab/known-daemons.ts';

const lines = (...entries: JournalEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
const etcd = { name: 'home/etcd', command: ['etcd'], logFile: '/log' } as const;

describe('replay', () => {
  test('of nothing is nothing', () => {
    expect(replay('')).toMatchObject({ ready: false, netns: [], processes: [] });
    expect(replay('').spec).toBeUndefined();
  });

  test('names each thing once', () => {
    const state = replay(
      lines(
        { kind: 'directory', path: '/run/x' },
        { kind: 'netns', name: 'tl-x-ul' },
        { kind: 'netns', name: 'tl-x-ul' },
        { kind: 'link', name: 'tl-x' },
        { kind: 'cgroup', name: 'tl-x-home-1' },
        { kind: 'ready' },
      ),
    );
    expect(state).toMatchObject({
      directories: ['/run/x'],
      netns: ['tl-x-ul'],
      links: ['tl-x'],
      cgroups: ['tl-x-home-1'],
      ready: true,
    });
  });

  test('what lost its power and got it back is on', () => {
    const power = (name: string, on: boolean): JournalEntry => ({ kind: 'power', name, on });
    const state = replay(lines(power('home-1', false), power('home-2', false), power('home-1', true)));
    expect([...state.off]).toEqual(['home-2']);
  });

  test('a daemon that was announced and never started has no process', () => {
    expect(replay(lines({ kind: 'daemon', spec: etcd })).daemons.get('home/etcd')).toEqual({ spec: etcd });
  });

  test('a restarted daemon is its newest process, and both are remembered', () => {
    const [first, second] = [
      { pid: 10, startTime: '1' },
      { pid: 11, startTime: '2' },
    ];
    const state = replay(
      lines(
        { kind: 'daemon', spec: etcd },
        { kind: 'started', name: 'home/etcd', id: first },
        { kind: 'daemon', spec: etcd },
        { kind: 'started', name: 'home/etcd', id: second },
      ),
    );
    expect(state.daemons.get('home/etcd')?.id).toEqual(second);
    expect(state.processes).toEqual([first, second]);
  });

  test('a torn last line is no entry', () => {
    const text = lines({ kind: 'netns', name: 'a' }, { kind: 'netns', name: 'b' });
    expect(replay(text.slice(0, -5)).netns).toEqual(['a']);
    expect(replay(text.slice(0, -1)).netns).toEqual(['a']);
  });
});

describe('Journal', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'journal-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  test('keeps what is appended, in a folder only its owner enters', () => {
    const journal = new Journal(join(directory, 'run'));
    expect(journal.exists()).toBe(false);
    journal.append({ kind: 'netns', name: 'a' });
    new Journal(journal.runDirectory).append({ kind: 'netns', name: 'b' });
    expect(journal.read().netns).toEqual(['a', 'b']);
    expect(readFileSync(join(directory, 'run', 'journal.jsonl'), 'utf8').split('\n')).toHaveLength(3);
  });

  test('knows a daemon whose pid is another process by now as not running', () => {
    const journal = new Journal(directory);
    journal.starting(etcd);
    journal.started('home/etcd', { pid: process.pid, startTime: '0' });
    expect(knownDaemons(journal).get('home/etcd')?.id).toBeUndefined();
  });
});
