import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test } from '@jest/globals';
import 'reflect-metadata';
import type { WebSocket } from 'ws';

import { systemClock } from '../../../../src/lib/clock.ts';
import { presentedChain, verifyChain } from '../../../../src/peering/identity/verify.ts';
import { Dialer } from '../../../../src/peering/link/dialer.ts';
import { routeOf } from '../../../../src/server/peering/endpoint.ts';
import { Places } from '../../../../src/server/peering/places.ts';
import { eventually } from '../../../support/eventually.ts';
import { PeeringNode, type PeeringNodeOptions } from '../../../support/peering/peering-node.ts';

let nodes: PeeringNode[] = [];
async function start(options: PeeringNodeOptions = {}): Promise<PeeringNode> {
  const node = await new PeeringNode(options).start();
  nodes.push(node);
  return node;
}
afterEach(async () => {
  await Promise.all(nodes.map(async (node) => node.stop()));
  nodes = [];
});
const { signal } = new AbortController();

async function handshake(node: PeeringNode, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({
    host: '127.0.0.1',
    port: node.endpoint.port,
    rejectUnauthorized: false,
    ...options,
  } as ConnectionOptions);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('close', () => reject(new Error('closed in the handshake')));
  });
  return socket;
}

const open = async (
  from: PeeringNode,
  to: PeeringNode,
  path: string,
  endpoint?: string,
): Promise<WebSocket> =>
  new Dialer({ certificate: from.certificate, clock: systemClock }).open(
    { clusterID: to.id, endpoint: endpoint ?? to.address, path, signal },
    (socket) => socket,
  );

describe('the peering endpoint', () => {
  test('where it listens for both families, an IPv4 peer is shown as one', async () => {
    const seen: string[] = [];
    const link = (socket: WebSocket, _: unknown, from: string): void => {
      seen.push(from);
      socket.close();
    };
    const [caller, callee] = [await start(), await start({ endpoint: { host: '::' }, handlers: { link } })];
    await open(caller, callee, '/v1/link');
    await eventually('linked', () => seen.length > 0);
    expect(seen[0]).toMatch(/^127\.0\.0\.1:[0-9]+$/);
  });

  test('shows who we are to anybody, and gives nothing to who proves nothing', async () => {
    const node = await start();
    const socket = await handshake(node);
    expect(verifyChain(presentedChain(socket), Date.now()).clusterID).toBe(node.id);
    expect(socket.getProtocol()).toBe('TLSv1.3');
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    socket.write('GET /v1/link HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually('closed', () => socket.destroyed);
    expect(answer).toBe('');
    await eventually('forgotten', () => node.endpoint.connections === 0);
    expect(node.warnings()).toEqual([]);
  });

  test('resumes no session', async () => {
    const node = await start();
    const peer = await start();
    const { certificate: cert, key } = peer.certificate.current();
    const sessions: Buffer[] = [];
    for (let round = 0; round < 3; round++) {
      const session = sessions.at(-1);
      const socket = await handshake(node, { cert, key, ...(session && { session }) });
      socket.on('session', (ticket: Buffer) => sessions.push(ticket));
      expect(socket.isSessionReused()).toBe(false);
      socket.resume();
      await eventually('a session was offered', () => sessions.length > round);
      socket.destroy();
    }
  });

  test('speaks nothing older than TLS 1.3', async () => {
    const node = await start();
    await expect(handshake(node, { maxVersion: 'TLSv1.2' })).rejects.toThrow('closed in the handshake');
  });

  test('hands each path to its handler, with who called', async () => {
    const seen: string[] = [];
    const node = await start({
      handlers: {
        stream: (socket, { clusterID }, id) => {
          seen.push(`stream ${id} ${clusterID}`);
          socket.close(1000);
        },
        api: (socket, { clusterID }) => {
          seen.push(`api ${clusterID}`);
          socket.close(1000);
        },
      },
    });
    const peer = await start();
    await open(peer, node, '/v1/streams/abcd-EFGH_1');
    await open(peer, node, '/v1/api');
    expect(seen).toEqual([`stream abcd-EFGH_1 ${peer.id}`, `api ${peer.id}`]);
    await expect(open(peer, node, '/v1/other')).rejects.toThrow('404');
    await expect(open(peer, peer, '/v1/api', node.address)).rejects.toMatchObject({ code: 'Unauthorized' });
  });

  test('listens on IPv6 as well', async () => {
    const node = await start({ endpoint: { host: '::' } });
    const peer = await start();
    for (const host of ['[::1]', '127.0.0.1', 'localhost']) {
      const socket = await open(peer, node, '/v1/api', `${host}:${node.endpoint.port ?? 0}`);
      socket.terminate();
    }
  });

  test('has limited places for one peer and for strangers', async () => {
    const known = new Set<string>();
    const node = await start({
      handlers: { api: () => undefined },
      endpoint: { isKnown: (id) => known.has(id), limits: { perCaller: 2, strangers: 3 } },
    });
    const [one, two, friend] = [await start(), await start(), await start()];
    known.add(friend.id);
    const sockets = [await open(one, node, '/v1/api'), await open(one, node, '/v1/api')];
    await expect(open(one, node, '/v1/api')).rejects.toThrow('503');
    sockets.push(await open(two, node, '/v1/api'));
    sockets.push(await open(friend, node, '/v1/api'));
    expect(node.warnings()).toHaveLength(1);
    // One more stranger: the first one makes room, and nobody else.
    sockets.push(await open(two, node, '/v1/api'));
    await eventually('the oldest stranger is gone', () => sockets[0]?.readyState === 3);
    expect(sockets.map(({ readyState }) => readyState)).toEqual([3, 1, 1, 1, 1]);
    expect(node.warnings()).toMatchObject([{ peer: one.id }, { peer: one.id }]);
    for (const socket of sockets) socket.terminate();
    await eventually('all have left', () => node.endpoint.connections === 0);
    (await open(two, node, '/v1/api')).terminate();
  });

  test('a handler that throws costs its caller the connection and nobody else anything', async () => {
    const node = await start({
      handlers: {
        api: () => {
          throw new Error('bug');
        },
      },
    });
    const peer = await start();
    const socket = await open(peer, node, '/v1/api');
    socket.on('error', () => undefined);
    await eventually('closed', () => socket.readyState === socket.CLOSED);
    expect(node.warnings()).toMatchObject([{ level: 'error', error: 'bug' }]);
  });

  test('shows the new leaf to new connections and leaves the old ones alone', async () => {
    const node = await start({
      handlers: { api: (socket) => socket.on('message', () => socket.send('here')) },
    });
    const peer = await start();
    const serial = async (): Promise<string> => {
      const socket = await handshake(node);
      const { serialNumber = '' } = socket.getPeerX509Certificate() ?? {};
      socket.destroy();
      return serialNumber;
    };
    const before = await serial();
    const old = await open(peer, node, '/v1/api');
    await node.renew();
    expect(await serial()).not.toBe(before);
    let answers = 0;
    old.on('message', () => answers++);
    old.send('there?');
    await eventually('the old connection answers', () => answers === 1);
    node.certificate.set({ certificate: 'broken', key: 'broken' });
    expect(node.warnings()).toMatchObject([{ message: 'cannot use the new peering certificate' }]);
    expect(await serial()).not.toBe(before);
  });
});

test('paths', () => {
  expect(routeOf('/v1/link')).toEqual({ kind: 'link' });
  expect(routeOf('/v1/api')).toEqual({ kind: 'api' });
  expect(routeOf('/v1/streams/12345678')).toEqual({ kind: 'stream', id: '12345678' });
  for (const path of [
    '/',
    '',
    '/v1/link/',
    '/v1/link?x',
    '/v1/streams/',
    '/v1/streams/short',
    '/v1/streams/../api',
  ]) {
    expect(routeOf(path)).toBeUndefined();
  }
});

test('places are given back once, whatever happens', () => {
  const places = new Places({ total: 3, perCaller: 2, strangers: 1 });
  const admit = (clusterID: string, isKnown: boolean): (() => void) | undefined =>
    places.admit({ clusterID, isKnown, address: clusterID, end: () => undefined });
  const admitted = [admit('x', true), admit('x', true), admit('y', false)];
  expect(admitted).not.toContain(undefined);
  expect(admit('z', true)).toBeUndefined();
  for (let time = 0; time < 2; time++) for (const leave of admitted) leave?.();
  expect(places.open).toBe(0);
  expect([admit('x', true), admit('x', true)]).not.toContain(undefined);
  expect(admit('x', true)).toBeUndefined();
});
