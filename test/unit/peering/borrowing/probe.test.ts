import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../../../src/lib/clock.ts';
import { NO_PLACES } from '../../../../src/peering/borrowing/our-places.ts';
import { checkedAccess, pinned, probe, type ProbeOptions } from '../../../../src/peering/borrowing/probe.ts';
import { selfSigned } from '../../../support/certificate.ts';
import { ConnectProxy } from '../../../support/network/connect-proxy.ts';
import { FakeApiServer } from '../../../support/fake-api/fake-api-server.ts';

const servers: FakeApiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function serve(): Promise<{ server: string; ca: string; port: number }> {
  const server = await new FakeApiServer().start();
  servers.push(server);
  const { ca = '', server: url } = server.credentials();
  return { server: url.href, ca, port: server.port };
}

const options: ProbeOptions = { ours: NO_PLACES, allowLoopback: true, clock: systemClock };
const { signal } = new AbortController();

test('an API server that answers with the certificate that was promised', async () => {
  const { server, ca } = await serve();
  const plainly = server.replace(/\/$/u, '');
  await expect(probe({ server, ca }, options, signal)).resolves.toEqual({ server: plainly, ca });
  const api = { server, ca, serverName: 'localhost' };
  await expect(probe(api, options, signal)).resolves.toEqual({ ...api, server: plainly });
  await expect(probe({ server, ca, serverName: 'other' }, options, signal)).rejects.toMatchObject({
    code: 'Unreachable',
  });
  const { cert } = await selfSigned();
  await expect(probe({ server, ca: cert }, options, signal)).rejects.toMatchObject({ code: 'Unreachable' });
  await expect(probe({ server }, options, signal)).rejects.toMatchObject({ code: 'Unreachable' });
});

test('of several addresses the first that answers', async () => {
  const { ca, port } = await serve();
  const api = { server: `https://milan.example:${port}`, ca, serverName: 'localhost' };
  const resolve = async (): Promise<string[]> => Promise.resolve(['127.0.0.3', '127.0.0.1']);
  const found = await probe(api, { ...options, resolve }, signal);
  expect(found).toEqual({ ...api, server: `https://127.0.0.1:${port}` });
  const nowhere = async (): Promise<string[]> => Promise.resolve([]);
  await expect(probe(api, { ...options, resolve: nowhere }, signal)).rejects.toMatchObject({
    code: 'Unreachable',
  });
});

test('through a proxy, which is asked for the address that was checked', async () => {
  const { ca, port } = await serve();
  const proxy = await new ConnectProxy().start();
  proxy.routes.set('10.77.0.9:6443', port);
  const api = { server: 'https://milan.example:6443', ca, serverName: 'localhost' };
  const resolve = async (): Promise<string[]> => Promise.resolve(['10.77.0.9']);
  const found = await probe(api, { ...options, resolve, proxies: proxy.settings() }, signal);
  expect(found).toEqual({ ...api, server: 'https://10.77.0.9:6443' });
  expect(proxy.asked.map(({ target }) => target)).toEqual(['10.77.0.9:6443']);
  const toProxy = async (): Promise<string[]> => Promise.resolve(['127.0.0.1']);
  const led = { ...options, allowLoopback: false, resolve: toProxy, proxies: proxy.settings() };
  await expect(probe(api, led, signal)).rejects.toMatchObject({ code: 'Forbidden' });
  await proxy.stop();
});

test('one that never answers is given up after two seconds', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
  const { port } = silent.address() as AddressInfo;
  const fast = { ...systemClock, after: (ms: number, f: () => void) => systemClock.after(ms / 20, f) };
  const asked = probe({ server: `https://127.0.0.1:${port}` }, { ...options, clock: fast }, signal);
  await expect(asked).rejects.toThrow(/no answer within 2000 ms/u);
  silent.close();
});

describe('addresses that mean something else here than over there are not dialled', () => {
  test.each([
    'https://127.0.0.1:6443',
    'https://127.8.8.8:6443',
    'https://[::1]:6443',
    'https://[::ffff:127.0.0.1]:6443',
    'https://169.254.169.254',
    'https://[fe80::1]:6443',
    'https://0.0.0.0:6443',
    'https://[::]:6443',
    'https://224.0.0.1',
    'https://255.255.255.255',
    'https://0x7f000001:6443',
    'https://2130706433:6443',
  ])('%s', async (server) => {
    const asked = probe({ server }, { ...options, allowLoopback: false }, signal);
    await expect(asked).rejects.toMatchObject({ code: 'Forbidden' });
  });

  test('nor a name that leads there, among others', async () => {
    const resolve = async (): Promise<string[]> => Promise.resolve(['192.0.2.7', '127.0.0.1']);
    const asked = probe(
      { server: 'https://milan.example' },
      { ...options, allowLoopback: false, resolve },
      signal,
    );
    await expect(asked).rejects.toMatchObject({ code: 'Forbidden' });
  });

  test.each([
    ['kubernetes.default.svc:443', 'https://milan.example'],
    ['kubernetes.default.svc', 'https://10.96.0.1'],
    ['10.96.0.1', 'https://milan.example:443'],
    ['10.96.0.1:6443', 'https://milan.example:6443'],
    ['10.96.0.1', 'https://[::ffff:10.96.0.1]'],
    ['[fd00::1]', 'https://[fd00:0::1]'],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443'],
  ])('nor our own API server %s as %s', async (own, server) => {
    const resolve = async (): Promise<string[]> => Promise.resolve(['10.96.0.1']);
    const asked = probe({ server }, { ...options, ours: { hosts: [], apiServers: [own] }, resolve }, signal);
    await expect(asked).rejects.toMatchObject({ code: 'Forbidden' });
  });
});

describe('our own places', () => {
  const ours = {
    hosts: ['10.96.0.1', '192.0.2.10', '2001:db8::a', 'node-a'],
    apiServers: ['192.0.2.20:6443'],
  };

  test.each([
    ['the Service of our API server', 'https://10.96.0.1'],
    ['it at another port', 'https://10.96.0.1:8443'],
    ['a node', 'https://192.0.2.10:10250'],
    ['a node by IPv6', 'https://[2001:0db8::000a]'],
    ['an API server that is no node', 'https://192.0.2.20:6443'],
    ['it at another port', 'https://192.0.2.20:443'],
  ])('%s is refused', async (_what, server) => {
    const asked = probe({ server }, { ...options, ours }, signal);
    await expect(asked).rejects.toMatchObject({ code: 'Forbidden' });
  });

  test('on loopback the port tells clusters apart', async () => {
    const { server, ca, port } = await serve();
    const at = (apiServer: string): ProbeOptions => ({
      ...options,
      ours: { hosts: ['127.0.0.1'], apiServers: [apiServer] },
    });
    await expect(probe({ server, ca }, at('127.0.0.1:1'), signal)).resolves.toBeDefined();
    await expect(probe({ server, ca }, at(`127.0.0.1:${port}`), signal)).rejects.toMatchObject({
      code: 'Forbidden',
    });
  });

  test('a server with a certificate of our authority is refused, whatever authority is named', async () => {
    const { server, ca } = await serve();
    const named = { server, ca };
    await expect(probe(named, { ...options, ours: { ...NO_PLACES, ca } }, signal)).rejects.toThrow(
      /certificate of the authority of this very cluster/u,
    );
    const { cert } = await selfSigned();
    await expect(
      probe(named, { ...options, ours: { ...NO_PLACES, ca: cert } }, signal),
    ).resolves.toBeDefined();
    expect(() => checkedAccess(named, ca)).toThrow(/the certificate authority of this very cluster/u);
    expect(() => checkedAccess({ server, ca: `${cert}${ca}` }, ca)).toThrow(/this very cluster/u);
    expect(checkedAccess(named, cert)).toMatchObject({ ca });
  });
});

test.each([
  [
    { server: 'https://milan.example' },
    '192.0.2.1',
    { server: 'https://192.0.2.1', serverName: 'milan.example' },
  ],
  [
    { server: 'https://milan.example:6443/a/' },
    '2001:db8::1',
    { server: 'https://[2001:db8::1]:6443/a', serverName: 'milan.example' },
  ],
  [
    { server: 'https://milan:1', serverName: 'api' },
    '192.0.2.1',
    { server: 'https://192.0.2.1:1', serverName: 'api' },
  ],
  [{ server: 'https://192.0.2.1:6443' }, '192.0.2.1', { server: 'https://192.0.2.1:6443' }],
])('%j at %s', (api, address, expected) => {
  expect(pinned(api, address)).toEqual(expected);
});

test.each([
  ['no URL', { server: 'milan' }],
  ['not https', { server: 'http://milan' }],
  ['a user in it', { server: 'https://me@milan' }],
  ['a query', { server: 'https://milan/?a=b' }],
  ['an authority that is none', { server: 'https://milan', ca: 'nonsense' }],
  [
    'an authority that only looks like one',
    { server: 'https://milan', ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
  ],
  ['a name that is none', { server: 'https://milan', serverName: 'a b' }],
])('%s: refused before anything is dialled', (_what, api) => {
  expect(() => checkedAccess(api)).toThrow(/^the provider/u);
});

test('what is sound is kept, and nothing else', async () => {
  const { cert: ca } = await selfSigned();
  const api = { server: 'https://milan:6443/', ca, serverName: 'api', more: 1 };
  expect(checkedAccess(api)).toEqual({ server: 'https://milan:6443', ca, serverName: 'api' });
});
