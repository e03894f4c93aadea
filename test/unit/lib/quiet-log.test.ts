import { beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '../../../src/lib/log.ts';
import { QuietLog } from '../../../src/lib/quiet-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let lines: Record<string, unknown>[];
let quiet: QuietLog;

beforeEach(() => {
  clock = new FakeClock();
  lines = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const log = createLogger({ level: 'debug', now: () => 0, write });
  quiet = new QuietLog({ log, clock, windowMs: 1_000, maxSubjects: 3, maxCauses: 2 });
});

test('each cause is said once for each subject, then again with how often it was not', async () => {
  for (let time = 0; time < 5; time++) quiet.warn('a', 'refused', { error: 'bad key' });
  quiet.warn('b', 'refused', { error: 'bad key' });
  quiet.warn('a', 'refused', { error: 'bad date' });
  expect(lines.map(({ error }) => error)).toEqual(['bad key', 'bad key', 'bad date']);
  await clock.advance(1_000);
  quiet.warn('a', 'refused', { error: 'bad key' });
  quiet.warn('a', 'refused', { error: 'bad key' });
  expect(lines.slice(3)).toMatchObject([{ level: 'warn', error: 'bad key', suppressed: 4 }]);
});

test('what differs far behind in a cause makes no new one', () => {
  for (let port = 0; port < 100; port++) quiet.warn('a', 'x', { error: `${'same '.repeat(10)}${port}` });
  expect(lines).toHaveLength(1);
});

test('neither many causes nor many subjects make many lines, nor much memory', async () => {
  for (let number = 0; number < 1_000; number++) quiet.warn('a', 'x', { error: `cause ${number}` });
  expect(lines.map(({ message }) => message)).toEqual([
    'x',
    'x',
    'there are more causes than are logged one by one',
  ]);
  for (let number = 0; number < 1_000; number++) quiet.warn(`subject ${number}`, 'y');
  expect(lines).toHaveLength(4);
  // With time there is place again.
  await clock.advance(1_000);
  quiet.warn('late', 'z');
  expect(lines.at(-1)).toMatchObject({ message: 'z' });
});

test('as a logger it keeps name, fields and levels', () => {
  const log = quiet.logger('a', 'link', { peer: 'p' });
  for (let time = 0; time < 2; time++) log.named('x').error('broken', { problem: 'why' });
  log.debug('not held back');
  log.debug('not held back');
  expect(lines).toMatchObject([
    { level: 'error', logger: 'tributary.link.x', peer: 'p', problem: 'why' },
    { level: 'debug', logger: 'tributary.link' },
    { level: 'debug' },
  ]);
});
