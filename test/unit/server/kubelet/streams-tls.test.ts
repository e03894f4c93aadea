/** The streams together with the dialler that the agent hands in: TLS on both sides. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:tls';
import type { Server, TLSSocket } from 'node:tls';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { SpareConnection } from '../../../../src/kube/spare-connection.ts';
import { dialUpgrade } from '../../../../src/kube/upgrade.ts';
import { eventually } from '../../../support/eventually.ts';
import { createAuthority } from '../support/certificates.ts';
import { readBytes, readHead, startKubelet, upgradeText } from '../support/kubelet.ts';
import type { Fixture } from '../support/kubelet.ts';

let kubelet: Fixture;
let foreign: Server;
const peers: TLSSocket[] = [];
/** Also those that were given up in their handshake. */
const arrived: Socket[] = [];
let spare: SpareConnection;
afterEach(async () => {
  spare.stop();
  await kubelet.stop();
  for (const socket of [...peers.splice(0), ...arrived.splice(0)]) socket.destroy();
  await new Promise((resolve) => foreign.close(resolve));
});

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';

/** A server that does nothing by itself, so that every byte sent to it can be seen. */
async function start(): Promise<{ arrival: Promise<TLSSocket> }> {
  const authority = await createAuthority();
  const { certificate, key } = await authority.issue('CN=foreign', { usage: 'server', ips: ['127.0.0.1'] });
  foreign = createServer({ cert: certificate, key, allowHalfOpen: true, ALPNProtocols: ['http/1.1'] });
  foreign.on('connection', (socket: Socket) => {
    socket.on('error', () => undefined);
    arrived.push(socket);
  });
  foreign.on('secureConnection', (peer: TLSSocket) => {
    peer.on('error', () => undefined);
    peers.push(peer);
  });
  await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
  const server = new URL(`https://127.0.0.1:${(foreign.address() as AddressInfo).port}`);
  const credentials = { server, ca: authority.certificate };
  spare = new SpareConnection();
  kubelet = await startKubelet({
    backend: { upgrade: async (request) => dialUpgrade(credentials, { ...request, spare }) },
  });
  return { arrival: once(foreign, 'secureConnection').then(([peer]) => peer as TLSSocket) };
}

/** A stream over a new connection: the client's end, and that of the foreign server. */
async function opened(): Promise<{ socket: TLSSocket; peer: TLSSocket }> {
  const arrival = once(foreign, 'secureConnection').then(([peer]) => peer as TLSSocket);
  const socket = await kubelet.connect();
  socket.write(upgradeText('/exec/shop/web/main?output=1'));
  const peer = await arrival;
  await readHead(peer);
  peer.write(SWITCH);
  await readHead(socket);
  return { socket, peer };
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
  await start();
  const { socket, peer } = await opened();
  peer.pipe(peer);
  const data = randomBytes(64 * 1024 * 1024);
  const back = readBytes(socket, data.length);
  socket.write(data);
  const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  expect(digest(await back)).toBe(digest(data));
});

/** A stream whose other end sends back what it gets. */
async function echoing(): Promise<TLSSocket> {
  const { socket, peer } = await opened();
  peer.pipe(peer);
  return socket;
}

test('bytes of streams that run at the same time stay apart, and the end comes after all of them', async () => {
  await start();
  const sockets: TLSSocket[] = [];
  for (let number = 0; number < 8; number++) sockets.push(await echoing());
  await Promise.all(
    sockets.map(async (socket) => {
      const data = randomBytes(4 * 1024 * 1024);
      const back = readBytes(socket);
      socket.end(data);
      const got = await back;
      expect(got.length).toBe(data.length);
      expect(got.equals(data)).toBe(true);
    }),
  );
});

test('a client that does not read holds the other side back, and gets all of it later', async () => {
  await start();
  const { socket, peer } = await opened();
  socket.pause();
  const piece = randomBytes(1024 * 1024);
  let sent = 0;
  const room = async (): Promise<boolean> =>
    Promise.race([once(peer, 'drain').then(() => true), kubelet.ask('/healthz').then(() => false)]);
  // Full where there is no drain while something else is answered, three times in a row.
  for (let full = 0; full < 3;) {
    if (sent > 64 * piece.length) break;
    if (peer.write(piece)) full = 0;
    else full = (await room()) ? 0 : full + 1;
    sent += piece.length;
  }
  expect(sent).toBeLessThan(64 * piece.length);
  expect((await readBytes(socket, sent)).length).toBe(sent);
});

test('a refused caller has nothing sent over there, neither by a new connection nor by one that waits', async () => {
  await start();
  const { socket: first, peer } = await opened();
  first.end();
  peer.end();
  await eventually('a connection that waits', () => peers.length === 2);
  const refused = await kubelet.connect({ cert: undefined, key: undefined });
  refused.write(upgradeText('/exec/shop/web/main?output=1', ['Authorization: Bearer poor']));
  expect((await readBytes(refused)).toString()).toMatch(/^HTTP\/1\.1 403 /);
  expect(peers).toHaveLength(2);
  expect(peers[1]?.bytesRead).toBe(0);
});

test('a client that leaves before there is a stream ends the connection that was dialled for it', async () => {
  const { arrival } = await start();
  const socket = await kubelet.connect();
  socket.write(upgradeText('/exec/shop/web/main?output=1'));
  const peer = await arrival;
  await readHead(peer);
  peer.resume();
  socket.destroy();
  await eventually('closed', () => peer.destroyed);
  expect(peers).toHaveLength(1);
});

test.each([1, 4])(
  'a client that still speaks when the other side has said %d MiB and gone gets all of it',
  async (size) => {
    await start();
    const { socket, peer } = await opened();
    socket.pause();
    const data = randomBytes(size * 1024 * 1024);
    await new Promise<void>((resolve) => peer.end(data, resolve));
    const gone = once(peer, 'close');
    peer.destroy();
    await gone;
    // What is sent to a connection that is closed is answered by a reset.
    for (let count = 0; count < 5; count++) {
      socket.write('and another word');
      await kubelet.ask('/healthz');
    }
    expect(socket.destroyed).toBe(false);
    expect((await readBytes(socket)).equals(data)).toBe(true);
    socket.end();
    await once(socket, 'close');
  },
);
