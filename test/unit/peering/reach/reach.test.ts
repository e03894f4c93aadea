import { createHash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '../../../support/fake-clock.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  TcpApi,
  closed,
  collected,
  dialAs,
  opened,
  pairUp,
  size,
  type Pair,
  type PairOptions,
} from './support.ts';

const ways = [
  ['dialled', true],
  ['dialled back', false],
] as const;

let api: TcpApi;
let pair: Pair | undefined;
let serve: (socket: Socket) => void;

async function up(options: Omit<PairOptions, 'api'> = {}): Promise<Pair> {
  pair = await pairUp({ ...options, api: () => api.port });
  return pair;
}

const idle = async ({ consumer, provider }: Pair): Promise<void> =>
  eventually(
    'no stream is left',
    () =>
      consumer.reach.streams.borrowed + provider.reach.streams.lent === 0 &&
      consumer.sockets.size + provider.sockets.size === 0 &&
      api.sockets.size === 0,
  );

beforeEach(async () => {
  serve = (socket) => socket.pipe(socket);
  api = await TcpApi.up((socket) => serve(socket));
});

afterEach(async () => {
  await pair?.down();
  pair = undefined;
  await api.down();
});

describe.each(ways)('a stream that is %s', (_name, direct) => {
  test('carries bytes both ways, and the end of each direction', async () => {
    serve = (socket) => {
      const chunks = collected(socket);
      // Answers only after the other has ended its side: needs the half-close to come through.
      socket.once('end', () => socket.end(`got ${size(chunks)} bytes`));
    };
    const pair = await up({ direct });
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.end(randomBytes(300_000));
    await closed(socket);
    expect(Buffer.concat(answer).toString()).toBe('got 300000 bytes');
    await idle(pair);
    expect(pair.consumer.reach.wayTo('provider')).toBe(direct ? 'Direct' : 'DialBack');
  });

  test('carries 20 MB without a wrong byte', async () => {
    const body = randomBytes(20 * 1024 * 1024);
    const sha = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
    serve = (socket) => socket.end(body);
    const pair = await up({ direct });
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.end();
    await closed(socket);
    expect(sha(Buffer.concat(answer))).toBe(sha(body));
    await idle(pair);
  });

  test('holds the sender back while the reader is slow, then goes on', async () => {
    let sent = 0;
    serve = (socket) => {
      const chunk = Buffer.alloc(64 * 1024, 1);
      const pump = (): void => {
        while (socket.writable && socket.write(chunk)) sent += chunk.length;
        sent += chunk.length;
      };
      socket.on('drain', pump);
      pump();
    };
    const pair = await up({ direct });
    const socket = await opened(pair);
    let before = -1;
    let still = 0;
    // Nobody reads: what the kernels and our buffers take is all that is ever sent. Whatever can be sent is sent between two
    // looks, since they are turns of the same event loop.
    await eventually('the sender stands still', () => {
      still = sent > 0 && sent === before ? still + 1 : 0;
      before = sent;
      return still >= 50;
    });
    expect(sent).toBeLessThan(64 * 1024 * 1024);
    const answer = collected(socket);
    await eventually('it goes on', () => size(answer) > before + 4 * 1024 * 1024);
    socket.destroy();
    await idle(pair);
  });

  test('ends on this side when the API server breaks, and over there when the agent does', async () => {
    const pair = await up({ direct });
    const first = await opened(pair);
    first.write('x');
    const answer = collected(first);
    await eventually('it is up', () => size(answer) === 1);
    for (const socket of api.sockets) socket.resetAndDestroy();
    await closed(first);
    await idle(pair);
    const second = await opened(pair);
    const more = collected(second);
    second.write('y');
    await eventually('it is up again', () => size(more) === 1);
    second.resetAndDestroy();
    await idle(pair);
  });

  test('goes when the way between breaks in the middle, and a new one comes up', async () => {
    const pair = await up({ direct });
    const first = await opened(pair);
    first.write('x');
    const answer = collected(first);
    await eventually('it is up', () => size(answer) === 1);
    (direct ? pair.provider : pair.consumer).dropSockets();
    await closed(first);
    await idle(pair);
    const second = await opened(pair);
    const more = collected(second);
    second.write('y');
    await eventually('another one is up', () => size(more) === 1);
    second.destroy();
    await idle(pair);
  });

  test('stays when the link goes', async () => {
    const pair = await up({ direct });
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.write('x');
    await eventually('it is up', () => size(answer) === 1);
    pair.state.linked = false;
    socket.write('y');
    await eventually('it still works', () => size(answer) === 2);
    const other = await opened(pair);
    if (direct) {
      const more = collected(other);
      other.write('z');
      await eventually('and so does a new one', () => size(more) === 1);
    } else {
      await closed(other);
    }
    socket.destroy();
    other.destroy();
    await idle(pair);
  });

  test('is cut at once when access is revoked, and no other is let in', async () => {
    const pair = await up({ direct });
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.write('x');
    await eventually('it is up', () => size(answer) === 1);
    pair.state.granted = false;
    pair.provider.reach.revoke('another');
    socket.write('y');
    await eventually('another peer’s end is not ours', () => size(answer) === 2);
    pair.provider.reach.revoke('consumer');
    await closed(socket);
    await closed(await opened(pair));
    await idle(pair);
    expect(api.sockets.size).toBe(0);
  });

  test('is one of a hundred at once', async () => {
    const pair = await up({ direct, limits: { streamsPerPeer: 100 } });
    const sockets = await Promise.all(Array.from({ length: 100 }, async () => opened(pair)));
    await Promise.all(
      sockets.map(async (socket, index) => {
        const answer = collected(socket);
        socket.end(`stream ${index}`);
        await closed(socket);
        expect(Buffer.concat(answer).toString()).toBe(`stream ${index}`);
      }),
    );
    await idle(pair);
  });

  test('is refused beyond the limit of one peer, on both sides', async () => {
    const pair = await up({ direct, limits: { streamsPerPeer: 3 } });
    const sockets = await Promise.all([0, 1, 2].map(async () => opened(pair)));
    await Promise.all(
      sockets.map(async (socket) => {
        const answer = collected(socket);
        socket.write('x');
        await eventually('it is up', () => size(answer) === 1);
      }),
    );
    await closed(await opened(pair));
    // A consumer that does not count: the provider does.
    const { reach } = pair.provider;
    if (direct) {
      const ws = await dialAs(
        'consumer',
        { endpoint: pair.provider.endpoint, path: '/v1/api' },
        new AbortController().signal,
      );
      const code = new Promise<number>((resolve) => void ws.once('close', resolve));
      ws.resume();
      expect(await code).toBe(1013);
    } else {
      const call = reach.dialBack(
        { clusterID: 'consumer' },
        { stream: 'a'.repeat(32) },
        new AbortController().signal,
      );
      await expect(call).rejects.toMatchObject({ code: 'TooManyRequests' });
    }
    expect(reach.streams.lent).toBe(3);
    for (const socket of sockets) socket.destroy();
    await idle(pair);
  });
});

test('a peer that cannot be dialled after all is asked to dial back, and first of all the next time', async () => {
  const pair = await up({ direct: true });
  const { consumer, provider, state } = pair;
  Object.defineProperty(provider, 'endpoint', { value: '127.0.0.1:1' });
  for (const asked of [1, 2]) {
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.end('x');
    await closed(socket);
    expect(size(answer)).toBe(1);
    expect(state.asked).toHaveLength(asked);
    expect(consumer.reach.wayTo('provider')).toBe('DialBack');
  }
});

describe('who says nothing', () => {
  test('is found dead within 30 s, and a slow reader is not', async () => {
    const clock = new FakeClock();
    serve = () => undefined;
    const pair = await up({ clock });
    const socket = await opened(pair);
    await eventually('it is up', () => api.sockets.size === 1 && pair.provider.reach.streams.lent === 1);
    await eventually('both are joined', () => pair.provider.sockets.size === 1);
    // Alive: pings pass on the real loopback between the beats of the fake clock.
    for (let beat = 0; beat < 8; beat += 1) {
      await clock.advance(7_000);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(pair.provider.reach.streams.lent).toBe(1);
    // Dead: the other side neither reads nor says anything, and no FIN came.
    const [theirs] = pair.provider.sockets;
    theirs?.pause();
    if (theirs !== undefined) theirs.ping = () => undefined;
    for (let beat = 0; beat < 4; beat += 1) {
      await clock.advance(7_000);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await closed(socket);
    await eventually('the seat is free', () => pair.consumer.reach.streams.borrowed === 0);
  });
});

test('what is no binary message ends the stream', async () => {
  const { provider } = await up();
  const ws = await dialAs(
    'consumer',
    { endpoint: provider.endpoint, path: '/v1/api' },
    new AbortController().signal,
  );
  const code = new Promise<number>((resolve) => void ws.once('close', resolve));
  ws.resume();
  ws.send('GET / HTTP/1.1');
  expect(await code).toBe(1003);
  await idle(pair as Pair);
});

test('open gives one address until close; after that nobody listens, and nothing is left', async () => {
  const pair = await up();
  const { reach } = pair.consumer;
  const [first, second] = await Promise.all([reach.open('provider'), reach.open('provider')]);
  expect(second).toEqual(first);
  const socket = await opened(pair);
  const answer = collected(socket);
  socket.write('x');
  await eventually('it is up', () => size(answer) === 1);
  await reach.close('provider');
  await closed(socket);
  await idle(pair);
  const late = connect({ host: '127.0.0.1', port: Number(new URL(first.server).port) });
  await expect(new Promise((_resolve, reject) => late.once('error', reject))).rejects.toMatchObject({
    code: 'ECONNREFUSED',
  });
  await reach.close('provider');
});

test('an agent that goes while its stream is made leaves nothing', async () => {
  const pair = await up({ direct: false });
  const gate = Promise.withResolvers<void>();
  const { reach } = pair.provider;
  const real = reach.dialBack.bind(reach);
  reach.dialBack = async (caller, params, signal) => {
    await gate.promise;
    return real(caller, params, signal);
  };
  const socket = await opened(pair);
  await eventually('it was asked', () => pair.state.asked.length === 1);
  socket.resetAndDestroy();
  gate.resolve();
  await idle(pair);
});
