import { once } from 'node:events';
import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import type { Admission } from '../../../../src/api/admission.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Variable, type KeyPair } from '../../../../src/lib/source.ts';
import { WebhookMetrics } from '../../../../src/server/webhook/metrics.ts';
import { WebhookServer } from '../../../../src/server/webhook/server.ts';
import { selfSigned } from '../../../support/certificate.ts';
import { eventually } from '../../../support/eventually.ts';

interface World {
  server: WebhookServer;
  registry: Registry;
  certificate: Variable<KeyPair>;
  asked: { pod: Pod; namespace: string }[];
  ca: string;
}

const PATCH: Admission = { patch: [{ op: 'add', path: '/spec/tolerations', value: [] }], warnings: ['mind'] };
let world: World;
let decide: () => Admission;

async function keyPair(): Promise<KeyPair> {
  const { cert, key } = await selfSigned();
  return { certificate: cert, key };
}

beforeEach(async () => {
  decide = () => PATCH;
  const registry = new Registry();
  const certificate = new Variable(await keyPair());
  const asked: World['asked'] = [];
  const server = new WebhookServer({
    host: '127.0.0.1',
    port: 0,
    certificate,
    hooks: [
      {
        path: '/mutate-pods',
        decide: ({ pod, namespace }) => {
          asked.push({ pod, namespace });
          return decide();
        },
      },
      { path: '/quota', decide: ({ about, isDryRun }) => ({ ...PATCH, refusal: `${about} ${isDryRun}` }) },
    ],
    clock: systemClock,
    log: silentLogger,
    metrics: new WebhookMetrics(registry),
    bodyLimits: { bytes: 4096, total: 6000 },
  });
  expect(server.problem()).toBeDefined();
  await server.start(new AbortController().signal);
  expect(server.problem()).toBeUndefined();
  world = { server, registry, certificate, asked, ca: certificate.current().certificate };
});
afterEach(async () => world.server.stop());

interface Asking {
  method?: string;
  path?: string;
  type?: string;
  agent?: Agent;
}

async function send(
  body: string,
  { method = 'POST', path = '/mutate-pods?timeout=2s', type = 'application/json', agent }: Asking = {},
): Promise<{ status: number; body: string; response: IncomingMessage }> {
  const sent = request({
    host: '127.0.0.1',
    port: world.server.port,
    method,
    path,
    ca: world.ca,
    headers: { 'content-type': type },
    ...(agent && { agent }),
  });
  sent.on('error', () => undefined);
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  response.setEncoding('utf8').on('error', () => undefined);
  for await (const chunk of response) text += chunk as string;
  return { status: response.statusCode ?? 0, body: text, response };
}

const review = (changes: object = {}, object: unknown = { metadata: { name: 'web' }, spec: {} }): object => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u-1',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    namespace: 'shop',
    operation: 'CREATE',
    object,
    ...changes,
  },
});
const ask = async (body: object): Promise<{ status: number; answer: Record<string, unknown> }> => {
  const { status, body: text } = await send(JSON.stringify(body));
  const answer = status === 200 ? (JSON.parse(text) as { response: Record<string, unknown> }).response : {};
  return { status, answer };
};
const counted = async (outcome: string): Promise<number> => {
  const text = await world.registry.getSingleMetricAsString('tributary_webhook_requests_total');
  return Number(new RegExp(`outcome="${outcome}"\\} (\\d+)`, 'u').exec(text)?.[1] ?? 0);
};

test('a pod that is made is answered with the patch of the decision', async () => {
  const { status, body } = await send(JSON.stringify(review()));
  expect(status).toBe(200);
  expect(JSON.parse(body)).toEqual({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid: 'u-1',
      allowed: true,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(PATCH.patch)).toString('base64'),
      warnings: ['mind'],
    },
  });
  expect(world.asked).toEqual([{ pod: { metadata: { name: 'web' }, spec: {} }, namespace: 'shop' }]);
  expect(await counted('patched')).toBe(1);
  expect(await world.registry.metrics()).toContain('tributary_webhook_request_duration_seconds_count 1');
});

test('nothing to do is an answer without a patch', async () => {
  decide = () => ({ patch: [], warnings: [] });
  expect((await ask(review())).answer).toEqual({ uid: 'u-1', allowed: true });
  expect(await counted('unchanged')).toBe(1);
});

test('after an error of the decision no pod is let in: failurePolicy decides', async () => {
  decide = () => {
    throw new Error('a bug');
  };
  const { status, body } = await send(JSON.stringify(review()));
  expect(status).toBe(500);
  expect(body).not.toContain('a bug');
  expect(await counted('error')).toBe(1);
  decide = () => PATCH;
  expect((await ask(review())).status).toBe(200);
});

test('an answer that cannot be sent is an error, not a pod that is let in', async () => {
  // What JSON cannot say.
  decide = () => ({ patch: [{ op: 'add', path: '/spec/tolerations', value: 1n }], warnings: [] });
  expect((await send(JSON.stringify(review()))).status).toBe(500);
  expect(await counted('error')).toBe(1);
});

test.each([
  ['another kind', { kind: { group: 'apps', version: 'v1', kind: 'Deployment' } }],
  ['another operation', { operation: 'DELETE' }],
  ['a subresource', { subResource: 'binding' }],
  ['a kind that is none', { kind: 'Pod' }],
])('%s is let in without a look', async (_what, changes) => {
  expect((await ask(review(changes, null))).answer).toEqual({ uid: 'u-1', allowed: true });
  expect(world.asked).toEqual([]);
});

describe('refused:', () => {
  test.each<[string, string, Asking, number]>([
    ['GET', '', { method: 'GET' }, 405],
    ['PUT', '{}', { method: 'PUT' }, 405],
    ['another path', '{}', { path: '/' }, 404],
    ['a path that looks alike', '{}', { path: '/mutate-pods/..' }, 404],
    ['another type', '{}', { type: 'text/plain' }, 415],
    ['no type', '{}', { type: '' }, 415],
    ['nothing', '', {}, 400],
    ['garbage', '\u0000\u0001{', {}, 400],
    ['a list', '[]', {}, 400],
    ['null', 'null', {}, 400],
    ['depth', '['.repeat(4000), {}, 400],
    ['another version', JSON.stringify({ ...review(), apiVersion: 'admission.k8s.io/v1beta1' }), {}, 400],
    ['another kind', JSON.stringify({ ...review(), kind: 'Pod' }), {}, 400],
    ['no request', JSON.stringify({ ...review(), request: undefined }), {}, 400],
    ['no UID', JSON.stringify(review({ uid: undefined })), {}, 400],
    ['a UID that is none', JSON.stringify(review({ uid: { a: 1 } })), {}, 400],
    ['a long UID', JSON.stringify(review({ uid: 'x'.repeat(200) })), {}, 400],
    ['no object', JSON.stringify(review({}, null)), {}, 400],
    ['metadata that are none', JSON.stringify(review({}, { metadata: [], spec: {} })), {}, 400],
    [
      'labels that are none',
      JSON.stringify(review({}, { metadata: { labels: { a: {} } }, spec: {} })),
      {},
      400,
    ],
    [
      'tolerations that are none',
      JSON.stringify(review({}, { metadata: {}, spec: { tolerations: [null] } })),
      {},
      400,
    ],
    [
      'terms that are none',
      JSON.stringify(
        review(
          {},
          {
            metadata: {},
            spec: {
              affinity: {
                nodeAffinity: {
                  requiredDuringSchedulingIgnoredDuringExecution: {
                    nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', values: [1] }] }],
                  },
                },
              },
            },
          },
        ),
      ),
      {},
      400,
    ],
    [
      'what only prototypes have',
      '{"__proto__":{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}}',
      {},
      400,
    ],
    ['a long body', JSON.stringify(review({ padding: 'x'.repeat(5000) })), {}, 413],
  ])('%s', async (_what, body, asking, expected) => {
    expect((await send(body, asking)).status).toBe(expected);
    expect(world.asked).toEqual([]);
    expect(await counted('refused')).toBe(1);
    // Others are served as before.
    expect((await ask(review())).status).toBe(200);
  });

  test('a body without end, which says nothing of its length', async () => {
    const sent = request({
      host: '127.0.0.1',
      port: world.server.port,
      method: 'POST',
      path: '/mutate-pods',
      ca: world.ca,
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    });
    sent.on('error', () => undefined);
    const response = once(sent, 'response') as Promise<[IncomingMessage]>;
    sent.write('x'.repeat(3000));
    sent.write('x'.repeat(3000));
    const [answer] = await response;
    expect(answer.statusCode).toBe(413);
    sent.destroy();
    expect((await ask(review())).status).toBe(200);
  });

  test('more than there is room for, until it is read', async () => {
    const open = (): ReturnType<typeof request> => {
      const sent = request({
        host: '127.0.0.1',
        port: world.server.port,
        method: 'POST',
        path: '/mutate-pods',
        ca: world.ca,
        headers: { 'content-type': 'application/json', 'content-length': 4000 },
      });
      sent.on('error', () => undefined);
      sent.write('x'.repeat(3900));
      return sent;
    };
    const [first, second] = [open(), open()];
    const answers = [first, second].map(
      async (sent) => ((await once(sent, 'response')) as [IncomingMessage])[0].statusCode,
    );
    expect(await Promise.race(answers)).toBe(503);
    first.destroy();
    second.destroy();
    await Promise.allSettled(answers);
    await eventually('there is room again', async () => (await ask(review())).status === 200);
  });
});

test('keys of prototypes are data like any other', async () => {
  const text = JSON.stringify(review()).replace('"spec":{}', '"spec":{"__proto__":{"nodeName":"evil"}}');
  expect((await send(text)).status).toBe(200);
  expect(({} as { nodeName?: string }).nodeName).toBeUndefined();
});

test('no TLS before 1.2', async () => {
  const socket = connect({
    host: '127.0.0.1',
    port: world.server.port ?? 0,
    ca: world.ca,
    maxVersion: 'TLSv1.1',
    minVersion: 'TLSv1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  });
  const [error] = (await once(socket, 'error')) as [Error];
  expect(error.message).toMatch(/version|alert|unsupported/iu);
  expect((await ask(review())).status).toBe(200);
});

test('a new certificate is served to new connections, and those there are go on', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: world.ca });
  expect((await send(JSON.stringify(review()), { agent })).status).toBe(200);
  const next = await keyPair();
  world.certificate.set(next);
  expect((await send(JSON.stringify(review()), { agent })).status).toBe(200);
  const old = connect({ host: '127.0.0.1', port: world.server.port ?? 0, ca: world.ca });
  await once(old, 'error');
  world.ca = next.certificate;
  expect((await ask(review())).status).toBe(200);
  agent.destroy();
});

test('a certificate that cannot be used leaves the old one in place', async () => {
  world.certificate.set({ certificate: 'none', key: 'none' });
  expect((await ask(review())).status).toBe(200);
});

test('each path has its own answer, and a refusal is that of a quota', async () => {
  const resize = { operation: 'UPDATE', subResource: 'resize', dryRun: true };
  const { status, body } = await send(JSON.stringify(review(resize)), { path: '/quota?timeout=3s' });
  expect(status).toBe(200);
  const refusal = { code: 403, reason: 'Forbidden', message: 'Resize true' };
  expect(JSON.parse(body)).toMatchObject({ response: { uid: 'u-1', allowed: false, status: refusal } });
  expect(JSON.parse(body)).not.toHaveProperty('response.patch');
  expect(await counted('denied')).toBe(1);
  expect((await send('{}', { path: '/quota/else' })).status).toBe(404);
});

test.each<[string, object]>([
  ['requests', { containers: [{ resources: { requests: { cpu: [] } } }] }],
  ['overhead', { overhead: { cpu: {} } }],
  ['containers', { containers: 'many' }],
])('a pod whose %s have no sensible shape is nobody to decide about', async (_what, spec) => {
  const odd = review({}, { metadata: { name: 'web' }, spec });
  expect((await send(JSON.stringify(odd))).status).toBe(400);
});
