/**
 * Runs in a pod's network. A line on standard input names an address: it gets a datagram each millisecond until one is answered, and
 * a line on standard output says after how many milliseconds that was.
 */
import { createSocket } from 'node:dgram';
import { createInterface } from 'node:readline';

const EVERY_MS = 1;
const port = Number(process.argv[2]);

createInterface({ input: process.stdin })
  .on('line', (address) => {
    const began = performance.now();
    // One of its own for each address: what is still on its way belongs to the address before.
    const socket = createSocket('udp4');
    const timer = setInterval(() => socket.send('?', port, address, () => undefined), EVERY_MS);
    // Until there is a Service, the address is refused.
    socket.on('error', () => undefined);
    socket.once('message', () => {
      clearInterval(timer);
      socket.close();
      console.log(`answered after ${performance.now() - began} ms`);
    });
  })
  .on('close', () => process.exit(0));
console.log('ready');
