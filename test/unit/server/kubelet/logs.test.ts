import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, expect, test } from '@jest/globals';

import { eventually } from '../../../support/eventually.ts';
import type { RawRequest, RawResponse } from '../../../../src/kube/client.ts';
import type { Located } from '../../../../src/server/kubelet/backend.ts';
import { whenAborted } from '../../../../src/lib/deadline.ts';
import { parseLogQuery } from '../../../../src/server/kubelet/logs.ts';
import { type Fixture, readBytes, readHead, REMOTE_PATH, startKubelet, UID } from '../support/kubelet.ts';

let kubelet: Fixture;
afterEach(async () => kubelet?.stop());

const PATH = '/containerLogs/shop/web/main';

async function withLog(
  answer: (request: RawRequest) => { status?: number; body: Readable },
): Promise<RawRequest[]> {
  const requests: RawRequest[] = [];
  const raw = async (request: RawRequest): Promise<RawResponse> => {
    requests.push(request);
    return { status: 200, headers: {}, ...answer(request) };
  };
  kubelet = await startKubelet({ backend: { raw } });
  return requests;
}

const withPod = async (located: Located): Promise<void> => {
  kubelet = await startKubelet({ backend: { locate: async () => located } });
};

test.each([
  ['', ''],
  ['follow=true&previous=true&timestamps=true', 'follow=true&previous=true&timestamps=true'],
  ['follow=1', 'follow=true'],
  ['follow', 'follow=true'],
  ['follow=False&timestamps=0', ''],
  ['tailLines=0', 'tailLines=0'],
  ['tail=5', 'tailLines=5'],
  ['tail=all&tailLines=3', ''],
  ['sinceSeconds=60&limitBytes=1', 'sinceSeconds=60&limitBytes=1'],
  ['sinceTime=2026-01-02T03:04:05Z', 'sinceTime=2026-01-02T03%3A04%3A05Z'],
  ['sinceTime=2026-01-02T03:04:05.5%2B02:00', 'sinceTime=2026-01-02T03%3A04%3A05.5%2B02%3A00'],
  ['stream=All&tailLines=1', 'tailLines=1'],
  ['stream=Stderr', 'stream=Stderr'],
  ['container=other&insecureSkipTLSVerifyBackend=true&pretty=1', ''],
  ['follow=true&follow=false', 'follow=true'],
  ['sinceTime=&tailLines=1', 'tailLines=1'],
  ['sinceTime=null', ''],
])('log options %j become %j', (given, expected) => {
  const parsed = parseLogQuery(new URLSearchParams(given));
  expect('query' in parsed ? parsed.query.toString() : parsed).toBe(expected);
});

test.each([
  ['tailLines=x', 400],
  ['tailLines=', 400],
  ['tailLines=1.5', 400],
  ['tailLines=9223372036854775808', 400],
  ['sinceTime=yesterday', 400],
  ['sinceTime=2026-13-02T03:04:05Z', 400],
  ['sinceTime=2026-01-02', 400],
  ['tailLines=-1', 422],
  ['limitBytes=0', 422],
  ['sinceSeconds=0', 422],
  ['sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z', 422],
  ['sinceSeconds=5&sinceTime=', 422],
  ['stream=Both', 422],
  ['stream=', 422],
  ['stream=Stdout&tailLines=5', 422],
])('log options %j are refused with %i', (given, status) => {
  const text = status === 400 ? '{"message": "Unable to decode query."}' : '{"message": "Invalid request."}';
  expect(parseLogQuery(new URLSearchParams(given))).toEqual({ status, text });
});

test('a log is read from the remote pod', async () => {
  const requests = await withLog(() => ({
    body: Readable.from([Buffer.from('one\n'), Buffer.from('two\n')]),
  }));
  const answer = await kubelet.ask(`${PATH}?tailLines=0&timestamps=true`);
  expect([answer.status, answer.text]).toEqual([200, 'one\ntwo\n']);
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    `GET ${REMOTE_PATH}/log?timestamps=true&tailLines=0&container=main`,
  ]);
});

test('of a pod that has none any more it is said why, and the remote pod is not asked', async () => {
  // Its `raw` fails whoever asks it.
  await withPod({ kind: 'body', path: REMOTE_PATH, uid: UID, keptLog: { gone: 'the logs are gone' } });
  const answer = await kubelet.ask(PATH);
  expect([answer.status, answer.text]).toEqual([404, 'the logs are gone']);
});

test.each([
  ['', 200, 'one\ntwo\n'],
  ['?follow=true&timestamps=true', 200, '2026-01-01T00:00:00Z one\n2026-01-01T00:00:01Z two\n'],
  ['?tailLines=1', 200, 'two\n'],
  ['?previous=true', 400, 'previous terminated container "main" in pod "web" not found'],
  ['?stream=Stdout', 400, expect.stringContaining('both streams together')],
  ['?tailLines=-1', 422, '{"message": "Invalid request."}'],
])('a log that was kept answers %j as the pod would', async (query, status, text) => {
  const bytes = Buffer.from('2026-01-01T00:00:00Z one\n2026-01-01T00:00:01Z two\n');
  await withPod({ kind: 'body', path: REMOTE_PATH, uid: UID, keptLog: { bytes } });
  const answer = await kubelet.ask(`${PATH}${query}`);
  expect([answer.status, answer.text]).toEqual([status, text]);
});

const WAITING: Located = {
  kind: 'no body',
  uid: UID,
  pod: {
    metadata: { name: 'web', namespace: 'shop', uid: UID, resourceVersion: '1', creationTimestamp: '' },
    status: {
      containerStatuses: [
        {
          name: 'main',
          image: 'web:1',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { waiting: { reason: 'ContainerCreating' } },
        },
      ],
    },
  },
};
const UNKNOWN: Located = { kind: 'unknown', uid: UID, why: 'nothing answers' };
const UNKNOWN_TEXT = 'what runs for pod "web" in the foreign cluster is not known: nothing answers';

test.each<[string, Located, number, string]>([
  [PATH, WAITING, 400, 'container "main" in pod "web" is waiting to start: ContainerCreating'],
  [`${PATH}?previous=true`, WAITING, 400, 'previous terminated container "main" in pod "web" not found'],
  ['/exec/shop/web/main?output=1', WAITING, 500, 'container not found ("main")'],
  ['/attach/shop/web/main?output=1', WAITING, 500, 'container main not found in pod web_shop'],
  ['/portForward/shop/web', WAITING, 500, 'pod not found ("web_shop")'],
  ['/exec/shop/web/another/main?output=1', WAITING, 404, 'pod not found'],
  [PATH, UNKNOWN, 502, UNKNOWN_TEXT],
  ['/exec/shop/web/main?output=1', UNKNOWN, 502, UNKNOWN_TEXT],
  ['/portForward/shop/web', UNKNOWN, 502, UNKNOWN_TEXT],
  ['/exec/shop/web/another/main?output=1', UNKNOWN, 404, 'pod not found'],
])(
  '%s, for a pod of which nothing runs or is known, is told apart (%#)',
  async (path, located, status, text) => {
    await withPod(located);
    const answer = await kubelet.ask(path);
    expect([answer.status, answer.text]).toEqual([status, text]);
  },
);

test('who leaves while the pod is looked for is not waited for, and has no place any more', async () => {
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<AbortSignal>();
  kubelet = await startKubelet({
    maxLogReads: 1,
    backend: {
      locate: async (_question, signal) => {
        onAsked(signal);
        await whenAborted(signal);
        return UNKNOWN;
      },
    },
  });
  const socket = await kubelet.connect();
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const signal = await asked;
  expect((await kubelet.ask(PATH)).status).toBe(429);
  socket.destroy();
  await whenAborted(signal);
  const free = 'tributary_kubelet_open_streams{kind="log"} 0';
  await eventually('the place is free', async () => (await kubelet.registry.metrics()).includes(free));
});

test('each piece of a followed log arrives when it is written; leaving ends the remote read', async () => {
  const body = new PassThrough();
  const requests = await withLog(() => ({ body }));
  const socket = await kubelet.connect();
  socket.write(`GET ${PATH}?follow=true HTTP/1.1\r\nHost: a\r\n\r\n`);
  expect((await readHead(socket)).head).toMatch(/^HTTP\/1\.1 200 /);
  for (const line of ['first\n', 'second\n']) {
    const piece = readBytes(socket, 1);
    body.write(line);
    expect((await piece).toString()).toContain(line);
  }
  expect(await kubelet.registry.metrics()).toContain('tributary_kubelet_open_streams{kind="log"} 1');
  const closed = once(body, 'close');
  socket.destroy();
  await closed;
  expect(requests[0]?.signal?.aborted).toBe(true);
});

test('lines that have come by themselves go on together', async () => {
  const body = new PassThrough();
  await withLog(() => ({ body }));
  const lines = Array.from({ length: 100 }, (_, index) => `line ${index}\n`);
  for (const line of lines) body.write(line);
  body.end();
  const socket = await kubelet.connect();
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const answer = (await readBytes(socket)).toString();
  const chunks = answer.match(/^[0-9a-f]+\r$/gmu) ?? [];
  expect(answer).toContain('line 99\n');
  expect(chunks.length).toBeLessThan(lines.length / 10);
});

test('a log that breaks off is not ended as if it were whole', async () => {
  const body = new PassThrough();
  await withLog(() => ({ body }));
  body.write('half');
  const socket = await kubelet.connect();
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await readHead(socket);
  const rest = readBytes(socket);
  body.destroy(new Error('connection reset'));
  expect((await rest).toString()).not.toContain('0\r\n\r\n');
});

test('a reader that stands still holds the remote back', async () => {
  let produced = 0;
  const chunk = Buffer.alloc(256 * 1024, 'x');
  const body = new Readable({
    read() {
      produced += chunk.length;
      this.push(chunk);
    },
  });
  await withLog(() => ({ body }));
  const socket = await kubelet.connect();
  socket.write(`GET ${PATH}?follow=true HTTP/1.1\r\nHost: a\r\n\r\n`);
  await readHead(socket);
  socket.pause();
  let seen = -1;
  while (produced !== seen) {
    seen = produced;
    for (let count = 0; count < 5; count += 1) await kubelet.ask('/healthz');
  }
  expect(produced).toBeLessThan(64 * 1024 * 1024);
  socket.destroy();
  await once(body, 'close');
});

test.each([
  [
    400,
    'container "main" in pod "web-remote" is waiting to start',
    400,
    'container "main" in pod "web" is waiting to start',
  ],
  [404, 'pods "web-remote" not found', 404, 'pods "web" not found'],
  [401, 'Unauthorized', 502, 'the foreign cluster does not accept the credentials of this node'],
  [302, 'look elsewhere', 502, 'look elsewhere'],
])('the remote status %i (%s) becomes %i', async (status, message, expected, text) => {
  const json = JSON.stringify({ kind: 'Status', code: status, message });
  await withLog(() => ({ status, body: Readable.from([Buffer.from(json)]) }));
  const answer = await kubelet.ask(PATH);
  expect([answer.status, answer.text]).toEqual([expected, text]);
});

test('an unreachable foreign cluster is said to be one', async () => {
  kubelet = await startKubelet({ backend: { raw: async () => Promise.reject(new Error('no route')) } });
  const answer = await kubelet.ask(PATH);
  expect(answer.status).toBe(502);
  expect(answer.text).toContain('no route');
});

test('too many reads at a time are refused', async () => {
  const body = new PassThrough();
  kubelet = await startKubelet({
    maxLogReads: 1,
    backend: { raw: async () => ({ status: 200, headers: {}, body }) },
  });
  const socket = await kubelet.connect();
  socket.write(`GET ${PATH}?follow=true HTTP/1.1\r\nHost: a\r\n\r\n`);
  await readHead(socket);
  expect((await kubelet.ask(PATH)).status).toBe(429);
});

test.each([
  ['/containerLogs/shop/other/main', 404, 'pod "other" does not exist'],
  ['/containerLogs/shop/web/side', 404, 'container "side" not found in pod "web"'],
  ['/containerLogs/shop/web/main?tailLines=-1', 422, '{"message": "Invalid request."}'],
  ['/containerLogs/shop/..%2f..%2fsecrets/main', 400, 'invalid pod name'],
  ['/containerLogs/shop/../main', 400, 'invalid pod name'],
  ['/containerLogs/%2e%2e/web/main', 400, 'invalid namespace'],
  ['/containerLogs/shop/web/main%20x', 400, 'invalid container name'],
  ['/containerLogs/shop/web/%zz', 400, 'invalid path'],
  ['/containerLogs/shop/web', 404, '404 page not found'],
  ['/exec/shop/web/main?output=1', 400, 'Upgrade request required'],
  ['/exec/shop/web/main/?output=1', 400, 'Upgrade request required'],
  ['/exec/shop/other/main?output=1', 404, 'pod "other" does not exist'],
  ['/exec/shop/web/side?output=1', 404, 'container "side" not found in pod "web"'],
  ['/exec/shop/other/main', 400, 'you must specify at least 1 of stdin, stdout, stderr'],
  [`/attach/shop/web/${UID}/main?output=1`, 400, 'Upgrade request required'],
  ['/attach/shop/web/another/main?output=1', 404, 'pod not found'],
  ['/portForward/shop/web', 400, 'Upgrade request required'],
  ['/portForward/shop/other', 404, 'pod "other" does not exist'],
  ['/run/shop/web/main', 404, '404 page not found'],
  ['/logs/', 404, '404 page not found'],
  ['/metrics', 404, '404 page not found'],
  ['/metrics/resource/', 404, '404 page not found'],
  ['/healthz/', 404, '404 page not found'],
  ['/stats', 404, '404 page not found'],
  ['/stats/summary/', 200, '{"node":{"nodeName":"milan"}}'],
  ['/healthz', 200, 'ok'],
  ['/healthz/ping', 200, 'ok'],
  ['/healthz/log', 200, 'ok'],
  ['/healthz/syncloop', 200, 'ok'],
  ['/healthz?verbose', 200, '[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n'],
  ['/metrics/probes', 200, ''],
  ['/metrics/cadvisor', 200, ''],
  ['/metrics/slis', 200, ''],
  ['/metrics/resource', 200, 'scrape_error 0\n'],
  ['/stats/summary', 200, '{"node":{"nodeName":"milan"}}'],
  ['/configz', 200, '{"kubeletconfig":{}}'],
  ['/runningpods/', 200, '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}'],
])('GET %s answers %i', async (path, status, text) => {
  kubelet = await startKubelet();
  const answer = await kubelet.ask(path);
  expect([answer.status, answer.text]).toEqual([status, text]);
});

test.each<[string, string[], number, string | undefined]>([
  ['/healthz', ['HEAD', 'POST', 'OPTIONS'], 200, undefined],
  ['/healthz/ping', ['HEAD', 'PUT'], 200, undefined],
  ['/healthz/syncloop', ['HEAD'], 200, undefined],
  ['/configz', ['HEAD', 'POST'], 200, undefined],
  ['/metrics/resource', ['HEAD', 'POST'], 200, undefined],
  ['/metrics/slis', ['HEAD', 'DELETE'], 200, undefined],
  ['/stats/summary', ['POST'], 200, undefined],
  ['/stats/summary', ['HEAD', 'PUT', 'DELETE', 'OPTIONS'], 405, 'GET, POST'],
  ['/pods', ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], 405, 'GET'],
  ['/runningpods/', ['HEAD', 'POST'], 405, 'GET'],
  [PATH, ['HEAD', 'POST', 'DELETE', 'OPTIONS'], 405, 'GET'],
  ['/containerLogs/shop/other/main', ['POST'], 405, 'GET'],
  ['/exec/shop/web/main?output=1', ['HEAD', 'PUT', 'DELETE', 'OPTIONS'], 405, 'GET, POST'],
  ['/portForward/shop/other', ['PATCH'], 405, 'GET, POST'],
  ['/run/shop/web/main', ['POST'], 404, undefined],
])('%s, asked by %j, answers %i', async (path, methods, status, allow) => {
  kubelet = await startKubelet();
  for (const method of methods) {
    const answer = await kubelet.ask(path, { method });
    const text = status === 405 && method !== 'HEAD' ? '405: Method Not Allowed' : answer.text;
    expect([method, answer.status, answer.headers.allow, answer.text]).toEqual([method, status, allow, text]);
    if (method === 'HEAD') expect(answer.text).toBe('');
  }
});

test('a single stream that the foreign cluster does not give is refused as by a kubelet', async () => {
  const message = 'PodLogOptions "web-remote" is invalid: stream: Forbidden: may not be specified';
  await withLog(() => ({
    status: 422,
    body: Readable.from([Buffer.from(JSON.stringify({ kind: 'Status', code: 422, message }))]),
  }));
  const answer = await kubelet.ask(`${PATH}?stream=Stdout`);
  expect([answer.status, answer.text]).toEqual([
    400,
    'unable to return the given log stream: "Stdout": the foreign cluster has not enabled PodLogsQuerySplitStreams',
  ]);
  expect((await kubelet.ask(PATH)).status).toBe(422);
});

test('what fails is said by its name, the reason only under the check itself', async () => {
  kubelet = await startKubelet({ backend: { healthz: () => ({ ok: false, message: 'no contact' }) } });
  const all = await kubelet.ask('/healthz');
  expect([all.status, all.text]).toEqual([
    500,
    '[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
  ]);
  expect((await kubelet.ask('/healthz/syncloop')).text).toBe('internal server error: no contact\n');
});

test('requests are counted by class, not by path', async () => {
  kubelet = await startKubelet();
  await kubelet.ask('/containerLogs/shop/other/main');
  await kubelet.ask('/nonsense/1');
  await kubelet.ask('/nonsense/2');
  const text = await kubelet.registry.metrics();
  expect(text).toContain('tributary_kubelet_requests_total{path="containerLogs",method="GET",code="404"} 1');
  expect(text).toContain('tributary_kubelet_requests_total{path="other",method="GET",code="404"} 2');
});
