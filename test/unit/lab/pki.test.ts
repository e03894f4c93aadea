import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';

import { expect, test } from '@jest/globals';

import { ClusterPki } from '../../../lab/cluster-pki.ts';
import { renderKubeconfig } from '../../../lab/kubeconfig.ts';
import { Authority } from '../../../lab/pki.ts';

test('a client and a server of one authority accept each other', async () => {
  const authority = await Authority.create('test-ca');
  const serving = await authority.issue({ commonName: 'server', ips: ['127.0.0.1'] });
  const client = await authority.issue({ commonName: 'system:node:a', organizations: ['system:nodes', 'b'] });
  const server = createServer(
    { ...serving, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
    (incoming, response) => {
      response.end(JSON.stringify((incoming.socket as TLSSocket).getPeerCertificate().subject));
    },
  );
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const body = await new Promise<string>((resolve, reject) => {
    request({ host: '127.0.0.1', port, ca: authority.cert, ...client, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve(text));
    })
      .once('error', reject)
      .end();
  });
  server.close();
  expect(JSON.parse(body)).toEqual({ CN: 'system:node:a', O: ['system:nodes', 'b'] });
});

test('an authority can be loaded again, and another one is not it', async () => {
  const authority = await Authority.create('one');
  const loaded = await Authority.load(authority);
  const other = await Authority.create('one');
  const leaf = new X509Certificate((await loaded.issue({ commonName: 'x' })).cert);
  expect(leaf.verify(new X509Certificate(authority.cert).publicKey)).toBe(true);
  expect(leaf.verify(new X509Certificate(other.cert).publicKey)).toBe(false);
});

test('a certificate can have ended already', async () => {
  const authority = await Authority.create('one');
  const { validToDate } = new X509Certificate((await authority.issue({ commonName: 'x', days: -1 })).cert);
  expect(validToDate.getTime()).toBeLessThan(Date.now());
});

test('the keys of a cluster are files that only their owner reads', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pki-'));
  try {
    const pki = await ClusterPki.create(join(directory, 'pki'), 'home', {
      ips: ['172.30.0.11', '10.96.0.1'],
    });
    expect(statSync(pki.file('ca.key')).mode & 0o777).toBe(0o600);
    const again = await ClusterPki.load(pki.directory);
    expect(again.admin).toEqual(pki.admin);
    expect(again.authority.cert).toBe(pki.authority.cert);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a kubeconfig carries everything inside', () => {
  const config = JSON.parse(
    renderKubeconfig({
      name: 'home',
      server: 'https://172.30.0.11:6443',
      caCert: 'CA',
      client: { cert: 'C', key: 'K' },
    }),
  );
  expect(config).toMatchObject({
    'current-context': 'home',
    clusters: [
      { name: 'home', cluster: { server: 'https://172.30.0.11:6443', 'certificate-authority-data': 'Q0E=' } },
    ],
    users: [{ user: { 'client-certificate-data': 'Qw==', 'client-key-data': 'Sw==' } }],
  });
});
