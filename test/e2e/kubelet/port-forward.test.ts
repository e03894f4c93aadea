import { connect } from 'node:net';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { aPod } from '../../support/e2e/pods.ts';
import { TRANSPORTS, World } from './support/world.ts';

const SERVER =
  'mkdir -p /www; echo hello > /www/index.html; head -c 5000000 /dev/zero > /www/large;' +
  ' httpd -p 8080 -h /www; exec nc -ll -p 9000 -e cat';

let world: World;

beforeAll(async () => {
  world = await World.open('forward');
  const readinessProbe = { httpGet: { port: 8080, path: '/' }, periodSeconds: 1 };
  await world.runPod(aPod('server', SERVER, { container: { readinessProbe } }));
});

afterAll(async () => world.close());

describe.each(TRANSPORTS)('kubectl port-forward over %s', (_transport, env) => {
  test('carries many connections to several ports, and says when one is refused', async () => {
    const forward = world.start(['port-forward', 'pod/server', ':8080', ':9000', ':9'], {
      env,
      timeoutMs: 60_000,
    });
    const portOf = async (remote: number): Promise<number> => {
      const pattern = new RegExp(`Forwarding from 127.0.0.1:(\\d+) -> ${remote}\\n`);
      return Number((await forward.waitFor(pattern))[1]);
    };
    const [web, echo, refused] = await Promise.all([portOf(8080), portOf(9000), portOf(9)]);

    const pages = await Promise.all(Array.from({ length: 5 }, async () => read(`http://127.0.0.1:${web}/`)));
    expect(pages).toEqual(Array.from({ length: 5 }, () => 'hello\n'));
    const large = await read(`http://127.0.0.1:${web}/large`);
    expect(large.length).toBe(5_000_000);
    expect(await talk(echo, 'over and out')).toBe('over and out');

    await talk(refused, 'anybody?');
    await forward.waitFor(/Connection refused|connection refused/);
    await forward.stop();
  });
});

const read = async (url: string): Promise<string> => {
  const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) });
  return answer.text();
};

/** Sends a text and reads as much back, or until the other side closes. */
async function talk(port: number, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ port, host: '127.0.0.1', timeout: 60_000 });
  let heard = '';
  socket.on('data', (chunk) => {
    heard += chunk.toString();
    if (heard.length >= text.length) socket.end();
  });
  socket.once('timeout', () => socket.destroy(new Error('nothing came back')));
  socket.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'ECONNRESET' ? resolve(heard) : reject(error),
  );
  socket.once('close', () => resolve(heard));
  socket.write(text);
  return promise;
}
