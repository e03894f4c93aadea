/** How fast a stream to an API server is, when the provider is dialled and when it dials back. */
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { connect as tlsConnect, createServer as createTlsServer } from 'node:tls';
import type { Duplex } from 'node:stream';
import { selfSigned } from '../test/support/certificate.ts';
import { reachPair } from '../test/support/peering/reach-pair.ts';
import type { Bench } from './frame/bench.ts';

const CHUNK = Buffer.alloc(64 * 1024, 7);
const BYTES_PER_MB = 1024 * 1024;

/** Sends so many bytes to whoever comes, and ends. */
const source =
  (bytes: number) =>
  (socket: Duplex): void => {
    let left = bytes;
    const pump = (): void => {
      while (left > 0) {
        left -= CHUNK.length;
        if (!socket.write(CHUNK)) return void socket.once('drain', pump);
      }
      socket.end();
    };
    socket.on('error', () => undefined).resume();
    pump();
  };

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Megabytes per second until all has arrived. */
async function receive(bytes: number, open: () => Duplex): Promise<number> {
  const began = performance.now();
  const socket = open();
  let received = 0;
  socket.on('data', (chunk: Buffer) => (received += chunk.length));
  await new Promise<void>((resolve, reject) => socket.once('end', resolve).once('error', reject));
  if (received < bytes) throw new Error(`only ${received} bytes have arrived`);
  socket.destroy();
  return bytes / BYTES_PER_MB / ((performance.now() - began) / 1000);
}

export const reachBench: Bench<{ megabytes: number }> = {
  name: 'reach',
  title: 'streams to an API server over a peering’s link',
  what:
    'A file from an end of a link to the other, beside plain TCP and one TLS connection on the same loopback. All ends are in one process, so ' +
    'ratios are of costs, not of a network.',
  parameters: { megabytes: 200 },
  run: async ({ parameters: { megabytes }, rounds }) => {
    const bytes = megabytes * BYTES_PER_MB;
    const plain = createServer(source(bytes));
    const port = await listening(plain);
    const encrypted = createTlsServer(await selfSigned(), source(bytes));
    const tlsPort = await listening(encrypted);
    const direct = await reachPair({ direct: true, apiPort: () => port });
    const back = await reachPair({ direct: false, apiPort: () => port });
    const portOf = async ({ consumer, id }: typeof direct): Promise<number> =>
      Number(new URL((await consumer.reach.open(id)).server).port);
    const ports = { direct: await portOf(direct), back: await portOf(back) };
    const ways: Record<string, () => Duplex> = {
      'plain TCP': () => connect(port, '127.0.0.1'),
      'TLS, one connection': () =>
        tlsConnect({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false }),
      'stream, dialled': () => connect(ports.direct, '127.0.0.1'),
      'stream, dialled back': () => connect(ports.back, '127.0.0.1'),
    };
    try {
      const speeds = new Map(Object.keys(ways).map((name): [string, number[]] => [name, []]));
      // The first round warms up: it does not count.
      for (let round = 0; round <= rounds; round++) {
        for (const [name, open] of Object.entries(ways)) {
          const speed = await receive(bytes, open);
          speeds.get(name)?.push(speed);
        }
      }
      return {
        measured: [...speeds].map(([contender, [, ...values]]) => ({
          contender,
          figure: 'MB/s',
          values,
          digits: 0,
        })),
        // A stream passes two more sockets than one TLS connection does: there is no goal.
        goals: [],
      };
    } finally {
      await direct.down();
      await back.down();
      plain.close();
      encrypted.close();
    }
  },
};
