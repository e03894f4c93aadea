import 'reflect-metadata';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, expect, test } from '@jest/globals';
import { systemClock } from '../../../../src/lib/clock.ts';
import { isDialable } from '../../../../src/lib/never-dialled.ts';
import { Variable } from '../../../../src/lib/source.ts';
import { issueLeaf } from '../../../../src/peering/identity/certificate.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { Dialer } from '../../../../src/peering/link/dialer.ts';

let servers: Server[] = [];
afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
});

async function listening(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function refusal(endpoint: string): Promise<string> {
  const pair = await issueLeaf(Identity.generate(), { nowMs: Date.now(), lifeMs: 3_600_000 });
  const dialer = new Dialer({ certificate: new Variable(pair), clock: systemClock });
  const error: unknown = await dialer.secure(endpoint, new AbortController().signal).catch((e: unknown) => e);
  return (error as Error).message;
}

test('who speaks no TLS is told in words that are the same each time', async () => {
  const endpoint = await listening(createServer((socket) => void socket.end('SSH-2.0-x\r\n')));
  const said = await refusal(endpoint);
  expect(said).toBe(`${endpoint}: no TLS 1.3 with it (wrong version number); is it a peering endpoint?`);
  expect(await refusal(endpoint)).toBe(said);
});

test('who has another kind of certificate is no peering endpoint', async () => {
  const { certificate, key } = await issueLeaf(Identity.generate(), { nowMs: Date.now(), lifeMs: 3_600_000 });
  const [leaf = ''] = certificate.split(/(?<=-----END CERTIFICATE-----)/u);
  const endpoint = await listening(createTlsServer({ cert: leaf, key }));
  const said = await refusal(endpoint);
  expect(said).toMatch(/proves no identity: .*; is it a peering endpoint\?$/);
});

test('where no other cluster can be is not dialled, by its address or by its name, and it is said in the same words', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.end('SSH-2.0-x\r\n');
  });
  const address = await listening(server);
  const port = address.split(':')[1] ?? '';
  const dialer = new Dialer({ clock: systemClock, mayDial: (_endpoint, where) => isDialable(where) });
  for (const host of [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '169.254.169.254',
    '0.0.0.0',
    '[fe80::1%lo]',
    '[::ffff:127.0.0.1]',
  ]) {
    const endpoint = `${host}:${port}`;
    const secured = dialer.secure(endpoint, new AbortController().signal);
    await expect(secured).rejects.toThrow(`${endpoint}: no other cluster can be there, so it is not dialled`);
  }
  expect(connections).toBe(0);
  const chosen = new Dialer({ clock: systemClock, mayDial: (endpoint) => endpoint === address });
  const secured = chosen.secure(address, new AbortController().signal);
  await expect(secured).rejects.toThrow('no TLS 1.3 with it');
  expect(connections).toBe(1);
});

test.each([
  ['10.1.2.3', true],
  ['192.168.1.1', true],
  ['2001:db8::1', true],
  ['fd00::1', true],
  ['127.9.9.9', false],
  ['::1', false],
  ['::', false],
  ['0.1.2.3', false],
  ['169.254.169.254', false],
  ['fd00:ec2::254', false],
  ['100.100.100.200', false],
  ['168.63.129.16', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::ffff:10.0.0.1', false],
  ['::ffff:7f00:1', false],
  ['::7f00:1', false],
  ['fe80::1%eth0', false],
  ['ff02::1', false],
  ['localhost', false],
])('a peer may send us to %s: %s', (address, expected) => {
  expect(isDialable(address)).toBe(expected);
  expect(isDialable('127.0.0.1', { allowLoopback: true })).toBe(true);
  expect(isDialable('169.254.169.254', { allowLoopback: true })).toBe(false);
});
