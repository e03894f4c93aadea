import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { adminToken, kubeconfigWith } from '../../faults/access.ts';
import type { Asked } from '../../faults/proxy/fault.ts';
import { type FaultProxy, proxyOf } from '../../faults/proxy/proxy.ts';
import type { KubeObject } from '../../lab/kube-api.ts';
import { agentLeaseName } from '../../src/api/agent-lease.ts';
import { LABEL_HOME_UID, LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { events, leases } from '../../src/api/resources.ts';
import type { Lease } from '../../src/api/wire.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { nameIn } from '../../src/lib/process-life.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';

/** Two agents of one virtual node, as real processes: one acts, whatever happens to either. */

type LeaseSpec = NonNullable<Lease['spec']>;

const TIMEOUT_MS = 180_000;
const LEASE_SECONDS = 4;
const REPLICAS = 6;
const LEASE = { namespace: 'kube-node-lease', name: agentLeaseName(NODE) };
let lab: AgentLab;
let folder: string;
/** Between each agent and home, with what it has written there. */
const ways = new Map<string, { proxy: FaultProxy; file: string; writes: string[] }>();
/** What any agent has written over there. */
const abroad: string[] = [];

/** Lets all pass, and notes writes, without what a process that only stands by says of itself. */
function noted(writes: string[], { method, path, resource, isWrite }: Asked): undefined {
  if (isWrite && resource !== 'events') writes.push(`${method} ${path}`);
}

beforeAll(async () => {
  lab = await AgentLab.up();
  lab.proxy.judge((asked) => noted(abroad, asked));
  folder = mkdtempSync(join(tmpdir(), 'tributary-two-'));
  for (const name of ['first', 'second']) await furnish(name);
}, TIMEOUT_MS);
afterAll(async () => {
  await lab?.down();
  await Promise.all([...ways.values()].map(async ({ proxy }) => proxy.stop()));
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

async function furnish(name: string): Promise<void> {
  const { homeCluster } = lab;
  const proxy = await proxyOf(homeCluster);
  const writes: string[] = [];
  proxy.judge((asked) => noted(writes, asked));
  const token = await adminToken(homeCluster, { namespace: 'shop', name: 'default' });
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(kubeconfigWith(homeCluster, proxy.url, token)));
  ways.set(name, { proxy, file, writes });
}

async function start(name: string): Promise<void> {
  const options = { 'lease-seconds': String(LEASE_SECONDS) };
  await lab.start({ name, kubeconfig: ways.get(name)?.file ?? '', options });
}

const lease = async (): Promise<LeaseSpec | undefined> =>
  (await lab.home.get(leases, LEASE).catch(ignoring('NotFound')))?.spec;
const holder = async (): Promise<string> => nameIn((await lease())?.holderIdentity ?? '');
const acts = async (name: string): Promise<void> =>
  eventually(`${name} acts`, async () => (await holder()) === name);
const written = (name: string): string[] => ways.get(name)?.writes ?? [];

const deployment = (image: string, replicas = REPLICAS): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    replicas,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
        tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image }],
      },
    },
  },
});

/** Bodies that were ever seen, by home pod. */
const seen = new Map<string, Set<string>>();

/** Each home pod runs the image and has one body, and there are no others. */
async function rolledOut(image: string, replicas = REPLICAS): Promise<void> {
  const look = async (): Promise<object> => {
    const [here, there] = [await lab.pods('home'), await lab.pods('foreign')];
    for (const { metadata } of there) {
      const owner = metadata.labels?.[LABEL_HOME_UID] ?? '';
      seen.set(owner, (seen.get(owner) ?? new Set()).add(metadata.uid));
    }
    const isReady = ({ status }: (typeof here)[number]): boolean =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
    const right = here.filter((pod) => isReady(pod) && pod.spec?.containers[0]?.image === image);
    return { here: here.length, there: there.length, right: right.length };
  };
  const wanted = JSON.stringify({ here: replicas, there: replicas, right: replicas });
  await awaited(`${image} is rolled out`, async () => JSON.stringify(await look()) === wanted, {
    seen: look,
  });
  expect([...seen.values()].filter((uids) => uids.size > 1)).toEqual([]);
}

test(
  'of two at once, one acts, and the other says for whom it stands by',
  async () => {
    await start('first');
    await acts('first');
    await start('second');
    await lab.ready();
    await lab.homeCluster.api.apply(deployment('web:1'));
    await rolledOut('web:1');
    await lab.homeCluster.api.apply(deployment('web:2'));
    await rolledOut('web:2');
    await eventually('the second says so', async () => {
      const { items } = await lab.home.list(events, { namespace: 'default' });
      const told = items.find(({ reason }) => reason === 'AgentStandsBy');
      return told?.message?.includes('the agent second does nothing while first acts') === true;
    });
    expect(written('second')).toEqual([]);
    expect(written('first').length).toBeGreaterThan(REPLICAS);
  },
  TIMEOUT_MS,
);

test(
  'killed: the other one takes over when the Lease has lapsed, and the killed one stands by when it is back',
  async () => {
    await lab.homeCluster.api.apply(deployment('web:3'));
    await lab.kill('first');
    const before = performance.now();
    await acts('second');
    console.info(`taken over after ${Math.round(performance.now() - before)} ms`);
    await rolledOut('web:3');
    const { length } = written('first');
    await start('first');
    await lab.homeCluster.api.apply(deployment('web:4'));
    await rolledOut('web:4');
    expect(written('first').slice(length)).toEqual([]);
  },
  TIMEOUT_MS,
);

test(
  'stopped for longer than its term: awake again, it writes nothing and ends',
  async () => {
    lab.signal('second', 'SIGSTOP');
    await acts('first');
    await lab.homeCluster.api.apply(deployment('web:5'));
    await rolledOut('web:5');
    // Whatever is written from here on is written by the one that wakes, and there is much to do.
    lab.signal('first', 'SIGSTOP');
    await lab.homeCluster.api.apply(deployment('web:6', REPLICAS + 3));
    const [here, there] = [written('second').length, abroad.length];
    lab.signal('second', 'SIGCONT');
    await lab.ended('second');
    expect(written('second').slice(here)).toEqual([]);
    expect(abroad.slice(there)).toEqual([]);
    lab.signal('first', 'SIGCONT');
    await rolledOut('web:6', REPLICAS + 3);
    expect(await holder()).toBe('first');
  },
  TIMEOUT_MS,
);

test(
  'killed and started again under its own name, it need not wait for its Lease; one that is asked to stop gives it up',
  async () => {
    const transitions = async (): Promise<number> => (await lease())?.leaseTransitions ?? 0;
    const before = await transitions();
    await lab.kill('first');
    const began = performance.now();
    await start('first');
    await eventually('it acts again', async () => (await transitions()) > before);
    console.info(`acts ${Math.round(performance.now() - began)} ms after its start`);
    await start('second');
    await eventually('the second stands by', () => lab.log.includes('second does nothing while first acts'));
    lab.signal('first', 'SIGTERM');
    await acts('second');
    await rolledOut('web:6', REPLICAS + 3);
  },
  TIMEOUT_MS,
);
