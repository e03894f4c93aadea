import 'reflect-metadata';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, expect, test } from '@jest/globals';
import { systemClock } from '../../../../src/lib/clock.ts';
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
