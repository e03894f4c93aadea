import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import type { KubeObject } from '../../lab/kube-api.ts';
import { agentLeaseName } from '../../src/api/agent-lease.ts';
import { LABEL_HOME_UID, LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { CLUSTER_LEASE } from '../../src/api/manifest.ts';
import { events, leases, namespaces, pods, serviceAccounts } from '../../src/api/resources.ts';
import { API_VERSION, type NamespaceMapping, virtualNodes } from '../../src/api/virtual-node.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import type { Lease, Pod } from '../../src/api/wire.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { nameIn } from '../../src/lib/process-life.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { applyYaml, printed } from '../support/labs/rights-cluster.ts';
import { longOnly } from '../support/long.ts';
import { noted, NotedWays } from './support/noted-ways.ts';

/** Two agents of one virtual node, as real processes: one acts, whatever happens to either. */

type LeaseSpec = NonNullable<Lease['spec']>;

/** A process that was stopped needs some seconds to find out what has become of it, and more on a busy machine. */
const LEASE_SECONDS = 8;
/** Of role all, which ends when it cannot renew in time: at its start it is busy, and so is the machine. */
const LEADER_SECONDS = 30;
/** Without a write: a process has done what it was told. */
const QUIET_MS = 500;
const REPLICAS = 6;
/** Another virtual node, of the same foreign cluster. */
const OTHER = 'other';
/** What each of them serves. */
const PLACES: Readonly<Record<string, NamespaceMapping>> = {
  [NODE]: { homeNamespace: 'shop', tenantNamespace: 'tenant' },
  [OTHER]: { homeNamespace: 'shop-2', tenantNamespace: 'tenant-2' },
};

let lab: AgentLab;
/** Between each process and home. */
let ways: NotedWays;
/** What any agent has written over there. */
const abroad: string[] = [];

beforeAll(async () => {
  lab = await AgentLab.up();
  lab.proxy.judge((asked) => noted(abroad, asked));
  ways = await NotedWays.to(lab.homeCluster, ['first', 'second', 'third', 'fourth']);
});
afterAll(async () => {
  await lab?.down();
  await ways?.stop();
});

async function start(name: string, others: readonly string[] = []): Promise<void> {
  const options = { 'lease-seconds': LEASE_SECONDS };
  await lab.start({ name, kubeconfig: ways.of(name).file, options, others });
}

const lease = async (node = NODE): Promise<LeaseSpec | undefined> => {
  const ref = { namespace: 'kube-node-lease', name: agentLeaseName(node) };
  return (await lab.home.get(leases, ref).catch(ignoring('NotFound')))?.spec;
};
const holder = async (node = NODE): Promise<string> => nameIn((await lease(node))?.holderIdentity ?? '');
const acts = async (name: string, node = NODE): Promise<void> =>
  eventually(`${name} acts for ${node}`, async () => (await holder(node)) === name);
const written = (name: string): string[] => ways.of(name).writes;

const isLease = (write: string): boolean => write.includes('/leases/');

/**
 * Stops a process while it has nothing to write: what is on its way out at that moment arrives when it wakes, as from a process that
 * the network holds up.
 */
async function pause(name: string): Promise<void> {
  let [seen, since] = [-1, 0];
  await eventually(`${name} has nothing to write`, () => {
    const count = [...written(name), ...abroad].filter((write) => !isLease(write)).length;
    if (count !== seen) [seen, since] = [count, performance.now()];
    return performance.now() - since > QUIET_MS;
  });
  lab.signal(name, 'SIGSTOP');
}

/** The other virtual node, by the same credentials. */
async function furnishOther(): Promise<void> {
  const { homeNamespace, tenantNamespace } = placeOf(OTHER);
  const tenant = ['--peer', 'rome', '--namespace', 'tenant', '--namespace', tenantNamespace];
  const quota = ['--external-names', '--quota', 'cpu=100,memory=100Gi,pods=60'];
  await applyYaml(lab.foreignCluster, await printed(tenantCommand, [...tenant, ...quota]));
  await lab.home.create(namespaces, { metadata: { name: homeNamespace } });
  const account = { namespace: homeNamespace, name: 'default' };
  await awaited('the account', async () =>
    lab.home.get(serviceAccounts, account).catch(ignoring('NotFound')),
  );
  const { spec } = await lab.home.get(virtualNodes, { name: NODE });
  await lab.home.create(virtualNodes, {
    apiVersion: API_VERSION,
    kind: 'VirtualNode',
    metadata: { name: OTHER },
    spec: { ...spec, namespaces: [placeOf(OTHER)] },
  });
}

function placeOf(node: string): NamespaceMapping {
  const place = PLACES[node];
  if (place === undefined) throw new Error(`there is no virtual node ${node}`);
  return place;
}

const deployment = (image: string, replicas = REPLICAS, node = NODE): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: placeOf(node).homeNamespace },
  spec: {
    replicas,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        nodeSelector: { [LABEL_VIRTUAL_NODE]: node },
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
    const here: Pod[] = [];
    const there: Pod[] = [];
    for (const { homeNamespace, tenantNamespace } of Object.values(PLACES)) {
      here.push(...(await lab.home.list(pods, { namespace: homeNamespace })).items);
      there.push(...(await lab.foreign.list(pods, { namespace: tenantNamespace })).items);
    }
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

test('of two at once, one acts, and the other says for whom it stands by', async () => {
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
});

test('killed: the other one takes over when the Lease has lapsed, and the killed one stands by when it is back', async () => {
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
});

test('stopped for longer than its term: awake again, it writes nothing and ends', async () => {
  await pause('second');
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
});

test('killed and started again under its own name, it need not wait for its Lease; one that is asked to stop gives it up', async () => {
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
});

describe('processes that serve two virtual nodes each', () => {
  const NODES = [NODE, OTHER];
  const TAKEN = 'another agent has taken over';
  const apply = async (image: string): Promise<void> =>
    lab.homeCluster.api.apply(...NODES.map((node) => deployment(image, REPLICAS / 2, node)));
  const bothTold = (text: string): boolean =>
    NODES.every((node) => lab.log.includes(`${text} (Lease kube-node-lease/${agentLeaseName(node)})`));
  /** How often a process that goes on has lost a virtual node. */
  const losses = (): number => lab.log.split(TAKEN).length - 1;

  beforeAll(async () => {
    await lab.kill('first');
    await lab.kill('second');
    await furnishOther();
    await start('first', [OTHER]);
    for (const node of NODES) await acts('first', node);
    await start('second', [OTHER]);
    await eventually('the second stands by for both', () =>
      bothTold('second does nothing while first acts for this virtual node'),
    );
    await apply('web:7');
    await rolledOut('web:7');
  });

  afterEach(() => {
    delete ways.of('first').broken;
  });

  test('one that loses one of them goes on with the other, and stands by for what it has lost', async () => {
    const transitions = (await lease(OTHER))?.leaseTransitions;
    ways.of('first').broken = `/leases/${agentLeaseName(NODE)}`;
    await acts('second');
    const { length } = written('first');
    await eventually('the first knows it', () => losses() === 1);
    await apply('web:8');
    await rolledOut('web:8');
    expect(await lease(OTHER)).toMatchObject({ leaseTransitions: transitions });
    expect(await holder(OTHER)).toBe('first');
    const late = written('first').slice(length);
    // Statuses of its pods: renewals of Leases are further apart than a rollout is long.
    expect(late.filter((write) => write.includes(`/${placeOf(OTHER).homeNamespace}/`))).not.toEqual([]);
    // That it would serve the lost one again it may write into the Lease.
    const ofTheLost = /\/(nodes|virtualnodes)\/faulty(\/|\?|$)/u;
    expect(late.filter((write) => ofTheLost.test(write))).toEqual([]);
  });

  test('stopped while each holds one: the other serves both, and the one that wakes writes nothing and stands by', async () => {
    await pause('second');
    await acts('first');
    await apply('web:9');
    await rolledOut('web:9');
    lab.signal('first', 'SIGSTOP');
    await apply('web:10');
    const [here, there, lost] = [written('second').length, abroad.length, losses()];
    lab.signal('second', 'SIGCONT');
    await eventually('the second has lost it', () => losses() > lost);
    // That it stands by it may write into the Lease.
    const late = written('second').slice(here);
    expect(late.filter((write) => !isLease(write))).toEqual([]);
    expect(abroad.slice(there)).toEqual([]);
    lab.signal('first', 'SIGCONT');
    await rolledOut('web:10');
    for (const node of NODES) expect(await holder(node)).toBe('first');
  });

  test('killed: the one that lost before takes both', async () => {
    await apply('web:11');
    await lab.kill('first');
    for (const node of NODES) await acts('second', node);
    await rolledOut('web:11');
  });
});

longOnly(
  'processes of role all of one home (unit tests of src/kube try who leads; two agents are tried above)',
  describe,
)('processes of role all of one home', () => {
  const SYSTEM = 'tributary-system';
  const begin = async (name: string): Promise<void> => {
    // It finds no cluster of another test on this machine.
    const options = {
      'lease-seconds': LEADER_SECONDS,
      'peering-port': 0,
      'webhook-port': 0,
      'lan-interfaces': 'none',
    };
    await lab.start({ name, role: 'all', kubeconfig: ways.of(name).file, options });
  };
  const leads = async (name: string): Promise<void> =>
    eventually(`${name} leads`, async () => {
      const ref = { namespace: SYSTEM, name: CLUSTER_LEASE };
      return (await lab.home.get(leases, ref).catch(ignoring('NotFound')))?.spec?.holderIdentity === name;
    });
  const share = async (name: string): Promise<unknown> =>
    lab.home.create(sharingPolicies, {
      apiVersion: API_VERSION,
      kind: 'SharingPolicy',
      metadata: { name },
      spec: { peers: { anyone: true } },
    });
  const judged = async (name: string): Promise<void> => {
    const look = async (): Promise<boolean> => {
      const { status } = await lab.home.get(sharingPolicies, { name });
      return status?.conditions?.some(({ type }) => type === 'Valid') === true;
    };
    await awaited(`policy ${name} is judged`, look, { seen: async () => lab.log.slice(-2_000) });
  };

  beforeAll(async () => {
    await lab.kill('second');
    await lab.home.create(namespaces, { metadata: { name: SYSTEM } });
    await begin('third');
    await leads('third');
    await begin('fourth');
    await share('a');
    await judged('a');
  });

  test('stopped: the other one leads, and the one that wakes writes nothing and ends', async () => {
    // That it waits, and nothing else.
    expect(written('fourth').filter((write) => !isLease(write))).toEqual([]);
    await pause('third');
    await leads('fourth');
    await share('b');
    await judged('b');
    lab.signal('fourth', 'SIGSTOP');
    for (const name of ['c', 'd', 'e']) await share(name);
    const { length } = written('third');
    lab.signal('third', 'SIGCONT');
    await lab.ended('third');
    expect(written('third').slice(length)).toEqual([]);
    lab.signal('fourth', 'SIGCONT');
    for (const name of ['c', 'd', 'e']) await judged(name);
  });

  test('killed: the other one leads when the Lease has lapsed', async () => {
    await begin('third');
    await lab.kill('fourth');
    await share('f');
    await leads('third');
    await judged('f');
  });
});
