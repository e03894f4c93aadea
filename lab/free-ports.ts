/** Ports on loopback that stay free until their daemon binds them, and again after it was killed. */
import { createServer } from 'node:net';

/** Below the range from which Linux takes the ports of outgoing connections: those can be in use at any moment. */
const FIRST = 20_000;
const LAST = 31_999;

/** Ports that this process has given out, whether they are bound yet or not. */
const given = new Set<number>();

/** As many distinct ports as asked for. The search begins at random, so that two labs rarely meet. */
export async function freePorts(count: number, random: () => number = Math.random): Promise<number[]> {
  const ports: number[] = [];
  const start = Math.floor(random() * (LAST - FIRST + 1));
  for (let step = 0; step <= LAST - FIRST && ports.length < count; step++) {
    const port = FIRST + ((start + step) % (LAST - FIRST + 1));
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) ports.push(port);
    else given.delete(port);
  }
  if (ports.length < count) throw new Error(`fewer than ${count} ports are free from ${FIRST} to ${LAST}`);
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
