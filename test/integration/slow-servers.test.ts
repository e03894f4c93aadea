import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { adminToken, kubeconfigWith } from '../../faults/access.ts';
import { type FaultProxy, proxyOf } from '../../faults/proxy/proxy.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { fillEtcd } from '../../lab/full-etcd.ts';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { events, leases, namespaces, nodes, pods, serviceAccounts } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { Node, Pod } from '../../src/api/wire.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { webDeployment } from '../support/labs/web.ts';
import { applyYaml, printed } from '../support/labs/rights-cluster.ts';
import { short } from '../support/long.ts';

/** A provider that is slow over one namespace, as with a webhook of its own, and etcds that are full. */

const SLOW = { homeNamespace: 'slow', tenantNamespace: 'tenant-slow' };
/** More than there are workers. */
const MANY = 80;
const DELAY_MS = 8_000;
/** Of the agent: a term is two thirds of it. */
const LEASE_SECONDS = 9;
/** How often something is tried while an etcd is full. */
const TRIES = 6;
/** An agent that spins says more within a second. */
const MOST_LINES = 20;
/** Kubernetes counts a node as lost 50 s after its last renewal. */
const FULL_MS = short('milliseconds for which the etcd of home is full', { short: 5_000, long: 60_000 });
const NOT_RENEWED = 'the lease cannot be renewed, and nothing is written until it can';

let lab: AgentLab;
/** Between the agent and home. */
let homeProxy: FaultProxy;
let folder: string;
beforeAll(async () => {
  lab = await AgentLab.up();
  const tenant = [
    '--peer',
    'rome',
    '--namespace',
    'tenant',
    '--namespace',
    SLOW.tenantNamespace,
    '--external-names',
  ];
  const quota = ['--quota', 'cpu=100,memory=100Gi,pods=200'];
  await applyYaml(lab.foreignCluster, await printed(tenantCommand, [...tenant, ...quota]));
  await lab.home.create(namespaces, { metadata: { name: SLOW.homeNamespace } });
  const account = { namespace: SLOW.homeNamespace, name: 'default' };
  await awaited('the account', async () =>
    lab.home.get(serviceAccounts, account).catch(ignoring('NotFound')),
  );
  const body = {
    spec: {
      resources: { pods: '200' },
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }, SLOW],
    },
  };
  await lab.home.patch(virtualNodes, { name: NODE }, { type: 'merge', body });
  homeProxy = await proxyOf(lab.homeCluster);
  folder = mkdtempSync(join(tmpdir(), 'tributary-slow-'));
  const kubeconfig = join(folder, 'home');
  const token = await adminToken(lab.homeCluster, account);
  writeFileSync(kubeconfig, JSON.stringify(kubeconfigWith(lab.homeCluster, homeProxy.url, token)));
  await lab.start({ kubeconfig, options: { 'lease-seconds': LEASE_SECONDS } });
  await lab.ready();
});
afterAll(async () => {
  await lab?.down();
  await homeProxy?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const run = async (namespace: string, name: string): Promise<unknown> =>
  lab.home.create(pods, {
    metadata: { namespace, name },
    spec: {
      nodeName: NODE,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'web:1' }],
    },
  });
const runs = async (namespace: string, name: string): Promise<boolean> =>
  (await lab.home.get(pods, { namespace, name })).status?.phase === 'Running';

test('a slow namespace holds up no other one, and its pods are made once', async () => {
  const { proxy } = lab;
  // As with a slow webhook, which is asked before anything is stored.
  proxy.judge(({ method, path }) =>
    method === 'POST' && path.includes(`/${SLOW.tenantNamespace}/pods`)
      ? { kind: 'delay', ms: DELAY_MS }
      : undefined,
  );
  await Promise.all(Array.from({ length: MANY }, async (_none, n) => run(SLOW.homeNamespace, `slow-${n}`)));
  await eventually('its pods are being made', () => (proxy.counts.get('delay') ?? 0) >= 40);
  const began = performance.now();
  await run('shop', 'quick');
  await eventually('the other one runs', async () => runs('shop', 'quick'));
  const tookMs = performance.now() - began;
  const { items: meanwhile } = await lab.foreign.list(pods, { namespace: SLOW.tenantNamespace });
  console.info(
    `ran after ${Math.round(tookMs)} ms, when ${meanwhile.length} of ${MANY} slow ones were there`,
  );
  // With all workers at the slow ones, it would have waited until these had been made.
  expect(meanwhile.length).toBeLessThan(MANY - 64);
  proxy.calm();
  await eventually('all run', async () => {
    const { items } = await lab.home.list(pods, { namespace: SLOW.homeNamespace });
    return items.filter(({ status }) => status?.phase === 'Running').length === MANY;
  });
  const { items } = await lab.foreign.list(pods, { namespace: SLOW.tenantNamespace });
  expect(new Set(items.map(({ metadata }) => metadata.labels?.[LABEL_HOME_UID])).size).toBe(items.length);
  expect(items.length).toBe(MANY);
});

const isReady = ({ status }: Pick<Pod | Node, 'status'>): boolean =>
  status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
/** Of the Deployment; the tests before have left others. */
const web = async (side: 'home' | 'foreign'): Promise<Pod[]> =>
  (await lab.pods(side)).filter(({ metadata }) => metadata.labels?.['app'] === 'web');
/** What would show that a pod was made anew or started again, on either side. */
async function lives(): Promise<string[]> {
  const all = [...(await web('home')), ...(await web('foreign'))];
  return all
    .filter(({ status }) => status?.phase === 'Running')
    .map(
      ({ metadata: { name, uid }, status }) =>
        `${name} ${uid} ${status?.containerStatuses?.[0]?.restartCount}`,
    )
    .toSorted();
}
const allReady = async (count: number): Promise<void> =>
  awaited(
    `${count} pods are Ready`,
    async () => {
      const all = await web('home');
      return all.length === count && all.every(isReady) && isReady(await lab.home.get(nodes, { name: NODE }));
    },
    { seen: async () => [(await web('home')).map(({ status }) => status), lab.log.slice(-2_000)] },
  ).then(() => undefined);
const replicas = async (count: number): Promise<void> =>
  lab.homeCluster.api.apply(webDeployment('web:1', count));

/** Lines of the log since `from`, without what differs from one to the next. */
const said = (from: number): string[] =>
  lab.log
    .slice(from)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .map(({ logger, message, key }) => [logger, message, key].join(' '));

/** What is written through it from now on: paths. */
function written(proxy: FaultProxy): string[] {
  const paths: string[] = [];
  proxy.judge(({ isWrite, path }) => void (isWrite && paths.push(path)));
  return paths;
}

async function leaseAgeMs(): Promise<number> {
  const { spec } = await lab.home.get(leases, { namespace: 'kube-node-lease', name: NODE });
  return Date.now() - Date.parse(spec?.renewTime ?? '');
}

/** Fills it, lets `meanwhile` look, makes room; the quota is as before in any case. */
async function whileFull(cluster: Cluster, meanwhile: () => Promise<void>): Promise<void> {
  const full = await fillEtcd(cluster);
  try {
    await meanwhile();
    await full.makeRoom();
  } finally {
    await full.end();
  }
}

test('an etcd that is full over there: the pod says so and waits, what runs is kept, and it goes on by itself', async () => {
  await replicas(3);
  await allReady(3);
  const before = await lives();
  await whileFull(lab.foreignCluster, async () => {
    const from = lab.log.length;
    const writes = written(lab.proxy);
    await replicas(4);
    await eventually('it says why it waits, as often as was asked for', async () => {
      const { items } = await lab.home.list(events, { namespace: 'shop' });
      const told = items.find(({ reason }) => reason === 'ForeignWriteFailed');
      return (told?.count ?? 0) >= TRIES && told?.message?.includes('database space exceeded') === true;
    });
    expect(await lives()).toEqual(before);
    expect(isReady(await lab.home.get(nodes, { name: NODE }))).toBe(true);
    // Each try is one request, and they come further and further apart.
    console.info(`over there full: ${writes.length} writes, the log says ${said(from).length} lines`);
    expect(writes.length).toBeLessThanOrEqual(2 * TRIES);
    expect(said(from).filter((line) => line.includes('reconcile failed'))).toHaveLength(1);
  });
  await allReady(4);
  expect(await lives()).toEqual(expect.arrayContaining(before));
});

test('an etcd that is full at home: it is said once, nothing is written over there, what runs is kept, and it goes on by itself', async () => {
  await replicas(3);
  await allReady(3);
  const before = await lives();
  await whileFull(lab.homeCluster, async () => {
    const from = lab.log.length;
    await eventually('the log says so', () => said(from).some((line) => line.includes(NOT_RENEWED)));
    const [here, there] = [written(homeProxy), written(lab.proxy)];
    const asked = (): number => here.filter((path) => path.includes('/leases/')).length;
    await eventually('the Lease has been tried again', () => asked() >= TRIES);
    await eventually('the Lease of the Node is old enough', async () => (await leaseAgeMs()) > FULL_MS);
    console.info(
      `home full: ${here.length} writes to home, ${there.length} over there; log: ${said(from).join(', ')}`,
    );
    expect(there).toEqual([]);
    // An event of the slow ones before may be tried again, for as long as the agent's term lasts.
    const isLater = (path: string): boolean => path === '/api/v1/namespaces/slow/events';
    expect(here.filter((path) => !path.includes('/leases/') && !isLater(path))).toEqual([]);
    expect(said(from).filter((line) => line.includes(NOT_RENEWED))).toHaveLength(1);
    // The rest is of the moment in which etcd was away.
    expect(said(from).length).toBeLessThanOrEqual(MOST_LINES);
    expect(await lives()).toEqual(before);
  });
  await allReady(3);
  expect(await lives()).toEqual(before);
  await replicas(4);
  await allReady(4);
  expect(await lives()).toEqual(expect.arrayContaining(before));
});
