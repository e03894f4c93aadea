import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { Daemon, inNamespaces, type DaemonRecord, type DaemonSpec } from '../../../lab/daemon.ts';
import { isAlive, type ProcessId } from '../../../lab/process.ts';

let directory = '';
let daemon: Daemon | undefined;
let events: string[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'daemon-'));
  events = [];
});
afterEach(async () => {
  await daemon?.kill();
  rmSync(directory, { recursive: true });
});

const record: DaemonRecord = {
  get runDirectory() {
    return directory;
  },
  starting: ({ name }: DaemonSpec) => events.push(`starting ${name}`),
  started: (name: string) => events.push(`started ${name}`),
};

function start(script: string): Daemon {
  daemon = Daemon.start(
    { name: 'x/y', command: ['sh', '-c', script], logFile: join(directory, 'log', 'y.log') },
    record,
  );
  return daemon;
}

describe('Daemon', () => {
  test('is written down before and after it starts', () => {
    start('exec sleep 60');
    expect(events).toEqual(['starting x/y', 'started x/y']);
  });

  const isRoot = process.getuid?.() === 0;
  (isRoot ? test : test.skip)('may be told that its timers are not urgent', () => {
    const command: DaemonSpec['command'] = ['sleep', '60'];
    daemon = Daemon.start(
      { name: 'x/y', command, logFile: join(directory, 'y.log'), timerSlackMs: 20 },
      record,
    );
    const slack = readFileSync(`/proc/${daemon.id?.pid}/timerslack_ns`, 'utf8');
    expect(Number(slack)).toBe(20_000_000);
  });

  test('waits until it is ready', async () => {
    const file = join(directory, 'ready');
    await start(`touch ${file}; exec sleep 60`).waitFor('a file', () => existsSync(file), {
      timeoutMs: 5_000,
    });
  });

  test('quotes the end of its log when it dies early', async () => {
    const waiting = start('echo no such disk; exit 3').waitFor('anything', () => false, { timeoutMs: 5_000 });
    await expect(waiting).rejects.toThrow(/x\/y ended before anything; the end of .*y\.log:\nno such disk/);
  });

  test('says what did not come in time', async () => {
    const waiting = start('echo thinking; exec sleep 60').waitFor('an answer', () => false, {
      timeoutMs: 100,
    });
    await expect(waiting).rejects.toThrow('x/y no an answer after 0 s');
  });

  test('stops waiting when told to', async () => {
    const stop = new AbortController();
    const waiting = start('exec sleep 60').waitFor('it', () => false, {
      timeoutMs: 5_000,
      signal: stop.signal,
    });
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow(/enough|aborted/);
  });

  test('restarts as another process, with the same log', async () => {
    const first = start('echo hello; exec sleep 60');
    const before = first.id as ProcessId;
    await first.waitFor('hello', () => first.tail() === 'hello', { timeoutMs: 5_000 });
    await first.restart();
    expect(isAlive(before)).toBe(false);
    expect(first.id?.pid).not.toBe(before.pid);
    await first.waitFor('two', () => first.tail() === 'hello\nhello', { timeoutMs: 5_000 });
    expect(events).toHaveLength(4);
  });

  test('can be frozen, thawed and ended', async () => {
    const frozen = start('exec sleep 60');
    const state = (): string | undefined =>
      /\) (\w)/.exec(readFileSync(`/proc/${frozen.id?.pid}/stat`, 'utf8'))?.[1];
    frozen.stop();
    await frozen.waitFor('T', () => state() === 'T', { timeoutMs: 5_000 });
    frozen.cont();
    await frozen.waitFor('S', () => state() === 'S', { timeoutMs: 5_000 });
    frozen.stop();
    await frozen.terminate();
    expect(frozen.id).toBeUndefined();
  });

  test('that ignores SIGTERM is killed', async () => {
    const file = join(directory, 'ready');
    const stubborn = start(`trap '' TERM; touch ${file}; while :; do sleep 0.1; done`);
    await stubborn.waitFor('its trap', () => existsSync(file), { timeoutMs: 5_000 });
    await stubborn.terminate(50);
    expect(stubborn.id).toBeUndefined();
  });

  test('of a missing program says so', () => {
    expect(() =>
      Daemon.start({ name: 'x/z', command: ['/no/such'], logFile: join(directory, 'z.log') }, record),
    ).toThrow('x/z: cannot run /no/such');
  });
});

test('namespaces are entered with nsenter', () => {
  expect(inNamespaces(['a', 'b'], {})).toEqual(['a', 'b']);
  expect(inNamespaces(['a'], { netns: 'n', mountNamespace: '/m' })).toEqual([
    'nsenter',
    '--net=/run/netns/n',
    '--mount=/m',
    '--',
    'a',
  ]);
});

test('a log that is not there is no error', () => {
  const never = new Daemon({ name: 'n', command: ['true'], logFile: join(directory, 'none.log') }, record);
  expect(never.tail()).toBe('(no log)');
  expect(never.id).toBeUndefined();
});
