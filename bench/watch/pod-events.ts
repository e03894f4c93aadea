/** An API server that knows one answer: a watch of pods with so many events, as fast as they are taken. */
import { once } from 'node:events';
import { createSecureServer, type Http2SecureServer, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';

import { selfSigned } from '../../test/support/certificate.ts';

/** A pod of everyday size as an API server sends it. */
const POD_BYTES = 4_700;
const BATCH = 32;

export interface PodEvents {
  /** For both kinds of clients: HTTP/2 where it is asked for, else HTTP/1.1. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

export async function servePodEvents(events: number): Promise<PodEvents> {
  const { cert, key } = await selfSigned();
  const server = createSecureServer({ cert, key, allowHTTP1: true }, (_request, response) => {
    // The reader leaves when it has enough.
    send(response, events).catch(() => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { kubeconfig: kubeconfigOf(port, cert), stop: async () => close(server) };
}

async function send(response: Http2ServerResponse, events: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  for (let sent = 0; sent < events; sent += BATCH) {
    const lines = Array.from({ length: Math.min(BATCH, events - sent) }, (_, index) => event(sent + index));
    if (!response.write(lines.join(''))) await once(response, 'drain');
  }
  response.end();
}

/** Each has texts of its own, as real ones do. */
function event(number: number): string {
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: `web-${number}`,
      namespace: 'shop',
      uid: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
      resourceVersion: String(number + 2),
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { app: 'web', 'pod-template-hash': `hash-${number}` },
      annotations: {} as Record<string, string>,
    },
    spec: {
      nodeName: `node-${number % 10}`,
      containers: [
        {
          name: 'main',
          image: `registry.example.org/shop/web:1.${number % 100}`,
          args: ['--listen=:8080', '--log-format=json'],
          env: Array.from({ length: 10 }, (_none, at) => ({
            name: `VARIABLE_${at}`,
            value: `value-${number}-${at}`,
          })),
          ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
        },
      ],
    },
    status: { phase: 'Running', podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
  };
  const metadata = { ...pod.metadata, managedFields: managedFieldsOf(pod) };
  const missing = POD_BYTES - JSON.stringify({ ...pod, metadata }).length;
  metadata.annotations['example.org/note'] = `${number}`.padEnd(Math.max(1, missing - 25), 'n');
  return `${JSON.stringify({ type: 'MODIFIED', object: { ...pod, metadata } })}\n`;
}

/** Who has written which fields: a controller of replicas all but the status, and a kubelet that. */
function managedFieldsOf({
  spec,
  status,
  metadata: { labels },
}: Record<'spec' | 'status', object> & {
  metadata: { labels: object };
}): object[] {
  const common = {
    operation: 'Update',
    apiVersion: 'v1',
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
  };
  const written = { metadata: { labels }, spec };
  return [
    { manager: 'kube-controller-manager', ...common, fieldsV1: fieldsOf(written) },
    { manager: 'kubelet', ...common, fieldsV1: fieldsOf({ status }), subresource: 'status' },
  ];
}

/** FieldsV1: of lists, elements by their name or type. */
function fieldsOf(value: unknown): object {
  if (typeof value !== 'object' || value === null) return {};
  if (!Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [`f:${key}`, fieldsOf(field)]));
  }
  const named = (value as unknown[]).filter((element) => typeof element === 'object' && element !== null);
  return Object.fromEntries(
    named.map((element) => {
      const key = 'name' in element ? 'name' : 'type';
      const name = JSON.stringify({ [key]: (element as Record<string, unknown>)[key] });
      return [`k:${name}`, { '.': {}, ...fieldsOf(element) }];
    }),
  );
}

function kubeconfigOf(port: number, ca: string): string {
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    'certificate-authority-data': Buffer.from(ca).toString('base64'),
  };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user: { token: 'none' } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  });
}

async function close(server: Http2SecureServer): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await closed;
}
