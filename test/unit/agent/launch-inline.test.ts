import 'reflect-metadata';
import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { InlineLauncher } from '../../../src/agent/launch-inline.ts';
import { startPeer } from '../../../src/agent/peer.ts';
import { Registries } from '../../../src/server/registries.ts';
import { namespaces, nodes, secrets } from '../../../src/api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Node } from '../../../src/api/wire.ts';
import { parseConfig, type AgentConfig } from '../../../src/config.ts';
import { Caches } from '../../../src/kube/caches.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import type { WantedAgent } from '../../../src/peering/ports.ts';
import { Registry } from 'prom-client';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../../lab/free-ports.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';
import { fastClock } from '../../support/fast-clock.ts';

const ID = 'a'.repeat(26);
const SECRET = { namespace: 'tributary-system', name: `tributary-kubeconfig-${ID}` };

let home: FakeApiServer;
let foreign: FakeApiServer;
let client: HttpClient;
let folder: string;
const { signal } = new AbortController();
/** Deadlines of requests become shorter by it, too: a machine that is busy must keep them. */
const FASTER = 5;

const kubeconfigOf = (api: FakeApiServer): object => ({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'x',
  clusters: [
    {
      name: 'x',
      cluster: {
        server: api.credentials().server.href,
        'certificate-authority-data': Buffer.from(api.credentials().ca ?? '').toString('base64'),
      },
    },
  ],
  users: [{ name: 'x', user: { token: 't' } }],
  contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
});

function seedVirtualNode(name: string): void {
  home.seed(virtualNodes, {
    metadata: { name },
    spec: {
      kubeconfigSecretRef: SECRET,
      resources: { cpu: '1', memory: '1Gi', pods: '10' },
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }],
    } satisfies VirtualNode['spec'],
  });
}

beforeEach(async () => {
  const clock = fastClock(FASTER);
  home = await new FakeApiServer({ clock, types: [virtualNodes] }).start();
  foreign = await new FakeApiServer({ clock }).start();
  foreign.fault({
    match: ({ path }) => path === '/version',
    times: Infinity,
    body: '{"gitVersion":"v1.36.3"}',
  });
  home.seed(namespaces, { metadata: { name: 'shop' } });
  foreign.seed(namespaces, { metadata: { name: 'tenant' } });
  home.seed(secrets, {
    metadata: SECRET,
    data: { kubeconfig: Buffer.from(JSON.stringify(kubeconfigOf(foreign))).toString('base64') },
  });
  client = createClient(home.credentials());
  folder = mkdtempSync(join(tmpdir(), 'tributary-inline-'));
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfigOf(home)));
  writeFileSync(join(folder, 'ca.pem'), home.credentials().ca ?? '');
});

afterEach(async () => {
  await client.close();
  await Promise.all([home.stop(), foreign.stop()]);
  rmSync(folder, { recursive: true });
});

const config = (options: Record<string, string>): AgentConfig =>
  parseConfig({
    options: {
      kubeconfig: join(folder, 'kubeconfig'),
      'client-ca-file': join(folder, 'ca.pem'),
      'node-address': '127.0.0.1',
      'ops-port': '0',
      ...options,
    },
    env: {},
    hostname: 'test',
  });

const ready = (name: string): Promise<boolean> =>
  client.get(nodes, { name }).then(
    ({ status }: Node) =>
      status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true,
    () => false,
  );
const portOf = async (name: string): Promise<number> =>
  (await client.get(nodes, { name })).status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;

describe('agents inside a process', () => {
  const wanted = (...names: string[]): WantedAgent => ({
    clusterID: ID,
    virtualNodes: names.map((name) => ({ name, nodeName: name })),
    namespaces: ['shop'],
    kubeconfigSecret: SECRET,
  });
  let launcher: InlineLauncher;
  let registries: Registries;

  beforeEach(() => {
    registries = new Registries(new Registry());
    const parts = { config: config({}), clock: fastClock(FASTER), log: silentLogger };
    const caches = new Caches({ client, clock: parts.clock, log: parts.log });
    launcher = new InlineLauncher({
      parts,
      acting: client,
      own: { home: client, caches },
      registries,
      nodeAddress: '127.0.0.1',
    });
  });
  afterEach(async () => launcher.stop());

  test('each virtual node has its own kubelet API, and its Node says where', async () => {
    seedVirtualNode('milan');
    seedVirtualNode('paris');
    await launcher.ensure(wanted('milan', 'paris'), signal);
    await eventually('both are ready', async () => (await ready('milan')) && (await ready('paris')));
    const ports = [await portOf('milan'), await portOf('paris')];
    expect(ports[0]).toBeGreaterThan(0);
    expect(ports[1]).toBeGreaterThan(0);
    expect(ports[0]).not.toBe(ports[1]);
    expect(await registries.metrics()).toContain('virtual_node="paris"');
  });

  test('one that is no longer wanted goes, the other stays; what comes later is waited for', async () => {
    seedVirtualNode('milan');
    await launcher.ensure(wanted('milan', 'late'), signal);
    await eventually('milan is ready', async () => ready('milan'));
    const port = await portOf('milan');
    seedVirtualNode('late');
    await eventually('late is ready', async () => ready('late'));
    await launcher.ensure(wanted('milan'), signal);
    await eventually('late is not ready any more', async () => !(await ready('late')));
    expect(await ready('milan')).toBe(true);
    expect(await portOf('milan')).toBe(port);
    await launcher.remove('b'.repeat(26), signal);
    expect(await ready('milan')).toBe(true);
    await launcher.remove(ID, signal);
    expect(await ready('milan')).toBe(false);
    expect(await registries.metrics()).not.toContain('virtual_node=');
  });

  test('in a pod each acts under an account, which is there before and goes after it', async () => {
    const told: string[] = [];
    const tell = (what: string) => async (): Promise<void> => void told.push(what);
    const clock = fastClock(FASTER);
    const other = createClient(home.credentials());
    other.close = (
      (close) => async () =>
        close().then(tell('closed'))
    )(other.close.bind(other));
    launcher = new InlineLauncher({
      parts: { config: config({}), clock, log: silentLogger },
      acting: client,
      own: { home: client, caches: new Caches({ client, clock, log: silentLogger }) },
      accounts: {
        launched: { ensure: tell('ensured'), remove: tell('removed') },
        open: ({ namespace, name }) => {
          told.push(`${namespace}/${name}`);
          return { home: other, caches: new Caches({ client: other, clock, log: silentLogger }) };
        },
      },
      registries,
      nodeAddress: '127.0.0.1',
    });
    seedVirtualNode('milan');
    await launcher.ensure(wanted('milan'), signal);
    await launcher.ensure(wanted('milan'), signal);
    await eventually('it is ready', async () => ready('milan'));
    await launcher.remove(ID, signal);
    expect(await ready('milan')).toBe(false);
    expect(told).toEqual([
      'ensured',
      `tributary-agents/tributary-peer-${ID}`,
      'ensured',
      'closed',
      'removed',
    ]);
  });

  test('one that waits for its VirtualNode is removed at once', async () => {
    const looks = (name: string): number => home.count(new RegExp(`virtualnodes/${name}`));
    await launcher.ensure({ ...wanted('other'), clusterID: 'b'.repeat(26) }, signal);
    await launcher.ensure(wanted('never'), signal);
    await eventually('both have looked', () => looks('never') > 0 && looks('other') > 0);
    await launcher.remove(ID, signal);
    const [asked, other] = [looks('never'), looks('other')];
    await eventually('the one that stays has looked three times more', () => looks('other') >= other + 3);
    expect(looks('never')).toBe(asked);
  });
});

describe('the peer role', () => {
  const get = async (port: number, path: string): Promise<{ status: number; body: string }> => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
    request({ host: '127.0.0.1', port, path }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body }));
    })
      .once('error', reject)
      .end();
    return promise;
  };

  /** The first of two that follow each other. */
  const twoPorts = async (): Promise<number> => {
    const ports = new Set(await freePorts(12));
    const first = [...ports].find((port) => ports.has(port + 1));
    if (first === undefined) throw new Error('no two free ports follow each other');
    return first;
  };

  test('serves several virtual nodes on ports that follow each other, and is ready when all are', async () => {
    const [ops = 0] = await freePorts(1);
    const kubelet = await twoPorts();
    seedVirtualNode('milan');
    const parts = {
      config: config({
        'virtual-node': 'milan,paris',
        'ops-port': String(ops),
        'kubelet-port': String(kubelet),
      }),
      clock: fastClock(FASTER),
      log: silentLogger,
    };
    const starting = startPeer(parts, signal);
    await eventually('milan is ready', async () => ready('milan'));
    expect(await get(ops, '/readyz')).toMatchObject({ status: 503, body: expect.stringContaining('paris') });
    seedVirtualNode('paris');
    const agent = await starting;
    try {
      await eventually('paris is ready', async () => ready('paris'));
      expect([await portOf('milan'), await portOf('paris')]).toEqual([kubelet, kubelet + 1]);
      expect(await get(ops, '/readyz')).toMatchObject({ status: 200 });
      const metrics = await get(ops, '/metrics');
      expect(metrics.body).toMatch(
        /tributary_reconciles_total\{controller="node",outcome="[a-z]+",virtual_node="milan"\}/,
      );
    } finally {
      await agent.stop();
    }
    expect(await ready('milan')).toBe(false);
    expect(await ready('paris')).toBe(false);
  });

  test('with one virtual node its metrics bear no other label than before', async () => {
    const [ops = 0, kubelet = 0] = await freePorts(2);
    seedVirtualNode('milan');
    const parts = {
      config: config({ 'virtual-node': 'milan', 'ops-port': String(ops), 'kubelet-port': String(kubelet) }),
      clock: fastClock(FASTER),
      log: silentLogger,
    };
    const agent = await startPeer(parts, signal);
    try {
      await eventually('milan is ready', async () => ready('milan'));
      expect(await portOf('milan')).toBe(kubelet);
      const { body } = await get(ops, '/metrics');
      expect(body).toContain('tributary_queue_depth{controller="node"}');
      expect(body).not.toContain('virtual_node=');
    } finally {
      await agent.stop();
    }
  });

  test.each([
    ['', 'name the VirtualNode'],
    [',', 'name the VirtualNode'],
    ['a,b,a', 'names one twice'],
  ])('refuses --virtual-node "%s"', async (names, message) => {
    const parts = { config: config({ 'virtual-node': names }), clock: fastClock(FASTER), log: silentLogger };
    await expect(startPeer(parts, signal)).rejects.toThrow(message);
  });
});
