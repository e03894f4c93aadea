import 'reflect-metadata';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { WebSocket } from 'ws';
import { systemClock } from '../../../../src/lib/clock.ts';
import { Variable } from '../../../../src/lib/source.ts';
import { issueLeaf } from '../../../../src/peering/identity/certificate.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { Dialer } from '../../../../src/peering/link/dialer.ts';
import { DEFAULT_TIMES } from '../../../../src/peering/link/link.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { PeeringNode, linked } from '../../../support/peering/peering-node.ts';
import type { PeeringNodeOptions } from '../../../support/peering/peering-node.ts';
import { startTcpProxy } from '../../../support/network/tcp-proxy.ts';
import type { TcpProxy } from '../../../support/network/tcp-proxy.ts';

const cleanups: (() => Promise<void>)[] = [];
async function start(options: PeeringNodeOptions = {}): Promise<PeeringNode> {
  const node = await new PeeringNode(options).start();
  cleanups.push(async () => node.stop());
  return node;
}
async function proxyTo(node: PeeringNode): Promise<TcpProxy> {
  const proxy = await startTcpProxy(node.endpoint.port ?? 0);
  cleanups.push(async () => proxy.close());
  return proxy;
}
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map(async (cleanup) => cleanup()));
});

const HELLO = {
  type: 'hello',
  hello: { clusterName: 'x', protocols: [1], software: 'x', endpoints: [], networkProofs: [] },
};

/** A peer that says what a test wants. */
async function stranger(
  node: PeeringNode,
  identity: Identity = Identity.generate(),
  endpoint: string = node.address,
): Promise<WebSocket> {
  const pair = await issueLeaf(identity, { nowMs: Date.now(), lifeMs: 1e7 });
  const dialer = new Dialer({ certificate: new Variable(pair), clock: systemClock });
  const { signal } = new AbortController();
  const request = { clusterID: node.id, endpoint, path: '/v1/link', signal };
  return dialer.open(request, (socket) => socket.on('error', () => undefined));
}
const say = (socket: WebSocket, ...messages: object[]): void => {
  for (const message of messages) socket.send(JSON.stringify(message));
};

describe('a network that falls silent', () => {
  const times = { heartbeatMs: 50, heartbeatMisses: 3 };

  test('is noticed by both ends, and the link comes back when it does', async () => {
    const [one, two] = [await start({ registry: { times } }), await start({ registry: { times } })];
    const proxy = await proxyTo(two);
    one.registry.setTargets([{ name: 't', clusterID: two.id, endpoints: [`127.0.0.1:${proxy.port}`] }]);
    await linked(one, two);
    await eventually('pings were answered', () => one.registry.view(two.id)?.rttMs !== undefined);
    const waiting = one.registry.call(two.id, 'credential', {});
    await waiting;
    proxy.silence();
    await eventually(
      'both noticed',
      () => one.registry.view(two.id) === undefined && two.registry.view(one.id) === undefined,
    );
    proxy.restore();
    await linked(one, two);
    await expect(one.registry.call(two.id, 'credential', {})).resolves.toMatchObject({ token: 'token' });
  });

  test('a peer that comes again over another path takes the place of its dead link', async () => {
    const identity = Identity.generate();
    // Heartbeats alone would take minutes.
    const two = await start({ registry: { times: { heartbeatMs: 100_000 } } });
    const proxy = await proxyTo(two);
    const first = await start({ identity });
    first.registry.setTargets([{ name: 't', clusterID: two.id, endpoints: [`127.0.0.1:${proxy.port}`] }]);
    await linked(first, two);
    const from = two.registry.view(first.id)?.endpoint;
    proxy.silence();
    const second = await start({ identity });
    second.dial(two);
    await eventually('replaced', () => {
      const view = two.registry.view(first.id);
      return view !== undefined && view.endpoint !== from;
    });
    expect([...two.registry.views()]).toHaveLength(1);
    await expect(second.registry.call(two.id, 'credential', {})).resolves.toMatchObject({ token: 'token' });
  });

  test('before the hello leaves a connection, which ends when the hello and the answer to our close are overdue', async () => {
    const clock = new FakeClock();
    const node = await start({ registry: { clock } });
    const proxy = await proxyTo(node);
    const socket = await stranger(node, Identity.generate(), `127.0.0.1:${proxy.port}`);
    proxy.silence();
    // Nobody is told of that.
    socket.terminate();
    await clock.advance(DEFAULT_TIMES.helloMs + 1_999);
    expect(node.endpoint.connections).toBe(1);
    expect(node.warnings()).toEqual([]);
    await clock.advance(1);
    await eventually('the connection ended', () => node.endpoint.connections === 0);
    expect(node.warnings()).toMatchObject([{ error: 'no hello within 10000 ms' }]);
  });

  test('a second link beside a good one is turned away, and the first one is not disturbed', async () => {
    const identity = Identity.generate();
    const [one, two] = [await start({ identity }), await start()];
    one.dial(two);
    await linked(one, two);
    const { since } = two.registry.view(one.id) ?? {};
    for (let round = 0; round < 5; round++) {
      const socket = await stranger(two, identity);
      say(socket, HELLO);
      const code = await new Promise((resolve) => socket.once('close', resolve));
      expect(code).toBe(4001);
    }
    expect(two.registry.view(one.id)?.since).toBe(since);
    expect(one.registry.view(two.id)).toBeDefined();
  });
});

describe('a peer that asks too much', () => {
  test('is read more slowly, without any harm to others', async () => {
    const rates = { messagesPerSecond: 100, messagesAtOnce: 20, bytesPerSecond: 1e6, bytesAtOnce: 1e6 };
    const node = await start({ registry: { rates } });
    const friend = await start();
    friend.dial(node);
    await linked(friend, node);
    const socket = await stranger(node);
    let answers = 0;
    socket.on('message', () => answers++);
    say(socket, HELLO);
    const began = performance.now();
    for (let id = 1; id <= 100; id++) say(socket, { type: 'sing', id });
    await expect(friend.registry.call(node.id, 'credential', {})).resolves.toMatchObject({ token: 'token' });
    // Its hello and state, and an error for each.
    await eventually('what came in one piece is answered', () => answers >= 102);
    // That was 81 more than it may say at once: the next one waits for as long as they should have taken.
    say(socket, { type: 'sing', id: 101 });
    await eventually('all are answered in the end', () => answers >= 103);
    expect(performance.now() - began).toBeGreaterThan(700);
    expect(node.registry.view(friend.id)).toBeDefined();
    socket.terminate();
  });

  test('describes itself anew over and over, which may be written down each time: it waits longer', async () => {
    const rates = { messagesPerSecond: 1000, messagesAtOnce: 20, bytesPerSecond: 1e6, bytesAtOnce: 1e6 };
    const node = await start({ registry: { rates } });
    const socket = await stranger(node);
    let answers = 0;
    socket.on('message', () => answers++);
    const began = performance.now();
    say(socket, HELLO);
    for (let count = 1; count <= 40; count++) {
      say(socket, { ...HELLO, hello: { ...HELLO.hello, clusterName: `name ${count}` } });
    }
    say(socket, { type: 'sing', id: 1 });
    // Its hello, its state, and an error; then one more error, after all that it owes.
    await eventually('what came in one piece is answered', () => answers >= 3);
    say(socket, { type: 'sing', id: 2 });
    await eventually('the rest is, in the end', () => answers >= 4);
    expect(performance.now() - began).toBeGreaterThan(700);
    socket.terminate();
  });

  test('has a few calls answered at a time', async () => {
    const node = await start();
    let [working, most] = [0, 0];
    const { promise, resolve } = Promise.withResolvers<{ token: string; expires: string }>();
    node.credential = async () => {
      most = Math.max(most, ++working);
      return promise;
    };
    const socket = await stranger(node);
    const refused: string[] = [];
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { type: string; code?: string };
      if (message.type === 'error') refused.push(message.code ?? '');
    });
    say(socket, HELLO);
    for (let id = 1; id <= 30; id++) say(socket, { type: 'call', id, method: 'credential' });
    await eventually('the others are refused', () => refused.length === 14);
    expect(new Set(refused)).toEqual(new Set(['TooManyRequests']));
    expect(most).toBe(16);
    resolve({ token: 'x', expires: '2030-01-01T00:00:00Z' });
    socket.terminate();
  });

  test('does not wait for acknowledgements: it is sent away', async () => {
    const node = await start();
    node.refuse = async () => new Promise(() => undefined);
    const socket = await stranger(node);
    say(socket, HELLO);
    for (let id = 1; id <= 3; id++) say(socket, { type: 'state', id, documents: { request: null } });
    const code = await new Promise((resolve) => socket.once('close', resolve));
    expect(code).toBe(4400);
    // It never comes back from that call, which must not keep the test's end waiting.
    cleanups.length = 0;
    await node.endpoint.stop();
  });

  test('says nothing: it is sent away', async () => {
    const node = await start({ registry: { times: { helloMs: 100 } } });
    const socket = await stranger(node);
    const code = await new Promise((resolve) => socket.once('close', resolve));
    expect(code).toBe(4408);
    expect(node.warnings()).toMatchObject([{ error: 'no hello within 100 ms' }]);
  });

  test('reads nothing while it pings: it is cut off', async () => {
    const node = await start();
    const socket = await stranger(node);
    say(socket, HELLO);
    socket.pause();
    await eventually('cut off', () => {
      for (let count = 0; count < 500; count++) socket.ping(Buffer.alloc(125), true, () => undefined);
      return node.endpoint.connections === 0;
    });
    socket.terminate();
  });
});

describe('a renewal of certificates under load', () => {
  test('disturbs no link, and is what new links are made with', async () => {
    const one = await start();
    const others = await Promise.all([start(), start(), start()]);
    one.dial(...others);
    for (const other of others) await linked(one, other);
    const since = others.map((other) => one.registry.view(other.id)?.since);
    let [calls, failed] = [0, 0];
    const state = { done: false };
    const load = others.map(async (other) => {
      while (!state.done) {
        await one.registry.call(other.id, 'credential', {}).catch(() => failed++);
        calls++;
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    for (let round = 0; round < 10; round++) {
      const before = calls;
      await Promise.all([one, ...others].map(async (node) => node.renew(60_000)));
      await eventually('calls go on', () => calls > before + 3);
    }
    state.done = true;
    await Promise.all(load);
    expect(failed).toBe(0);
    expect(others.map((other) => one.registry.view(other.id)?.since)).toEqual(since);
    const late = await start();
    late.dial(one);
    await linked(late, one);
  });

  test('of a leaf that has expired meanwhile: links stay, and the next dial uses the new one', async () => {
    const [one, two] = [await start(), await start()];
    one.dial(two);
    await linked(one, two);
    await one.renew(1000, Date.now() - 7_200_000);
    await expect(one.registry.call(two.id, 'credential', {})).resolves.toMatchObject({ token: 'token' });
    const third = await start();
    one.dial(two, third);
    await eventually('refused', () => one.registry.problem(third.id) !== undefined);
    await one.renew();
    await linked(one, third);
    expect(one.registry.problem(third.id)).toBeUndefined();
  });
});
