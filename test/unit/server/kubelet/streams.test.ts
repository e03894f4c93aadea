import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';

import { eventually } from '../../../support/eventually.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { eachAtOnce } from '../../../../src/lib/each-at-once.ts';
import type { Located } from '../../../../src/server/kubelet/backend.ts';
import { pairs } from '../../../../src/server/kubelet/stream-request.ts';
import { STREAM_IDLE_MS } from '../../../../src/server/kubelet/streams.ts';
import {
  type Fixture,
  readBytes,
  readHead,
  REMOTE_PATH,
  startKubelet,
  TestClock,
  UID,
  upgradeText,
} from '../support/kubelet.ts';

let kubelet: Fixture;
afterEach(async () => kubelet.stop());

const EXEC = '/exec/shop/web/main?command=sh&command=-c&command=a%20%26%20b&input=1&output=1&error=1';
const digest = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
const get = (text: string): string => text.replace(/^POST/, 'GET');

test('64 MiB go there and come back as they were', async () => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC));
  expect((await readHead(socket)).head).toMatch(/^HTTP\/1\.1 101 /);
  const data = randomBytes(64 * 1024 * 1024);
  const back = readBytes(socket, data.length);
  socket.write(data);
  expect(digest(await back)).toBe(digest(data));
});

test('parameters and headers change on the way, repetitions stay', async () => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  const arrival = kubelet.foreign.arrival();
  socket.write(
    upgradeText(EXEC, [
      'X-Stream-Protocol-Version: v5.channel.k8s.io',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
      'Authorization: Bearer good',
      'Cookie: a=b',
      'Origin: https://elsewhere',
      'Impersonate-User: root',
      'X-Remote-User: root',
      'X-Forwarded-For: 1.2.3.4',
      'Content-Length: 0',
      'User-Agent: kubectl/1.36',
      'Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.Zm9v, v4.channel.k8s.io',
    ]),
  );
  const { request } = await arrival;
  expect(request.method).toBe('POST');
  expect(request.url).toBe(
    `${REMOTE_PATH}/exec?container=main&stdin=true&stdout=true&stderr=true&tty=false&command=sh&command=-c&command=a+%26+b`,
  );
  expect(pairs(request.rawHeaders)).toEqual([
    ['Host', 'foreign'],
    ['Connection', 'Upgrade'],
    ['Content-Length', '0'],
    ['Upgrade', 'SPDY/3.1'],
    ['X-Stream-Protocol-Version', 'v5.channel.k8s.io'],
    ['X-Stream-Protocol-Version', 'v4.channel.k8s.io'],
    ['User-Agent', 'kubectl/1.36'],
    ['Sec-WebSocket-Protocol', 'v5.channel.k8s.io, v4.channel.k8s.io'],
  ]);
});

test('the end of either direction passes on, the other direction stays open', async () => {
  kubelet = await startKubelet();
  kubelet.foreign.onUpgrade = ({ socket }) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  };
  const socket = await kubelet.connect();
  const arriving = kubelet.foreign.arrival();
  socket.write(upgradeText(EXEC));
  const { socket: remote } = await arriving;
  await readHead(socket);
  socket.end('last words');
  expect((await readBytes(remote)).toString()).toBe('last words');
  const answer = readBytes(socket);
  remote.end('answer after the end');
  expect((await answer).toString()).toBe('answer after the end');
});

test('bytes that came together with the heads are not lost', async () => {
  kubelet = await startKubelet();
  kubelet.foreign.onUpgrade = ({ socket, head }) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nremote first,',
    );
    socket.write(head);
    socket.pipe(socket);
  };
  const socket = await kubelet.connect();
  socket.write(`${upgradeText(EXEC)}client first`);
  const { rest } = await readHead(socket);
  const wanted = 'remote first,client first';
  const more = rest.length < wanted.length ? await readBytes(socket, wanted.length - rest.length) : '';
  expect(rest.toString() + more.toString()).toBe(wanted);
});

test('a refusal is passed on in the names of home', async () => {
  kubelet = await startKubelet();
  const refusal = JSON.stringify({
    kind: 'Status',
    message: 'pods "web-remote" is forbidden in the namespace "tenant-a", not tenant-ab',
    details: { name: 'web-remote' },
    code: 403,
  });
  kubelet.foreign.onUpgrade = ({ socket }) => {
    socket.end(
      `HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nAudit-Id: x\r\nContent-Length: ${refusal.length}\r\n\r\n${refusal}`,
    );
  };
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC));
  const text = (await readBytes(socket)).toString();
  expect(text).toMatch(/^HTTP\/1\.1 403 Forbidden\r\nContent-Type: application\/json\r\n/);
  expect(text).not.toContain('Audit-Id');
  expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4))).toEqual({
    kind: 'Status',
    message: 'pods "web" is forbidden in the namespace "shop", not tenant-ab',
    details: { name: 'web' },
    code: 403,
  });
});

test('a refused credential of ours is not the fault of the caller', async () => {
  kubelet = await startKubelet();
  kubelet.foreign.onUpgrade = ({ socket }) => {
    socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nUnauthorized');
  };
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC));
  const text = (await readBytes(socket)).toString();
  expect(text).toMatch(/^HTTP\/1\.1 502 /);
});

test('a client that never reads holds the other side back', async () => {
  kubelet = await startKubelet();
  kubelet.foreign.onUpgrade = ({ socket }) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  };
  const socket = await kubelet.connect();
  const arriving = kubelet.foreign.arrival();
  socket.write(upgradeText(EXEC));
  const { socket: remote } = await arriving;
  await readHead(socket);
  socket.pause();
  const before = process.memoryUsage().rss;
  const chunk = Buffer.alloc(1024 * 1024);
  let written = 0;
  const room = async (): Promise<boolean> =>
    Promise.race([once(remote, 'drain').then(() => true), kubelet.ask('/healthz').then(() => false)]);
  // As long as there is room in the kernel's buffers; an answer to an unrelated request without a drain is the
  // sign that there is none, so three in a row are asked for.
  for (let full = 0; full < 3 && written < 512;) {
    if (remote.write(chunk)) written += 1;
    else full = (await room()) ? 0 : full + 1;
  }
  expect(written).toBeLessThan(64);
  expect(process.memoryUsage().rss - before).toBeLessThan(96 * 1024 * 1024);
  remote.destroy();
});

test('an abrupt end of one side ends the other', async () => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  const arriving = kubelet.foreign.arrival();
  socket.write(upgradeText(EXEC));
  const { socket: remote } = await arriving;
  await readHead(socket);
  const closed = once(remote, 'close');
  socket.destroy();
  await closed;
  expect(remote.destroyed).toBe(true);
});

test('a client that leaves while the other side is dialled aborts the call', async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const { promise: dialled, resolve: onDial } = Promise.withResolvers<void>();
  kubelet = await startKubelet({
    backend: {
      upgrade: async ({ signal }) => {
        onDial();
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            resolve();
            reject(signal.reason as Error);
          });
        });
      },
    },
  });
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC));
  await dialled;
  socket.destroy();
  await aborted;
  expect(kubelet.foreign.arrivals).toHaveLength(0);
});

test('a silent stream is cut after four hours, a talking one is not', async () => {
  const clock = new TestClock();
  kubelet = await startKubelet({ clock });
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC));
  await readHead(socket);
  clock.advance(STREAM_IDLE_MS - 1);
  const echo = readBytes(socket, 4);
  socket.write('ping');
  expect((await echo).toString()).toBe('ping');
  clock.advance(STREAM_IDLE_MS - 1);
  expect(socket.destroyed).toBe(false);
  const closed = once(socket, 'end');
  socket.resume();
  clock.advance(STREAM_IDLE_MS);
  await closed;
});

test('who is refused and keeps its side open is cut off', async () => {
  const clock = new TestClock();
  kubelet = await startKubelet({ clock });
  const socket = await kubelet.connect({ cert: '', key: '' });
  socket.on('error', () => undefined);
  socket.write(upgradeText(EXEC));
  expect((await readHead(socket)).head).toMatch(/^HTTP\/1\.1 401 /);
  socket.resume();
  clock.advance(4_999);
  expect(socket.destroyed).toBe(false);
  clock.advance(1);
  await eventually('a reset shows that nobody is there', () => {
    if (socket.writable) socket.write('still here');
    return socket.destroyed;
  });
});

test('beyond the limit there is a clear answer, and places come back', async () => {
  kubelet = await startKubelet({ maxStreams: 1 });
  const first = await kubelet.connect();
  first.write(upgradeText(EXEC));
  await readHead(first);
  const second = await kubelet.connect();
  second.write(upgradeText(EXEC));
  const text = (await readBytes(second)).toString();
  expect(text).toMatch(/^HTTP\/1\.1 429 /);
  expect(text).toContain('Retry-After: 1');
  expect(await kubelet.registry.metrics()).toContain('tributary_kubelet_open_streams{kind="upgraded"} 1');
  const [{ socket: remote } = { socket: first }] = kubelet.foreign.arrivals;
  const closed = once(remote, 'close');
  first.destroy();
  await closed;
  const third = await kubelet.connect();
  third.write(upgradeText(EXEC));
  expect((await readHead(third)).head).toMatch(/^HTTP\/1\.1 101 /);
});

test('of a thousand idle streams as many are open as there are places, the others are told, and all places come back', async () => {
  kubelet = await startKubelet();
  // Not all at once: beyond its places for arrivals the server drops whoever waits longest.
  const answers = await eachAtOnce(Array.from({ length: 1_000 }), 64, async () => {
    const socket = await kubelet.connect();
    socket.on('error', () => undefined);
    socket.write(upgradeText(EXEC));
    return { socket, status: (await readHead(socket)).head.slice(9, 12) };
  });
  const count = (wanted: string): number => answers.filter(({ status }) => status === wanted).length;
  expect([count('101'), count('429')]).toEqual([512, 488]);
  const gone = kubelet.foreign.arrivals.map(async ({ socket }) => once(socket, 'close'));
  for (const { socket } of answers) socket.destroy();
  await Promise.all(gone);
  const next = await kubelet.connect();
  next.write(upgradeText(EXEC));
  expect((await readHead(next)).head).toMatch(/^HTTP\/1\.1 101 /);
});

test('a WebSocket client talks through', async () => {
  kubelet = await startKubelet();
  const { WebSocketServer } = await import('ws');
  const behind = new WebSocketServer({ noServer: true, handleProtocols: () => 'v5.channel.k8s.io' });
  kubelet.foreign.server.removeAllListeners('upgrade');
  kubelet.foreign.server.on('upgrade', (request, socket, head) => {
    behind.handleUpgrade(request, socket, head, (peer) => {
      peer.on('message', (data, isBinary) => peer.send(data, { binary: isBinary }));
    });
  });
  const socket = new WebSocket(`wss://127.0.0.1:${kubelet.server.port ?? 0}${EXEC}`, ['v5.channel.k8s.io'], {
    ca: kubelet.authority.certificate,
    headers: { authorization: 'Bearer good' },
  });
  await once(socket, 'open');
  expect(socket.protocol).toBe('v5.channel.k8s.io');
  const message = once(socket, 'message');
  socket.send(Buffer.from([0, 104, 105]));
  expect((await message)[0]).toEqual(Buffer.from([0, 104, 105]));
  const closed = once(socket, 'close');
  socket.close(1000);
  expect((await closed)[0]).toBe(1000);
});

test.each([
  ['an unknown pod', '/exec/shop/other/main?output=1', 404, 'pod "other" does not exist'],
  ['an unknown container', '/exec/shop/web/side?output=1', 404, 'container "side" not found in pod "web"'],
  [
    'no stream',
    '/exec/shop/web/main?command=ls',
    400,
    'you must specify at least 1 of stdin, stdout, stderr',
  ],
  ['another UID', '/exec/shop/web/0000/main?output=1', 404, 'pod not found'],
  ['too few parts', '/exec/shop/web?output=1', 404, '404 page not found'],
  ['too many parts', '/portForward/shop/web/a/b', 404, '404 page not found'],
  ['dots', '/exec/shop/../main?output=1', 400, 'invalid pod name'],
  ['encoded slashes', '/exec/shop/web%2F..%2Fother/main?output=1', 400, 'invalid pod name'],
  ['encoded dots', '/attach/%2e%2e/web/main?output=1', 400, 'invalid namespace'],
  ['a query in a name', '/attach/shop/web/main%3Fcontainer=x?output=1', 400, 'invalid container name'],
  ['broken encoding', '/attach/shop/web/%zz?output=1', 400, 'invalid path'],
])('%s is refused before anything is dialled', async (_name, path, status, message) => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  socket.write(upgradeText(path));
  const text = (await readBytes(socket)).toString();
  expect(text.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(message);
  expect(kubelet.foreign.arrivals).toHaveLength(0);
});

const NO_BODY: Located = { kind: 'no body', uid: UID, pod: { metadata: { name: 'web', uid: UID } } as Pod };
const UNKNOWN: Located = { kind: 'unknown', uid: UID, why: 'nothing answers' };

test.each<[string, Located, string, RegExp]>([
  [
    'without a body',
    NO_BODY,
    '/exec/shop/web/main?output=1',
    /^HTTP\/1\.1 500 .*container not found \("main"\)$/s,
  ],
  [
    'of which nothing is known',
    UNKNOWN,
    '/portForward/shop/web',
    /^HTTP\/1\.1 502 .*"web".*: nothing answers$/s,
  ],
])('a stream to a pod %s is refused, and nothing is dialled', async (_which, located, path, answer) => {
  kubelet = await startKubelet({ backend: { locate: async () => located } });
  const socket = await kubelet.connect();
  socket.write(upgradeText(path));
  expect((await readBytes(socket)).toString()).toMatch(answer);
  expect(kubelet.foreign.arrivals).toHaveLength(0);
});

test.each([
  [
    `/exec/shop/web/${UID}/main?output=1&tty=1&error=1&command=ls&timeout=9`,
    '/exec?container=main&stdin=false&stdout=true&stderr=false&tty=true&command=ls',
  ],
  [
    `/attach/shop/web/main?input=1&command=ls&container=x`,
    '/attach?container=main&stdin=true&stdout=false&stderr=false&tty=false',
  ],
  [`/portForward/shop/web/${UID}?port=80&namespace=kube-system`, '/portforward'],
  ['/portForward/shop/web', '/portforward'],
])('%s becomes %s', async (path, suffix) => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  const arrival = kubelet.foreign.arrival();
  socket.write(get(upgradeText(path)));
  const { request } = await arrival;
  expect([request.method, request.url]).toEqual(['GET', REMOTE_PATH + suffix]);
});

test.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s opens no stream: nothing is dialled', async (method) => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC).replace(/^POST/, method));
  const text = (await readBytes(socket)).toString();
  expect(text.slice(0, 12)).toBe('HTTP/1.1 405');
  expect(text).toContain('\r\nAllow: GET, POST\r\n');
  expect(kubelet.foreign.arrivals).toHaveLength(0);
});

test('a command of 900 kB arrives; a head above 1 MiB is refused', async () => {
  kubelet = await startKubelet();
  const command = 'x'.repeat(900_000);
  const socket = await kubelet.connect();
  const arrival = kubelet.foreign.arrival();
  socket.write(upgradeText(`/exec/shop/web/main?command=${command}&output=1`));
  const { request } = await arrival;
  expect(new URL(request.url ?? '', 'http://foreign').searchParams.get('command')).toBe(command);
  const other = await kubelet.connect();
  other.write(upgradeText(`/exec/shop/web/main?command=${'x'.repeat(1_100_000)}&output=1`));
  expect((await readBytes(other)).toString().slice(0, 12)).toBe('HTTP/1.1 431');
});

test('streams end with the server', async () => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  socket.write(upgradeText(EXEC));
  await readHead(socket);
  const closed = once(socket, 'end');
  socket.resume();
  await kubelet.server.stop();
  await closed;
});
