import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../../../src/lib/clock.ts';
import { createLogger } from '../../../../src/lib/log.ts';
import { PeerEndpoints } from '../../../../src/peering/reach/dialler.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import {
  closed,
  collected,
  dialAs,
  opened,
  type Pair,
  type PairOptions,
  pairUp,
  size,
  TcpApi,
} from './support.ts';

/** Who may come in, and where is dialled. */

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

test('of several endpoints the one that answered is tried first the next time', async () => {
  const pair = await up({ direct: true });
  const { endpoint } = pair.provider;
  const tried: string[] = [];
  const known = ['127.0.0.1:1', endpoint];
  const endpoints = new PeerEndpoints(
    {
      endpoints: () => known,
      dial: async (target, signal) => {
        tried.push(target.endpoint);
        return dialAs('consumer', target, signal);
      },
    },
    systemClock,
  );
  const target = { clusterID: 'provider', path: '/v1/api', ms: 5_000 };
  const { signal } = new AbortController();
  for (let round = 0; round < 2; round += 1) (await endpoints.dial(target, signal)).terminate();
  expect(tried).toEqual(['127.0.0.1:1', endpoint, endpoint]);
  known.splice(0, 2, '127.0.0.1:2');
  await expect(endpoints.dial(target, signal)).rejects.toMatchObject({ code: 'Unreachable' });
  expect(tried.slice(3)).toEqual(['127.0.0.1:2']);
});

describe('a dial id', () => {
  const arrive = async (as: string, id: string): Promise<number> => {
    const to = { endpoint: (pair as Pair).consumer.endpoint, path: `/v1/streams/${id}` };
    const ws = await dialAs(as, to, new AbortController().signal);
    const code = new Promise<number>((resolve) => void ws.once('close', resolve));
    ws.resume();
    return code;
  };

  test('is good once, for the peer that was asked, and unguessable', async () => {
    const pair = await up({ direct: false });
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.write('x');
    await eventually('it is up', () => size(answer) === 1);
    const [id = ''] = pair.state.asked;
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(await arrive('provider', id)).toBe(1008);
    expect(await arrive('provider', 'f'.repeat(32))).toBe(1008);
    socket.write('y');
    await eventually('the stream is untouched', () => size(answer) === 2);
    socket.destroy();
    await idle(pair);
  });

  test('does not let another peer in, nor spoils it for the right one', async () => {
    const pair = await up({ direct: false });
    const { provider } = pair;
    const real = provider.reach.dialBack.bind(provider.reach);
    let code: number | undefined;
    provider.reach.dialBack = async (caller, params, signal) => {
      code = await arrive('mallory', params.stream);
      return real(caller, params, signal);
    };
    const socket = await opened(pair);
    const answer = collected(socket);
    socket.end('x');
    await closed(socket);
    expect({ code, size: size(answer) }).toEqual({ code: 1008, size: 1 });
  });

  test('is void after its time', async () => {
    const clock = new FakeClock();
    const pair = await up({ direct: false, clock });
    let asked = '';
    pair.provider.reach.dialBack = async (_caller, { stream }) => {
      asked = stream;
      return new Promise(() => undefined);
    };
    const socket = await opened(pair);
    await eventually('it was asked', () => asked !== '');
    await clock.advance(10_000);
    await closed(socket);
    expect(await arrive('provider', asked)).toBe(1008);
  });

  test('that is none is refused before anything is dialled', async () => {
    const { provider } = await up();
    const signal = new AbortController().signal;
    for (const stream of ['', '../../link', 'G'.repeat(32), 'a'.repeat(33), 7, null]) {
      const call = provider.reach.dialBack({ clusterID: 'consumer' }, { stream: stream as string }, signal);
      await expect(call).rejects.toMatchObject({ code: 'Invalid' });
    }
    expect(provider.reach.streams.lent).toBe(0);
  });
});

test('nobody without a grant reaches the API server; it is said once', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'info', now: () => 0, write: (line) => lines.push(line) });
  const pair = await up({ log });
  pair.state.granted = false;
  let touched = false;
  serve = () => (touched = true);
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const ws = await dialAs(
      'mallory',
      { endpoint: pair.provider.endpoint, path: '/v1/api' },
      new AbortController().signal,
    );
    const code = new Promise<number>((resolve) => void ws.once('close', resolve));
    ws.resume();
    expect(await code).toBe(1008);
  }
  expect(touched).toBe(false);
  expect(lines).toHaveLength(1);
});

test('nor does it fill the log, under however many names', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'info', now: () => 0, write: (line) => lines.push(line) });
  const { provider } = await up({ log });
  const signal = new AbortController().signal;
  for (let name = 0; name < 100; name += 1) {
    const ws = await dialAs(
      `mallory-${name}`,
      { endpoint: provider.endpoint, path: `/v1/streams/${'a'.repeat(32)}` },
      signal,
    );
    const gone = new Promise((resolve) => void ws.once('close', resolve));
    ws.resume();
    await gone;
  }
  expect(lines.length).toBeGreaterThan(10);
  expect(lines.length).toBeLessThan(70);
});
