/**
 * A program that holds connections open at a peering endpoint and proves nothing: `flood.ts HOST PORT COUNT SOURCE,...`.
 * A third is silent, a third sends one byte a second, a third stops after its ClientHello. What is closed is opened again.
 * It prints `{ opened, held }` a few times a second, until it is killed.
 */
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';

const [host = '', port = '', count = '', sources = ''] = process.argv.slice(2);
const addresses = sources.split(',');
/** Opened at once; more would only wait in the kernel. */
const BATCH = 100;

/** What a client says first. */
async function clientHello(): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      resolve(chunk);
      done();
    },
  });
  connectTls({ socket: wire, ALPNProtocols: ['http/1.1'] }).on('error', () => undefined);
  return promise;
}

const hello = await clientHello();
const held = new Set<Socket>();
let opened = 0;

function open(index: number): void {
  const localAddress = addresses[index % addresses.length];
  const socket = connect({ host, port: Number(port), ...(localAddress !== undefined && { localAddress }) });
  socket.on('connect', () => {
    opened += 1;
    held.add(socket);
    if (index % 3 === 1) drip(socket);
    if (index % 3 === 2) socket.write(hello);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    held.delete(socket);
    setTimeout(() => open(index), 20);
  });
  // Otherwise the end would never be read.
  socket.resume();
}

/** One byte a second. */
function drip(socket: Socket): void {
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(hello.subarray(sent, sent + 1));
    sent += 1;
  }, 1000);
  socket.once('close', () => clearInterval(timer));
}

for (let index = 0; index < Number(count); index += 1) {
  open(index);
  if (index % BATCH === 0) await new Promise((resolve) => setTimeout(resolve, 5));
}
setInterval(() => process.stdout.write(`${JSON.stringify({ opened, held: held.size })}\n`), 200);
