import 'reflect-metadata';
import { createServer, type Server } from 'node:https';
import { networkInterfaces } from 'node:os';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { ourPlaces } from '../../src/agent/our-places.ts';
import { advertisements } from '../../src/api/advertisement.ts';
import { LABEL_PROVIDER } from '../../src/api/names.ts';
import { namespaces, nodes, secrets, services } from '../../src/api/resources.ts';
import { Caches } from '../../src/kube/caches.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { errorMessage, hasCode } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/log.ts';
import {
  BORROWING_CLUSTER_RIGHTS,
  BORROWING_EVENT_RIGHTS,
  BORROWING_LEASE_RIGHTS,
  BORROWING_SYSTEM_RIGHTS,
} from '../../src/peering/borrowing/rights.ts';
import type { BorrowingOptions } from '../../src/peering/borrowing/borrowing.ts';
import { type Access, forgeSecret, readSecret, secretName } from '../../src/peering/borrowing/secret.ts';
import type { ApiAccess } from '../../src/peering/protocol/documents.ts';
import { ForeignCluster } from '../../src/provider/foreign.ts';
import { listen, portOf } from '../../src/server/listening.ts';
import { selfSigned } from '../support/certificate.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { rightsAccount, SYSTEM } from '../support/labs/rights-account.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';
import { ConnectProxy } from '../support/network/connect-proxy.ts';
import { BorrowingWorld } from '../support/peering/borrowing-world.ts';
import { Relay } from '../support/peering/relay.ts';

/**
 * A hostile provider says where its API server is: on a real API server, which is the one that it would like our agent to come to.
 * Agents are those of the program, as far as they connect.
 */

const NAME = 'milan.example';
const IN_CERTIFICATE = 'kubernetes.default.svc';
/** Where the provider's own servers are. */
const THEIRS = '127.0.0.2';
/** Of this machine, so that there can be a server: it plays one of our nodes. Loopback would mean the machine itself. */
const NODE_ADDRESS = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

let lab: RightsCluster;
let admin: KubeClient;
let connect: () => KubeClient;
let ourCa: string;
let real: { host: string; port: number };
/** Where that name leads now. */
let leadsTo: string[] = [THEIRS];
let places: ReturnType<typeof ourPlaces>;
let world: BorrowingWorld | undefined;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ admin, connect } = await rightsAccount(lab, [
    [BORROWING_CLUSTER_RIGHTS],
    [BORROWING_SYSTEM_RIGHTS, SYSTEM],
    [BORROWING_LEASE_RIGHTS, 'kube-node-lease'],
    [BORROWING_EVENT_RIGHTS, 'default'],
  ]));
  ourCa = lab.cluster.pki.authority.cert;
  const server = new URL(lab.cluster.server);
  real = { host: server.hostname, port: Number(server.port) };
  const basics = { client: admin, clock: systemClock, log: silentLogger };
  await admin.create(nodes, { metadata: { name: 'ours' } });
  const status = { addresses: [{ type: 'ExternalIP', address: NODE_ADDRESS }] };
  await admin.patch(nodes, { name: 'ours' }, { type: 'merge', body: { status } }, { subresource: 'status' });
  const caches = new Caches(basics);
  places = ourPlaces({ ...basics, caches, credentials: { server, ca: ourCa }, env: {} });
  for (const component of places.components) await component.start?.(new AbortController().signal);
});

afterEach(async () => {
  const ended = world;
  world = undefined;
  ended?.want(false);
  if (ended !== undefined)
    await eventually('the peering is over', async () =>
      isGone(admin.get(advertisements, { name: ended.id })),
    );
  await ended?.stop();
  for (const close of closing.splice(0)) await close();
  leadsTo = [THEIRS];
});

afterAll(async () => {
  for (const component of places?.components ?? []) await component.stop?.();
  await admin?.delete(nodes, { name: 'ours' });
  await admin?.close();
  await lab?.down();
});

const isGone = async (read: Promise<unknown>): Promise<boolean> =>
  read.then(
    () => false,
    (error: unknown) => hasCode(error, 'NotFound'),
  );

/** A consumer to which the provider says that. */
async function told(api: ApiAccess, more: Pick<BorrowingOptions, 'proxies'> = {}): Promise<string> {
  const resolve = async (host: string): Promise<string[]> => Promise.resolve(host === NAME ? leadsTo : []);
  const bounds = { ours: () => places.read(), allowLoopback: true, resolve, ...more };
  const made = (world = new BorrowingWorld(admin, connect(), undefined, bounds));
  made.provider.api = api;
  await made.start();
  made.want(true);
  return made.id;
}

const access = async (provider: string): Promise<Access> =>
  awaited('the way is known', async () => {
    const ref = { namespace: SYSTEM, name: secretName(provider) };
    const secret = await admin.get(secrets, ref).catch(() => undefined);
    return secret && readSecret(secret)?.access;
  });

/** What happens to an agent that reads this Secret: it asks for namespaces. */
async function agentWith(secret: { namespace: string; name: string }): Promise<string> {
  const agent = new ForeignCluster({
    home: admin,
    secretRef: secret,
    homeCa: ourCa,
    clock: systemClock,
    log: silentLogger,
  });
  await agent.start(new AbortController().signal);
  try {
    await agent.client.list(namespaces);
    return 'answered';
  } catch (error) {
    return errorMessage(error);
  } finally {
    await agent.stop();
  }
}

interface TheirApiServer {
  port: number;
  ca: string;
  tokens: (string | undefined)[];
  connections: () => number;
}

/** The provider's own API server; remembers the tokens that it got. */
async function theirApiServer(host: string = THEIRS): Promise<TheirApiServer> {
  const certificate = await selfSigned([NAME, host]);
  const tokens: (string | undefined)[] = [];
  const server: Server = createServer(certificate, (request, response) => {
    tokens.push(request.headers.authorization);
    const list = { kind: 'NamespaceList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [] };
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(list));
  });
  let connections = 0;
  server.on('connection', () => (connections += 1));
  await listen(server, host, 0);
  closing.push(async () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  });
  return { port: portOf(server) ?? 0, ca: certificate.cert, tokens, connections: () => connections };
}

async function relayToUs(): Promise<Relay> {
  const relay = await Relay.open(THEIRS, real);
  closing.push(async () => relay.close());
  return relay;
}

test('our places are those that the API server knows of itself, and our nodes', async () => {
  const { hosts, apiServers } = places.read();
  const service = (await admin.get(services, { namespace: 'default', name: 'kubernetes' })).spec?.clusterIP;
  expect(hosts).toEqual(expect.arrayContaining([service, NODE_ADDRESS]));
  expect(apiServers).toContain(`${real.host}:${real.port}`);
});

test('a name that led to the provider when it was checked, and leads to our API server afterwards', async () => {
  const theirs = await theirApiServer();
  const relay = await relayToUs();
  const provider = await told({ server: `https://${NAME}:${theirs.port}`, ca: theirs.ca });
  const found = await access(provider);
  // From now on it leads to us.
  leadsTo = [real.host];
  expect(found).toMatchObject({
    how: 'Direct',
    server: `https://${THEIRS}:${theirs.port}`,
    serverName: NAME,
  });
  expect(await agentWith({ namespace: SYSTEM, name: secretName(provider) })).toBe('answered');
  expect(theirs.tokens).toHaveLength(1);
  expect(relay.connections).toBe(0);
});

test('an API server that only a proxy reaches: the agent goes through it, with its user and password', async () => {
  const theirs = await theirApiServer('127.0.0.1');
  const proxy = await new ConnectProxy().start();
  closing.push(async () => proxy.stop());
  // Nobody is there from here.
  leadsTo = ['10.77.0.9'];
  const target = `10.77.0.9:${theirs.port}`;
  proxy.routes.set(target, theirs.port);
  const api = { server: `https://${NAME}:${theirs.port}`, ca: theirs.ca };
  const provider = await told(api, { proxies: proxy.settings('', 'me:secret') });
  expect(await access(provider)).toMatchObject({ how: 'Direct', server: `https://${target}` });
  expect(await agentWith({ namespace: SYSTEM, name: secretName(provider) })).toBe('answered');
  expect(theirs.tokens).toHaveLength(1);
  const authorization = `Basic ${Buffer.from('me:secret').toString('base64')}`;
  expect(new Set(proxy.asked.map((asked) => JSON.stringify(asked)))).toEqual(
    new Set([JSON.stringify({ target, authorization })]),
  );
});

test.each([
  ['our API server by its address', () => ({ server: `https://${real.host}:${real.port}` })],
  ['by a name that leads there', () => ({ server: `https://${NAME}:${real.port}` })],
])('%s is not dialled, whatever authority is named', async (_what, api) => {
  leadsTo = [real.host];
  const { cert } = await selfSigned();
  const provider = await told({ ...api(), ca: cert, serverName: IN_CERTIFICATE });
  // What is refused goes through the peering, to where the provider itself sends it.
  expect(await access(provider)).toMatchObject({ how: 'Link', server: 'https://127.0.0.1:4443' });
});

test('what listens on one of our nodes is not dialled, also if it is what the provider says', async () => {
  if (NODE_ADDRESS === undefined) throw new Error('this machine has loopback only');
  const onNode = await theirApiServer(NODE_ADDRESS);
  const provider = await told({ server: `https://${NODE_ADDRESS}:${onNode.port}`, ca: onNode.ca });
  expect(await access(provider)).toMatchObject({ how: 'Link' });
  expect(onNode.connections()).toBe(0);
});

test('somebody between us and our own API server who hands out our own authority gets nothing at all', async () => {
  const relay = await relayToUs();
  const api = { server: `https://${THEIRS}:${relay.port}`, ca: ourCa, serverName: IN_CERTIFICATE };
  const provider = await told(api);
  const message = await awaited('it is said', async () => {
    const found = await admin.get(advertisements, { name: provider }).catch(() => undefined);
    const status = found?.status;
    return status?.conditions
      ?.map((one) => one.message)
      .find((text) => text?.includes('of this very cluster'));
  });
  expect(message).toContain('the certificate authority of this very cluster');
  expect(await isGone(admin.get(secrets, { namespace: SYSTEM, name: secretName(provider) }))).toBe(true);
  expect(relay.connections).toBe(0);
});

test('an agent that is led home all the same, as through a stream of the peering, does not send its token', async () => {
  const relay = await relayToUs();
  const secret = forgeSecret('milan', SYSTEM, {
    access: {
      how: 'Link',
      server: `https://${THEIRS}:${relay.port}`,
      ca: ourCa,
      serverName: IN_CERTIFICATE,
    },
    credential: { token: 'nobody', issuedMs: Date.now(), expiresMs: Date.now() + 60_000 },
  });
  const ref = { namespace: SYSTEM, name: 'led-home' };
  await admin.create(secrets, {
    ...secret,
    metadata: { ...secret.metadata, ...ref, labels: { [LABEL_PROVIDER]: 'x' } },
  });
  closing.push(async () => admin.delete(secrets, ref));
  // A request would be answered: 401 to this token.
  expect(await agentWith(ref)).toContain('a certificate of the authority of this very cluster');
  expect(relay.connections).toBeGreaterThan(0);
});
