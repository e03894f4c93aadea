import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import type { Fault } from '../../../faults/proxy/fault.ts';
import { killAtWrite } from '../../../faults/proxy/kill-at-write.ts';
import { awaited } from '../../support/eventually.ts';
import { type Client, Proxied } from './support/proxied.ts';

let bed: Proxied;
beforeEach(async () => {
  bed = await Proxied.start();
});
afterEach(async () => bed.stop());

const PODS = '/api/v1/namespaces/shop/pods';
const POD = `${PODS}/web`;
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/x/leases/y';

/** All requests have this fault. */
const all = (fault: Fault): void => bed.proxy.judge(() => fault);
const counted = (): object => Object.fromEntries(bed.proxy.counts);

/** A list of pods whose version grows with each request. */
function answerLists(): void {
  let version = 0;
  bed.answering = (_asked, answer) => {
    version++;
    answer.setHeader('content-type', 'application/json');
    answer.end(
      JSON.stringify({
        kind: 'PodList',
        metadata: { resourceVersion: String(version), continue: 'more' },
        items: [{ metadata: { name: `pod-${version}` } }],
      }),
    );
  };
}

describe.each(['http1', 'http2'] as const)('over %s', (protocol) => {
  const ask: Client = async (...given) => bed[protocol](...given);
  const write = async (path = PODS): ReturnType<Client> => ask(path, { method: 'POST', body: '{"a":1}' });

  test('without faults all of a request and of its answer passes', async () => {
    bed.answering = (asked, answer, body) => {
      answer.writeHead(201, { 'x-kind': String(asked.headers['content-length']) });
      answer.end(`got ${body}`);
    };
    const seen = await write(`${PODS}?dryRun=All`);
    expect(seen).toMatchObject({ status: 201, text: 'got {"a":1}', isBroken: false });
    expect(seen.headers).toMatchObject({ 'x-kind': '7' });
    expect(bed.asked).toEqual([`POST ${PODS}?dryRun=All {"a":1}`]);
    expect(counted()).toEqual({});
  });

  test('delay: it comes late, and comes', async () => {
    all({ kind: 'delay', ms: 20 });
    expect(await write()).toMatchObject({ status: 200, isBroken: false });
    expect(bed.asked).toHaveLength(1);
    expect(counted()).toEqual({ delay: 1 });
  });

  test.each([
    [{ code: 500 }, { message: 'injected', code: 500 }, undefined],
    [{ code: 429, retryAfter: 3 }, { reason: 'TooManyRequests', code: 429 }, '3'],
    [{ code: 410 }, { reason: 'Expired', code: 410 }, undefined],
    [{ code: 500, message: 'the disk is full' }, { message: 'the disk is full' }, undefined],
  ])('status %j: the server is not asked', async (given, body, retryAfter) => {
    all({ kind: 'status', ...given });
    const { status, headers, text, isBroken } = await write();
    expect([status, headers['retry-after'], isBroken]).toEqual([given.code, retryAfter, false]);
    expect(JSON.parse(text)).toMatchObject({ kind: 'Status', status: 'Failure', ...body });
    expect(bed.asked).toEqual([]);
    expect(counted()).toEqual({ [`status ${given.code}`]: 1 });
  });

  test.each([
    ['before', 0],
    ['after', 1],
  ] as const)('cut %s: no answer, and the server was asked %i times', async (when, times) => {
    all({ kind: 'cut', when });
    expect(await write()).toMatchObject({ status: undefined, isBroken: true });
    expect(bed.asked).toHaveLength(times);
    expect(counted()).toEqual({ cut: 1 });
  });

  test.each([
    ['before', 0],
    ['after', 1],
  ] as const)('kill %s: the client is killed when the server was asked %i times', async (when, times) => {
    let askedBefore: number | undefined;
    bed.proxy.onKill = () => (askedBefore = bed.asked.length);
    all({ kind: 'kill', when });
    expect(await write()).toMatchObject({ status: undefined, isBroken: true });
    expect([askedBefore, bed.asked.length]).toEqual([times, times]);
    expect(counted()).toEqual({ kill: 1 });
  });

  test('truncate: half of the answer comes, and then the connection breaks', async () => {
    bed.answering = (_asked, answer) => void answer.end('0123456789');
    all({ kind: 'truncate' });
    expect(await ask(POD)).toMatchObject({ status: 200, text: '01234', isBroken: true });
    expect(counted()).toEqual({ truncate: 1 });
  });

  test('truncate: of an answer without a body nothing comes', async () => {
    bed.answering = (_asked, answer) => void answer.end();
    all({ kind: 'truncate' });
    expect(await ask(POD)).toMatchObject({ text: '', isBroken: true });
  });

  test('duplicate: the server gets it twice, and the client the first answer', async () => {
    bed.answering = (_asked, answer) => void answer.end(`answer ${bed.asked.length}`);
    all({ kind: 'duplicate' });
    expect(await write()).toMatchObject({ text: 'answer 1', isBroken: false });
    expect(bed.asked).toEqual([`POST ${PODS} {"a":1}`, `POST ${PODS} {"a":1}`]);
    expect(counted()).toEqual({ duplicate: 1 });
  });

  test('silence: no answer, until the faults end', async () => {
    all({ kind: 'silence' });
    const seen = write();
    await awaited('it was asked', () => bed.proxy.counts.get('silence') === 1);
    bed.proxy.calm();
    expect(await seen).toMatchObject({ status: undefined, isBroken: true });
    expect(bed.asked).toEqual([]);
    expect(await write()).toMatchObject({ status: 200 });
  });

  test('cutAll: a request whose answer is outstanding breaks', async () => {
    bed.answering = () => undefined;
    const seen = ask(POD);
    await awaited('it was asked', () => bed.asked.length === 1);
    bed.proxy.cutAll();
    expect(await seen).toMatchObject({ status: undefined, isBroken: true });
    expect(counted()).toEqual({ cut: 1 });
  });

  test('a server that breaks off in an answer breaks the client off', async () => {
    bed.answering = (_asked, answer) => {
      answer.writeHead(200, { 'content-length': '100' });
      answer.write('half', () => answer.destroy());
    };
    expect(await ask(POD)).toMatchObject({ isBroken: true });
  });

  test('watches: events pass as they come, and a fault that begins and ends meanwhile', async () => {
    const lines = Promise.withResolvers<(line: string) => void>();
    bed.answering = (_asked, answer) => {
      answer.flushHeaders();
      lines.resolve((line) => void (line === 'END' ? answer.end() : answer.write(`${line}\n`)));
    };
    let now = '';
    const seen = ask(`${PODS}?watch=true`, { onText: (text) => (now = text) });
    const tell = await lines.promise;
    const comes = async (text: string): Promise<unknown> => awaited(text, () => now === text);
    tell('a');
    await comes('a\n');
    bed.proxy.disturbWatches({ kind: 'duplicate' });
    tell('b');
    await comes('a\nb\nb\n');
    bed.proxy.calm();
    tell('c');
    await comes('a\nb\nb\nc\n');
    tell('END');
    expect(await seen).toMatchObject({ status: 200, isBroken: false });
    expect(counted()).toEqual({ 'watch duplicate': 1 });
  });

  test('watches that are opened during a fault have it: half an event, and the connection breaks', async () => {
    bed.answering = (_asked, answer) => void answer.write('{"type":"ADDED"}\n');
    bed.proxy.disturbWatches({ kind: 'truncate' });
    expect(await ask(`${PODS}?watch=true`)).toMatchObject({
      status: 200,
      text: '{"type":',
      isBroken: true,
    });
  });
});

test('watches: what is said of answers leaves them alone, and is not counted', async () => {
  bed.answering = (_asked, answer) => void answer.end('a\nb\n');
  for (const kind of ['truncate', 'duplicate', 'stale', 'empty'] as const) {
    all({ kind });
    expect(await bed.http2(`${PODS}?watch=true`)).toMatchObject({ text: 'a\nb\n', isBroken: false });
  }
  expect([bed.asked.length, counted()]).toEqual([4, {}]);
});

test('watches: a refusal is no event', async () => {
  bed.answering = (_asked, answer) => void answer.writeHead(403).end('{"kind":"Status"}\n');
  bed.proxy.disturbWatches({ kind: 'duplicate' });
  expect(await bed.http2(`${PODS}?watch=true`)).toMatchObject({ status: 403, text: '{"kind":"Status"}\n' });
  expect(counted()).toEqual({});
});

test('watches: the server learns when the client has gone', async () => {
  const gone = Promise.withResolvers<void>();
  bed.answering = (_asked, answer) => {
    answer.on('close', () => gone.resolve());
    answer.write('a\n');
  };
  const seen = bed.http2(`${PODS}?watch=true`, { onText: () => bed.proxy.cutAll() });
  await gone.promise;
  expect(await seen).toMatchObject({ text: 'a\n', isBroken: true });
});

const nameIn = (text: string): string | undefined =>
  (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items[0]?.metadata.name;

test('stale: a list as it was, the oldest of four', async () => {
  answerLists();
  for (let n = 1; n <= 6; n++) await bed.http2(PODS);
  await bed.http2(`${PODS}?limit=1`);
  all({ kind: 'stale' });
  const { status, headers, text } = await bed.http2(PODS);
  expect([status, headers['content-type'], nameIn(text)]).toEqual([200, 'application/json', 'pod-3']);
  expect(nameIn((await bed.http2(PODS)).text)).toBe('pod-3');
  expect(counted()).toEqual({ stale: 2 });
});

test('stale: as it is and not counted, if none is older', async () => {
  answerLists();
  all({ kind: 'stale' });
  expect(nameIn((await bed.http2(PODS)).text)).toBe('pod-1');
  expect(counted()).toEqual({});
  // What has passed is older than what follows.
  expect(nameIn((await bed.http2(PODS)).text)).toBe('pod-1');
  expect(counted()).toEqual({ stale: 1 });
});

test('stale: a list that has not changed, and a further page of one, are not counted', async () => {
  bed.answering = (_asked, answer) => void answer.end('{"items":[]}');
  await bed.http2(PODS);
  all({ kind: 'stale' });
  await bed.http2(PODS);
  bed.proxy.calm();
  answerLists();
  await bed.http2(`${PODS}?limit=1&continue=x`);
  all({ kind: 'stale' });
  expect(nameIn((await bed.http2(`${PODS}?limit=1&continue=x`)).text)).toBe('pod-2');
  expect(counted()).toEqual({});
});

test('empty: the version of now, no items, and no further page', async () => {
  answerLists();
  all({ kind: 'empty' });
  expect(JSON.parse((await bed.http2(PODS)).text)).toEqual({
    kind: 'PodList',
    metadata: { resourceVersion: '1' },
    items: [],
  });
  expect(counted()).toEqual({ empty: 1 });
});

test('empty: neither an object nor a refusal has items', async () => {
  all({ kind: 'empty' });
  expect(await bed.http2(POD)).toMatchObject({ text: `GET ${POD}` });
  bed.answering = (_asked, answer) => void answer.writeHead(403).end('{"kind":"Status"}');
  expect(await bed.http2(PODS)).toMatchObject({ status: 403, text: '{"kind":"Status"}' });
  expect(counted()).toEqual({});
});

test('kill at a write: writes are counted, reads and heartbeats are not, and one kill is all', async () => {
  const restart = Promise.withResolvers<void>();
  let restarts = 0;
  const killed = killAtWrite(bed.proxy, { write: 2, when: 'before' }, async () => {
    restarts++;
    return restart.promise;
  });
  const write = async (path: string): ReturnType<Client> => bed.http2(path, { method: 'PUT', body: 'x' });
  expect(await write(POD)).toMatchObject({ status: 200 });
  expect(await bed.http2(POD)).toMatchObject({ status: 200 });
  expect(await write(LEASE)).toMatchObject({ status: 200 });
  expect(restarts).toBe(0);
  expect(await write(POD)).toMatchObject({ isBroken: true });
  expect(await write(POD)).toMatchObject({ status: 200 });
  restart.resolve();
  expect([await killed(), restarts]).toEqual([true, 1]);
});

test('kill at a write that is never made', async () => {
  const killed = killAtWrite(bed.proxy, { write: 2, when: 'after' }, async () => undefined);
  await bed.http2(POD, { method: 'PUT', body: 'x' });
  expect(await killed()).toBe(false);
});

test('kill at a write: whoever waits hears that the restart has failed', async () => {
  const killed = killAtWrite(bed.proxy, { write: 1, when: 'after' }, async () => {
    throw new Error('it does not start');
  });
  await bed.http2(POD, { method: 'PUT', body: 'x' });
  await expect(killed()).rejects.toThrow('it does not start');
});

test('an address that is not of this machine is an error of the start', async () => {
  const { FaultProxy } = await import('../../../faults/proxy/proxy.ts');
  const nowhere = new FaultProxy({
    server: 'https://127.0.0.1:1',
    ca: '',
    certificate: { cert: '', key: '' },
    address: '192.0.2.1',
  });
  await expect(nowhere.start()).rejects.toThrow('EADDRNOTAVAIL');
});
