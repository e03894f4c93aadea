import { createServer, type AddressInfo } from 'node:net';

import { expect, test } from '@jest/globals';

import { errorMessage } from '../../../src/lib/errors.ts';
import { close, listen } from '../../../src/server/listening.ts';
import { holderOf } from '../../../src/server/port-holder.ts';

test('a port that is taken: the option that names another one, and who holds it', async () => {
  const first = createServer();
  await listen(first, '127.0.0.1', 0);
  const { port } = first.address() as AddressInfo;
  const taken = async (option?: string): Promise<unknown> =>
    listen(createServer(), '127.0.0.1', port, option).catch((error: unknown) => error);
  expect(holderOf(port)).toContain(`(process ${process.pid})`);
  expect(errorMessage(await taken('kubelet-port'))).toMatch(
    new RegExp(
      `^cannot listen on 127\\.0\\.0\\.1, port ${port}: .+ \\(process ${process.pid}\\) holds it already; end that, or choose another one with --kubelet-port \\(.*EADDRINUSE`,
      'u',
    ),
  );
  // Who tries one port after another goes by the code.
  expect(await taken()).toMatchObject({ code: 'EADDRINUSE' });
  await close(first, () => undefined);
  expect(holderOf(port)).toBeUndefined();
});

test('an address of another host', async () => {
  const error: unknown = await listen(createServer(), '192.0.2.1', 0, 'ops-port').catch((it: unknown) => it);
  expect(errorMessage(error)).toMatch(/this host does not have that address/u);
});

test('a connection that cannot be accepted ends nothing else', async () => {
  const server = createServer();
  await listen(server, '127.0.0.1', 0);
  // As Node.js tells it, where an accept fails.
  expect(() => server.emit('error', Object.assign(new Error('accept'), { code: 'ENOMEM' }))).not.toThrow();
  expect(server.listening).toBe(true);
  await close(server, () => undefined);
});
