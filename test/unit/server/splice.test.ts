import { expect, test } from '@jest/globals';
import type { Socket } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { splice } from '../../../src/server/splice.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Keeps what is written to it, piece by piece as a socket would get it. */
class Sink extends Duplex {
  readonly writes: string[][] = [];

  override _read(): void {}

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.writes.push(chunks.map(({ chunk }) => chunk.toString()));
    done();
  }

  override _final(done: () => void): void {
    this.writes.push(['end']);
    done();
  }
}

function begin(): { client: PassThrough; remote: Sink; joined: Promise<void> } {
  const client = new PassThrough();
  const counted = Object.assign(client, { bytesRead: 0, bytesWritten: 0 }) as unknown as Socket;
  const remote = new Sink();
  const joined = splice(counted, remote, { clock: new FakeClock(), idleMs: 1_000 });
  return { client, remote, joined };
}

test('what comes in one turn is written in one piece, in order', async () => {
  const { client, remote, joined } = begin();
  for (const piece of ['a', 'b', 'c']) client.push(piece);
  await nextTurn();
  await nextTurn();
  expect(remote.writes).toEqual([['a', 'b', 'c']]);
  client.push('d');
  await nextTurn();
  await nextTurn();
  expect(remote.writes).toEqual([['a', 'b', 'c'], ['d']]);
  client.destroy();
  await joined;
});

test('the end comes after all that was gathered', async () => {
  const { client, remote, joined } = begin();
  client.push('a');
  client.push('b');
  client.push(null);
  await nextTurn();
  await nextTurn();
  expect(remote.writes).toEqual([['a', 'b'], ['end']]);
  client.destroy();
  remote.destroy();
  await joined;
});

test('more than the other side takes at once arrives whole', async () => {
  const { client, remote, joined } = begin();
  const piece = 'x'.repeat(10_000);
  for (let index = 0; index < 100; index++) client.push(piece);
  client.push(null);
  while (!remote.writableFinished) await nextTurn();
  expect(remote.writes.flat().join('')).toHaveLength(100 * piece.length + 'end'.length);
  client.destroy();
  remote.destroy();
  await joined;
});

test('a connection that has ended and is closed does not cut off what the other one is still taking', async () => {
  const taken: string[] = [];
  let release = (): void => undefined;
  const client = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      taken.push(chunk.toString());
      release = () => done();
    },
  });
  const remote = new PassThrough();
  const counted = Object.assign(client, { bytesRead: 0, bytesWritten: 0 }) as unknown as Socket;
  const joined = splice(counted, remote, { clock: new FakeClock(), idleMs: 1_000 });
  remote.write('a');
  await nextTurn();
  await nextTurn();
  remote.write('b');
  client.push(null);
  await eventually('closed', () => remote.closed);
  expect([taken, client.destroyed]).toEqual([['a'], false]);
  release();
  await eventually('the rest', () => taken.length === 2);
  release();
  await joined;
  expect(client.destroyed).toBe(true);
});
