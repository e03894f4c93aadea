/** The watch of pods, against an API server that does whatever the test says. */
import { expect, test } from '@jest/globals';

import {
  type ApiReader,
  type Listed,
  ReadError,
  type WatchEvent,
} from '../../../faults/auditor/api-reader.ts';
import type { ClusterHistory } from '../../../faults/auditor/history.ts';
import { Recorder } from '../../../faults/auditor/recorder.ts';
import type { RawObject } from '../../../faults/auditor/snapshot-model.ts';
import { eventually } from '../../support/eventually.ts';

const pod = (uid: string, version: number, phase = 'Running'): RawObject => ({
  metadata: { uid, name: uid, namespace: 'shop', resourceVersion: String(version) },
  status: { phase },
});
const event = (type: WatchEvent['type'], object: RawObject): WatchEvent => ({ type, object });
const list = (version: number, ...items: RawObject[]): Listed => ({ version: String(version), items });

/** Each watch says what stands there for it, and then goes on until the test ends it or the next one is wanted. */
class PlayedServer {
  readonly name = 'home';
  list_: Listed = list(1);
  readonly watched: string[] = [];
  readonly lists: number[] = [];
  next: (WatchEvent | Error)[][] = [];
  #release: () => void = () => undefined;

  async list(): Promise<Listed> {
    this.lists.push(Number(this.list_.version));
    return Promise.resolve(this.list_);
  }

  async *watch(
    _path: string,
    version: string,
    signal: AbortSignal,
    onOpen: () => void,
  ): AsyncGenerator<WatchEvent> {
    this.watched.push(version);
    const events = this.next.shift() ?? [];
    const refusal = events[0];
    if (refusal instanceof ReadError && refusal.status === 410) throw refusal;
    onOpen();
    for (const one of events) {
      if (one instanceof Error) throw one;
      yield one;
    }
    await new Promise<void>((resolve) => {
      this.#release = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    if (signal.aborted) throw new ReadError('aborted');
  }

  /** As a server ends a watch whose time is over. */
  end(): void {
    this.#release();
  }
}

async function observed(
  server: PlayedServer,
  play: (recorder: Recorder) => Promise<void>,
): Promise<ClusterHistory> {
  const stop = new AbortController();
  const recorder = new Recorder(server as unknown as ApiReader, new Set(['shop']), () => undefined);
  const running = recorder.run(stop.signal);
  await play(recorder);
  const history = recorder.history();
  stop.abort();
  server.end();
  await running;
  return history;
}

const told = ({ lives }: ClusterHistory): string[] =>
  [...lives.values()]
    .flat()
    .map(({ pod: { uid, version }, isGone, by }) => `${uid}@${version} ${isGone ? 'gone' : 'seen'} by ${by}`);
const gaps = ({ absences }: ClusterHistory): boolean[] => absences.map(({ isGap }) => isGap);
const until = async (server: PlayedServer, watches: number): Promise<void> =>
  eventually(`watch ${watches}`, () => server.watched.length === watches);

test('a watch that ends as asked goes on where it was, and nothing is missed', async () => {
  const server = new PlayedServer();
  server.list_ = list(5, pod('a', 4));
  server.next = [
    [event('MODIFIED', pod('a', 6)), event('BOOKMARK', pod('', 9))],
    [event('DELETED', pod('a', 10))],
  ];
  const history = await observed(server, async () => {
    await eventually('the bookmark', () => server.watched.length === 1);
    server.end();
    await until(server, 2);
  });
  expect(server.watched).toEqual(['5', '9']);
  expect(server.lists).toEqual([5]);
  expect(told(history)).toEqual(['a@4 seen by list', 'a@6 seen by event', 'a@10 gone by event']);
  expect(gaps(history)).toEqual([]);
});

test('after a cut it goes on, too: it was told late, and there is no gap', async () => {
  const server = new PlayedServer();
  server.list_ = list(5, pod('a', 4));
  server.next = [[new ReadError('cut')], [event('MODIFIED', pod('a', 6))]];
  const history = await observed(server, async () => until(server, 2));
  expect(server.watched).toEqual(['5', '5']);
  expect(told(history)).toEqual(['a@4 seen by list', 'a@6 seen by event']);
  expect(gaps(history)).toEqual([false]);
});

test('a version that is too old leaves a gap, after which the list counts', async () => {
  const server = new PlayedServer();
  server.list_ = list(5, pod('a', 4), pod('b', 3));
  server.next = [[event('MODIFIED', pod('a', 6)), new ReadError('cut')], [new ReadError('gone', 410)]];
  const history = await observed(server, async () => {
    await until(server, 1);
    server.list_ = list(20, pod('a', 15));
    await until(server, 3);
  });
  expect(server.watched).toEqual(['5', '6', '20']);
  expect(told(history)).toEqual([
    'a@4 seen by list',
    'a@6 seen by event',
    'a@15 seen by list',
    'b@3 seen by list',
    'b@3 gone by list',
  ]);
  expect(gaps(history)).toEqual([true]);
});

test('versions that go back are a store that was put back: the list counts', async () => {
  const server = new PlayedServer();
  server.list_ = list(50, pod('a', 40));
  server.next = [[new ReadError('cut')]];
  const history = await observed(server, async () => {
    await until(server, 1);
    server.list_ = list(30, pod('a', 20, 'Pending'));
    await until(server, 2);
  });
  expect(server.watched).toEqual(['50', '30']);
  expect(told(history)).toEqual(['a@40 seen by list', 'a@20 seen by list']);
  expect(gaps(history)).toEqual([true]);
});

test('a restore that the caller announces is read anew, though no version shows it', async () => {
  const server = new PlayedServer();
  server.list_ = list(50, pod('a', 40));
  const history = await observed(server, async (recorder) => {
    await until(server, 1);
    server.list_ = list(60, pod('b', 55));
    recorder.restored();
    expect(recorder.problem).toContain('was restored');
    await until(server, 2);
    await eventually('it is read', () => recorder.problem === undefined);
  });
  expect(told(history)).toEqual(['a@40 seen by list', 'a@40 gone by list', 'b@55 seen by list']);
  expect(history.isRestored).toBe(true);
});

test('while the server is away it is not known what is there', async () => {
  const server = new PlayedServer();
  server.list_ = list(5);
  const history = await observed(server, async (recorder) => {
    await eventually('it is read', () => recorder.problem === undefined);
    server.list = async () => Promise.reject(new ReadError('home cannot be reached'));
    server.next = [[new ReadError('cut')]];
    server.end();
    await eventually('it is away', () => recorder.problem?.includes('cannot be reached') === true);
  });
  expect(history.absences).toMatchObject([{ to: Infinity, isGap: false }]);
});
