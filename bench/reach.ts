/**
 * How fast a stream to an API server is, against plain TCP and against TLS on the same loopback in the same run. All
 * ends are in this one process, so the figures are ratios, not speeds of a network.
 *
 * Usage: node bench/reach.ts [--megabytes 200] [--rounds 5]
 */
import 'reflect-metadata';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { connect as tlsConnect, createServer as createTlsServer } from 'node:tls';
import type { Duplex } from 'node:stream';
import { parseArgs } from 'node:util';
import { selfSigned } from '../test/support/certificate.ts';
import { reachPair } from '../test/support/peering/reach-pair.ts';
import { shown, spread, table } from './frame/statistics.ts';

const { values } = parseArgs({
  options: { megabytes: { type: 'string', default: '200' }, rounds: { type: 'string', default: '5' } },
});
const megabytes = Number(values.megabytes);
const CHUNK = Buffer.alloc(64 * 1024, 7);

/** Sends so many bytes to whoever comes, and ends. */
function source(socket: Duplex): void {
  let left = megabytes * 1024 * 1024;
  const pump = (): void => {
    while (left > 0) {
      left -= CHUNK.length;
      if (!socket.write(CHUNK)) return void socket.once('drain', pump);
    }
    socket.end();
  };
  socket.on('error', () => undefined).resume();
  pump();
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Megabytes per second until all has arrived. */
async function receive(open: () => Duplex): Promise<number> {
  const began = performance.now();
  const socket = open();
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await new Promise<void>((resolve, reject) => socket.once('end', resolve).once('error', reject));
  if (bytes < megabytes * 1024 * 1024) throw new Error(`only ${bytes} bytes have arrived`);
  socket.destroy();
  return megabytes / ((performance.now() - began) / 1000);
}

const plain = createServer(source);
const port = await listening(plain);
const certificate = await selfSigned();
const encrypted = createTlsServer(certificate, source);
const tlsPort = await listening(encrypted);

const direct = await reachPair({ direct: true, apiPort: () => port });
const back = await reachPair({ direct: false, apiPort: () => port });
const portOf = async (pair: typeof direct): Promise<number> =>
  Number(new URL((await pair.consumer.reach.open(pair.id)).server).port);
const ports = { direct: await portOf(direct), back: await portOf(back) };

const ways: Record<string, () => Promise<number>> = {
  'plain TCP': async () => receive(() => connect(port, '127.0.0.1')),
  'TLS, one connection': async () =>
    receive(() => tlsConnect({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false })),
  'stream, dialled': async () => receive(() => connect(ports.direct, '127.0.0.1')),
  'stream, dialled back': async () => receive(() => connect(ports.back, '127.0.0.1')),
};

const results: Record<string, number[]> = {};
for (let round = 0; round <= Number(values.rounds); round += 1) {
  for (const [name, measure] of Object.entries(ways)) {
    const speed = await measure();
    // The first round warms up.
    if (round > 0) (results[name] ??= []).push(speed);
  }
}
const rows = Object.entries(results).map(([name, speeds]) => {
  const ratios = speeds.map((speed, round) => speed / (results['plain TCP']?.[round] ?? 1));
  return [name, shown(spread(speeds), 0), shown(spread(ratios), 2)];
});
console.log(table([[`${megabytes} MB`, 'MB/s', 'of plain TCP'], ...rows]));
await direct.down();
await back.down();
plain.close();
encrypted.close();
