import 'reflect-metadata';
import { connect as connectTcp } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import v8 from 'node:v8';
import vm from 'node:vm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { WebSocket } from 'ws';
import { systemClock } from '../../../../src/lib/clock.ts';
import { issueLeaf } from '../../../../src/peering/identity/certificate.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { Dialer } from '../../../../src/peering/link/dialer.ts';
import { Variable } from '../../../../src/lib/source.ts';
import type { KeyPair } from '../../../../src/lib/source.ts';
import { badMessage } from '../../../support/peering/bad-message.ts';
import { awaited, eventually } from '../../../support/eventually.ts';
import { PeeringNode, linked } from '../../../support/peering/peering-node.ts';
import { short } from '../../../support/long.ts';
import { fc } from '../../../support/property.ts';
import { seeded } from '../../../support/seed.ts';

/** Far above what a link allows, so that thousands of messages take seconds. */
const FAST = { messagesPerSecond: 1e6, messagesAtOnce: 1e6, bytesPerSecond: 1e12, bytesAtOnce: 1e12 };

const TIMES = short('times as many attacks by one peer', { short: 0.4, long: 4 });

let victim: PeeringNode;
let friend: PeeringNode;
let attacker: { pair: KeyPair; dialer: Dialer };
const { signal } = new AbortController();

beforeAll(async () => {
  v8.setFlagsFromString('--expose_gc');
  victim = await new PeeringNode({
    registry: { rates: FAST },
    endpoint: { arrivals: { proofMs: 500 } },
  }).start();
  friend = await new PeeringNode().start();
  friend.dial(victim);
  await linked(friend, victim);
});
// A new one each time, since what was said of the last one is not said again.
beforeEach(async () => {
  const pair = await issueLeaf(Identity.generate(), { nowMs: Date.now(), lifeMs: 1e7 });
  attacker = { pair, dialer: new Dialer({ certificate: new Variable(pair), clock: systemClock }) };
});
afterAll(async () => Promise.all([victim.stop(), friend.stop()]));

const heapBytes = (): number => {
  (vm.runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
};

/** What must hold after each assault: the friend's link is the same one, works, and nothing else is left. */
async function expectUnharmed(since: string | undefined): Promise<void> {
  await eventually('all other connections are gone', () => victim.endpoint.connections === 1);
  expect(friend.registry.view(victim.id)?.since).toBe(since);
  await expect(friend.registry.call(victim.id, 'credential', {})).resolves.toMatchObject({ token: 'token' });
  expect([...victim.registry.views()]).toHaveLength(1);
}

/** Returns what was logged for people: each cause once, however often it was tried. */
async function assault(rounds: number, round: (index: number) => Promise<void>): Promise<string> {
  const since = friend.registry.view(victim.id)?.since;
  victim.logs.length = 0;
  // What is loaded and compiled on the first time is no leak.
  for (let index = 0; index < rounds / 5; index++) await round(index);
  await expectUnharmed(since);
  victim.heard.length = 0;
  const before = heapBytes();
  for (let index = 0; index < rounds; index++) await round(index);
  await expectUnharmed(since);
  victim.heard.length = 0;
  expect(heapBytes() - before).toBeLessThan(Math.max(1, TIMES) * 2 * 1024 * 1024);
  const warnings = victim.warnings();
  for (const { level } of warnings) expect(level).toBe('warn');
  const causes = warnings.map(({ message, error, problem }) => `${message}: ${String(error ?? problem)}`);
  expect(causes.toSorted()).toEqual([...new Set(causes)].toSorted());
  expect(causes.length).toBeLessThan(70);
  return causes.join('\n');
}

/** Asks again, because a handshake on a busy machine can take longer than the victim waits. */
const open = async (): Promise<WebSocket> =>
  awaited('a connection to the victim', async () =>
    attacker.dialer.open(
      { clusterID: victim.id, endpoint: victim.address, path: '/v1/link', signal },
      (socket) => socket.on('error', () => undefined),
    ),
  );

const HELLO = JSON.stringify({
  type: 'hello',
  hello: { clusterName: 'x', protocols: [1], software: 'x', endpoints: [], networkProofs: [] },
});

async function gone(socket: {
  once(event: 'close', listener: () => void): unknown;
  destroyed?: boolean;
}): Promise<void> {
  if (socket.destroyed === true) return;
  await new Promise<void>((resolve) => void socket.once('close', resolve));
}

async function secure(): Promise<Socket> {
  const socket = connectTls({
    port: victim.endpoint.port ?? 0,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    cert: attacker.pair.certificate,
    key: attacker.pair.key,
  });
  socket.on('error', () => undefined);
  socket.resume();
  await new Promise<void>((resolve) => socket.once('secureConnect', resolve));
  return socket;
}

const UPGRADE =
  'GET /v1/link HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

/** Messages on one link. */
const PER_LINK = 10;
/** Each for another cause, whatever chance brings: of one peer 16 are named, and then it is said that there are more. */
const CERTAIN = [
  '{',
  '{"type":"hello"}',
  ...Array.from({ length: 20 }, (_none, index) => JSON.stringify({ type: 'ack', id: -1 - index })),
];

describe('a peer with an identity of its own', () => {
  test(
    'sends malformed messages by the thousand',
    async () =>
      seeded(async () => {
        const messages = fc.sample(badMessage, { numRuns: 1_000 * TIMES });
        // The first of a link ends it.
        for (const [link, message] of CERTAIN.entries()) messages[link * PER_LINK] = message;
        let next = 0;
        let sent = 0;
        const causes = await assault(100 * TIMES, async () => {
          const socket = await open();
          if (next % 7 !== 0) socket.send(HELLO);
          for (let count = 0; count < PER_LINK; count++) {
            const message = messages[next++ % messages.length] ?? '';
            if (socket.readyState === socket.OPEN) {
              socket.send(message);
              sent++;
            }
          }
          socket.close();
          await gone(socket);
        });
        expect(sent).toBeGreaterThan(1_000 * TIMES);
        for (const cause of ['not JSON', 'hello', 'more causes than are logged']) {
          expect(causes).toContain(cause);
        }
      }),
    120_000,
  );

  test(
    'sends frames of random bytes',
    async () =>
      seeded(async (chance) => {
        const causes = await assault(75 * TIMES, async (index) => {
          const socket = await secure();
          socket.write(UPGRADE);
          const bytes = chance.bytes(chance.between(1, 2_000));
          // Every kind of frame: text, binary, continuation, control; masked or not; of whatever length.
          if (index % 2 === 0)
            bytes[0] = [0x81, 0x82, 0x80, 0x01, 0x88, 0x89, 0x8a, 0xff][(index / 2) % 8] ?? 0;
          socket.end(bytes);
          await gone(socket);
        });
        expect(causes).toContain('a peer broke the WebSocket protocol: Invalid WebSocket frame');
      }),
    120_000,
  );

  test(
    'sends anything but HTTP',
    async () =>
      seeded(async (chance) => {
        const texts = [
          'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
          'POST /v1/link HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n',
          `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`,
          'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
          UPGRADE.replace('/v1/link', '/v1/streams/../link'),
          UPGRADE.replace('/v1/link', '/v2/link'),
          UPGRADE.replace('Version: 13', 'Version: 99'),
          UPGRADE.replace('GET', 'POST'),
          UPGRADE.replace('websocket', 'h2c'),
        ];
        const causes = await assault(50 * TIMES, async (index) => {
          const socket = await secure();
          socket.write(texts[index % (texts.length + 1)] ?? chance.bytes(500));
          await gone(socket);
        });
        for (const cause of ['unknown path', 'no upgrade', 'Parse Error', 'Sec-WebSocket-Version']) {
          expect(causes).toContain(cause);
        }
      }),
    120_000,
  );

  test('sends messages that are too large, in one frame and in many', async () => {
    const causes = await assault(10, async (index) => {
      const socket = await open();
      socket.send(HELLO);
      const large = 'x'.repeat(300_000);
      if (index % 2 === 0) socket.send('y'.repeat(3_000_000));
      else for (let part = 0; part < 8; part++) socket.send(large, { fin: part === 7 });
      await gone(socket);
    });
    expect(causes).toContain('Max payload size exceeded');
  });

  test('sends one letter at a time in a message that never ends', async () => {
    const causes = await assault(3, async () => {
      const socket = await open();
      socket.send(HELLO);
      for (let part = 0; part < 20_000; part++) socket.send('x', { fin: false });
      await gone(socket);
    });
    expect(causes).toContain('Too many message fragments');
  });
});

describe('somebody without an identity', () => {
  test(
    'sends bytes that are not TLS',
    async () =>
      seeded(async (chance) => {
        const causes = await assault(125 * TIMES, async (index) => {
          const socket = connectTcp(victim.endpoint.port ?? 0, '127.0.0.1');
          socket.on('error', () => undefined);
          socket.resume();
          const bytes = chance.bytes(chance.between(1, 600));
          // Half of them begin as a client hello does.
          if (index % 2 === 0) Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).copy(bytes);
          // One is whole, says that it is too large, and does not end before it is judged, as many of the others do.
          if (index === 0) socket.write(Buffer.from([0x16, 0x03, 0x01, 0x00, 0x04, 0x01, 0xff, 0xff, 0xff]));
          else socket.end(bytes);
          await gone(socket);
        });
        expect(causes).toContain('TLS failed');
      }),
    60_000,
  );

  test('opens connections and says nothing', async () => {
    await assault(2, async () => {
      const sockets = Array.from({ length: 60 }, () => {
        const socket = connectTcp(victim.endpoint.port ?? 0, '127.0.0.1');
        socket.on('error', () => undefined);
        return socket.resume();
      });
      await Promise.all(sockets.map(gone));
    });
  });
});
