/** The streams together with the dialler that the agent hands in: TLS on both sides. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:tls';
import type { Server, TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { dialUpgrade } from '../../../../src/kube/upgrade.ts';
import { createAuthority } from '../support/certificates.ts';
import { readBytes, readHead, startKubelet, upgradeText } from '../support/kubelet.ts';
import type { Fixture } from '../support/kubelet.ts';

let kubelet: Fixture;
let foreign: Server;
const peers: TLSSocket[] = [];
afterEach(async () => {
  await kubelet.stop();
  for (const peer of peers.splice(0)) peer.destroy();
  await new Promise((resolve) => foreign.close(resolve));
});

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';

/** A server that does nothing by itself, so that every byte sent to it can be seen. */
async function start(): Promise<{ arrival: Promise<TLSSocket> }> {
  const authority = await createAuthority();
  const { certificate, key } = await authority.issue('CN=foreign', { usage: 'server', ips: ['127.0.0.1'] });
  foreign = createServer({ cert: certificate, key, allowHalfOpen: true, ALPNProtocols: ['http/1.1'] });
  foreign.on('secureConnection', (peer: TLSSocket) => {
    peer.on('error', () => undefined);
    peers.push(peer);
  });
  await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
  const server = new URL(`https://127.0.0.1:${(foreign.address() as AddressInfo).port}`);
  kubelet = await startKubelet({
    backend: { upgrade: async (request) => dialUpgrade({ server, ca: authority.certificate }, request) },
  });
  return { arrival: once(foreign, 'secureConnection').then(([peer]) => peer as TLSSocket) };
}

test('nothing but the request precedes what the client says', async () => {
  const { arrival } = await start();
  const socket = await kubelet.connect();
  socket.write(upgradeText('/exec/shop/web/main?output=1'));
  const peer = await arrival;
  const { head, rest } = await readHead(peer);
  expect(head).toMatch(/^POST \/api\/v1\/namespaces\/tenant-a\/pods\/web-remote\/exec\?/);
  expect(head).toMatch(/\r\nContent-Length: 0/);
  expect(head).not.toMatch(/transfer-encoding/i);
  expect(rest).toHaveLength(0);
  peer.write(SWITCH);
  await readHead(socket);
  const said = readBytes(peer);
  socket.end('hello');
  expect((await said).toString()).toBe('hello');
  const answer = readBytes(socket);
  peer.end('and good-bye');
  expect((await answer).toString()).toBe('and good-bye');
});

test('64 MiB through both TLS connections', async () => {
  const { arrival } = await start();
  const socket = await kubelet.connect();
  socket.write(upgradeText('/exec/shop/web/main?output=1'));
  const peer = await arrival;
  await readHead(peer);
  peer.write(SWITCH);
  await readHead(socket);
  peer.pipe(peer);
  const data = randomBytes(64 * 1024 * 1024);
  const back = readBytes(socket, data.length);
  socket.write(data);
  const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  expect(digest(await back)).toBe(digest(data));
});
