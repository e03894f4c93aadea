import { PassThrough, Readable } from 'node:stream';
import { expect, test } from '@jest/globals';

import { MOST_LOG_BYTES, parseResultLogs } from '../../../../src/api/result-logs.ts';
import type { RawRequest, RawResponse } from '../../../../src/kube/client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { entryOf, type JournalEntry } from '../../../../src/hosting/guardian/journal-entry.ts';
import { KeptLogs, LogReader } from '../../../../src/hosting/guardian/result-logs.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { AT, ended, podOf } from './support.ts';

const NAMESPACE = 'rome-shop';
const line = (text: string): string => `${AT} ${text}\n`;

function endedPod(name: string, containers: readonly string[] = ['app']): JournalEntry {
  const containerStatuses = containers.map((it) => ({ ...ended(AT), name: it }));
  const pod = podOf({ name, status: { phase: 'Succeeded', containerStatuses } });
  return entryOf(pod, undefined, true) as JournalEntry;
}

type Answer = (request: RawRequest) => Partial<RawResponse> | Promise<Partial<RawResponse>>;

function readerOf(answer: Answer): {
  kept: KeptLogs;
  reader: LogReader;
  asked: string[];
  clock: FakeClock;
  abort: AbortController;
  read: (...entries: JournalEntry[]) => Promise<void>;
  text: (homeUid: string, container?: string) => string | undefined;
} {
  const asked: string[] = [];
  const kept = new KeptLogs();
  const clock = new FakeClock();
  const abort = new AbortController();
  const raw = async (request: RawRequest): Promise<RawResponse> => {
    asked.push(request.path);
    return { status: 200, headers: {}, body: Readable.from([]), ...(await answer(request)) };
  };
  const reader = new LogReader({ client: { raw }, clock, log: silentLogger, namespace: NAMESPACE, kept });
  return {
    kept,
    reader,
    asked,
    clock,
    abort,
    read: async (...entries) => {
      reader.look(entries, abort.signal);
      await reader.stopped();
    },
    text: (homeUid, container = 'app') => {
      const text = kept.of(NAMESPACE, homeUid);
      return text === undefined ? undefined : parseResultLogs(text).get(container)?.toString();
    },
  };
}

const body = (...chunks: string[]): Partial<RawResponse> => ({
  body: Readable.from(chunks.map((chunk) => Buffer.from(chunk))),
});

test('the log of each container that has run is read once', async () => {
  const lab = readerOf(({ path }) => body(line(path.includes('=app&') ? 'one' : 'two'), line('three')));
  const entry = endedPod('job', ['app', 'side']);
  await lab.read(entry);
  expect(lab.text('home-job')).toBe(line('one') + line('three'));
  expect(lab.text('home-job', 'side')).toBe(line('two') + line('three'));
  expect(lab.asked).toEqual([
    expect.stringMatching(
      /^\/api\/v1\/namespaces\/rome-shop\/pods\/job\/log\?container=app&timestamps=true&tailLines=/u,
    ),
    expect.stringContaining('/job/log?container=side&'),
  ]);
  await lab.read(entry);
  expect(lab.asked).toHaveLength(2);
});

test('of a long log the end is kept, from the beginning of a line, and all containers share the room', async () => {
  const lines = Array.from({ length: 3000 }, (_, at) => line(`line ${at}`)).join('');
  const lab = readerOf(() => body(lines.slice(0, 50_001), lines.slice(50_001)));
  await lab.read(endedPod('one'), endedPod('two', ['app', 'side']));
  const [whole = '', half = ''] = [lab.text('home-one'), lab.text('home-two')];
  expect(whole.length).toBeGreaterThan(MOST_LOG_BYTES - 50);
  expect(whole.length).toBeLessThanOrEqual(MOST_LOG_BYTES);
  expect(half.length).toBeLessThanOrEqual(MOST_LOG_BYTES / 2);
  expect(lines.endsWith(whole)).toBe(true);
  expect(whole.startsWith(AT)).toBe(true);
});

test('a line that is longer than all there is room for is left out', async () => {
  const lab = readerOf(() => body(line('x'.repeat(2 * MOST_LOG_BYTES))));
  await lab.read(endedPod('job'));
  expect(lab.text('home-job')).toBe('');
});

test('a log that cannot be read is tried three times, and takes that of no other container along', async () => {
  const lab = readerOf(({ path }) => (path.includes('=app&') ? body(line('one')) : { status: 500 }));
  const entry = endedPod('job', ['app', 'side']);
  for (let time = 0; time < 5; time++) await lab.read(entry);
  expect(lab.asked.filter((path) => path.includes('side'))).toHaveLength(3);
  expect(lab.text('home-job')).toBe(line('one'));
  expect(lab.text('home-job', 'side')).toBeUndefined();
});

test('a node that does not answer does not keep the logs of others', async () => {
  const lab = readerOf(({ path }) =>
    path.includes('/slow/') ? { body: new PassThrough() } : body(line('one')),
  );
  const reading = lab.read(endedPod('slow'), endedPod('job'));
  await lab.clock.advance(10_000);
  await reading;
  expect(lab.text('home-slow')).toBeUndefined();
  expect(lab.text('home-job')).toBe(line('one'));
});

test('a log that is being read is not read once more', async () => {
  const slow = new PassThrough();
  const lab = readerOf(() => ({ body: slow }));
  const entry = endedPod('job');
  const reading = lab.read(entry);
  lab.reader.look([entry], lab.abort.signal);
  slow.end(line('one'));
  await reading;
  expect(lab.asked).toHaveLength(1);
  expect(lab.text('home-job')).toBe(line('one'));
});

test('nothing is read any more when it is stopped', async () => {
  const lab = readerOf(() => ({ body: new PassThrough() }));
  const reading = lab.read(endedPod('a'), endedPod('b'));
  lab.abort.abort();
  await reading;
  expect(lab.asked).toHaveLength(1);
});

test('the oldest logs of a peer give way', () => {
  const kept = new KeptLogs(10);
  kept.put('a', '1', 'x'.repeat(6));
  kept.put('b', '2', 'y'.repeat(4));
  kept.put('b', '3', 'z'.repeat(4));
  expect([kept.of('a', '1'), kept.of('b', '2'), kept.of('b', '3')]).toEqual([undefined, 'yyyy', 'zzzz']);
  kept.put('b', '3', 'z');
  kept.put('c', '2', 'w'.repeat(5));
  expect(kept.of('b', '2')).toBe('yyyy');
  kept.forget('b');
  expect([kept.of('b', '2'), kept.of('c', '2')]).toEqual([undefined, 'wwwww']);
});
