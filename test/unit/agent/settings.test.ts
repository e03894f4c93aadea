import { beforeEach, expect, test } from '@jest/globals';

import { levelSwitch } from '../../../src/agent/settings.ts';
import { createLogger, type Logger, type LogSink } from '../../../src/lib/log.ts';

let lines: string[];
let sink: LogSink;
let log: Logger;

beforeEach(() => {
  lines = [];
  sink = {
    level: 'info',
    now: () => 0,
    write: (line) => {
      const { level, message, from, to, by, logLevel } = JSON.parse(line) as Record<string, string>;
      lines.push([level, message, from, to, by, logLevel].filter((part) => part !== undefined).join(' '));
    },
  };
  log = createLogger(sink);
});

const CHANGES = 'info the level of logs changes';

test('loggers that were there before follow the settings, and go back when these are gone', () => {
  const child = log.named('child');
  const apply = levelSwitch(sink, log);
  child.debug('too early');
  apply({ data: { logLevel: 'debug' } });
  child.debug('in time');
  apply({ data: { logLevel: 'error' } });
  child.warn('too quiet');
  apply({ data: { other: 'x' } });
  apply(undefined);
  child.debug('too late');
  expect(lines).toEqual([
    `${CHANGES} info debug settings`,
    'debug in time',
    `${CHANGES} debug error settings`,
    `${CHANGES} error info start`,
  ]);
});

test('a wrong level is complained of once, whatever the level is, and the level at start counts', () => {
  const apply = levelSwitch(sink, log);
  const complaint = 'error the settings name no level of logs, so the level at start counts';
  apply({ data: { logLevel: 'error' } });
  apply({ data: { logLevel: 'loud' } });
  apply({ data: { logLevel: 'loud', other: 'x' } });
  expect(sink.level).toBe('info');
  apply({ data: { logLevel: 'x'.repeat(100) } });
  // What means a level is taken as it is meant.
  apply({ data: { logLevel: ' Debug\n' } });
  apply({ data: { logLevel: '' } });
  expect(lines).toEqual([
    `${CHANGES} info error settings`,
    `${complaint} loud`,
    `${CHANGES} error info start`,
    `${complaint} ${'x'.repeat(64)}`,
    `${CHANGES} info debug settings`,
    `${CHANGES} debug info start`,
  ]);
});

test('lines that are written are counted, the others are not', () => {
  const counted: string[] = [];
  sink.count = (level) => void counted.push(level);
  log.debug('a');
  log.warn('b');
  expect(counted).toEqual(['warn']);
});
