import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { advertisements } from '../../src/api/advertisement.ts';
import { LABEL_PEER } from '../../src/api/names.ts';
import { namespaced, namespaces, nodes, pods } from '../../src/api/resources.ts';
import type { ResourceType } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { KubeObject, Pod } from '../../src/api/wire.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { Controller } from '../../src/kube/controller.ts';
import { evict } from '../../src/kube/evict.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { errorMessage, hasCode, ignoring } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/log.ts';
import {
  BORROWING_CLUSTER_RIGHTS,
  BORROWING_EVENT_RIGHTS,
  BORROWING_LEASE_RIGHTS,
  BORROWING_SYSTEM_RIGHTS,
} from '../../src/peering/borrowing/rights.ts';
import { Teardown } from '../../src/peering/borrowing/teardown.ts';
import { forgeReleaseFence } from '../../src/offloading/release/fence.ts';
import { BorrowingWorld } from '../support/peering/borrowing-world.ts';
import { eventually } from '../support/eventually.ts';
import { ACCOUNT, SYSTEM, rightsAccount } from '../support/labs/rights-account.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/**
 * Drains under PodDisruptionBudgets, with a real API server, its disruption controller and our own rights: pods leave
 * as budgets permit, no budget holds them without limit, and no drain delays another.
 */

const LIMITS = { evictMs: 6000, endMs: 1000 };

interface Budget extends KubeObject {
  spec?: object;
  status?: { observedGeneration?: number; disruptionsAllowed?: number; currentHealthy?: number };
}
const budgets: ResourceType<Budget> = namespaced('policy/v1', 'PodDisruptionBudget');

let lab: RightsCluster;
let admin: KubeClient;
let connect: () => KubeClient;
let world: BorrowingWorld;
/** The name of a node at home that is Ready. */
let real: string;

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ admin, connect } = await rightsAccount(
    lab,
    [
      [BORROWING_CLUSTER_RIGHTS],
      [BORROWING_SYSTEM_RIGHTS, SYSTEM],
      [BORROWING_LEASE_RIGHTS, 'kube-node-lease'],
      [BORROWING_EVENT_RIGHTS, 'default'],
    ],
    forgeReleaseFence(ACCOUNT),
  ));
  // Nobody would renew the Lease of a node that the test made: after 40 s its pods were no longer Ready, and the budget held.
  const [pretended] = (await admin.list(nodes)).items;
  real = pretended?.metadata.name ?? '';
});

afterAll(async () => {
  await admin?.close();
  await lab?.down();
});

const addPod = async (name: string, nodeName: string, namespace = 'shop'): Promise<void> => {
  const containers = [{ name: 'main', image: 'web' }];
  const tolerations = [{ operator: 'Exists' }];
  const metadata = { name, namespace, labels: { app: 'web' } };
  const pod = await admin.create(pods, { metadata, spec: { nodeName, containers, tolerations } });
  const conditions = [{ type: 'Ready', status: 'True' }];
  const body = { status: { phase: 'Running', conditions } };
  await admin.patch(pods, pod.metadata, { type: 'merge', body }, { subresource: 'status' });
};

/** Counts until the disruption controller has seen all of them. */
const addBudget = async (name: string, spec: object, healthy: number): Promise<void> => {
  const selector = { matchLabels: { app: 'web' } };
  await admin.create(budgets, { metadata: { name, namespace: 'shop' }, spec: { selector, ...spec } });
  await eventually('the budget is counted', async () => {
    const { status } = await admin.get(budgets, { name, namespace: 'shop' });
    return status?.currentHealthy === healthy;
  });
};

const podsOn = async (nodeName: string): Promise<Pod[]> =>
  (await admin.list(pods, { fieldSelector: `spec.nodeName=${nodeName}` })).items;

const clean = async (): Promise<void> => {
  const { items } = await admin.list(pods, { namespace: 'shop' });
  for (const { metadata } of items) {
    await admin.delete(pods, metadata, { gracePeriodSeconds: 0 }).catch(ignoring('NotFound'));
  }
  for (const { metadata } of (await admin.list(budgets, { namespace: 'shop' })).items) {
    await admin.delete(budgets, metadata);
  }
};

const isOver = async (): Promise<boolean> =>
  admin.get(advertisements, { name: world.id }).then(
    () => false,
    (error: unknown) => hasCode(error, 'NotFound'),
  );

const message = (): string => world.borrowing.report(world.id).message ?? '';
const isOverridden = (name: string): boolean =>
  world.events.some((line) => line.startsWith(`Pod/${name} DisruptionBudgetOverridden`));

async function peered(drain = LIMITS): Promise<void> {
  world = new BorrowingWorld(admin, connect(), drain);
  await world.start();
  world.want(true);
  await eventually('established', () => world.borrowing.report(world.id).phase === 'Established');
  await eventually('the node is there', async () =>
    (await admin.list(nodes)).items.some(({ metadata }) => metadata.name === 'milan'),
  );
}

beforeEach(clean);

test('un-peering evicts one pod after the other, each when its replacement at home is ready', async () => {
  await peered({ evictMs: 100_000, endMs: 1000 });
  try {
    await addPod('web-1', 'milan');
    await addPod('web-2', 'milan');
    await addBudget('web', { minAvailable: 2 }, 2);
    world.want(false);
    await eventually('told', () => message().includes('2 held by PodDisruptionBudget shop/web'));
    expect(message()).toMatch(/milan: draining: 2 pods left, 2 held by .*needs 2 healthy pods and has 2/);
    await eventually('the Advertisement says so', async () => {
      const { status } = await admin.get(advertisements, { name: world.id });
      const condition = status?.conditions?.find(({ type }) => type === 'VirtualNodeReady');
      return (condition?.message ?? message()).includes('held by PodDisruptionBudget shop/web');
    });
    expect(await podsOn('milan')).toHaveLength(2);
    await addPod('home-1', real);
    await eventually('one has left', async () => (await podsOn('milan')).length === 1);
    await eventually('the other one is held', () => message().includes('1 pod left, 1 held'));
    await addPod('home-2', real);
    await eventually('gone', isOver);
    expect(await podsOn(real)).toHaveLength(2);
    expect(world.events.filter((line) => line.includes('DisruptionBudgetOverridden'))).toEqual([]);
  } finally {
    await world.stop();
  }
});

test('a budget that never allows it holds up to the deadline, and that it was overridden is told', async () => {
  await peered();
  try {
    await addPod('web-1', 'milan');
    await addBudget('web', { minAvailable: 1 }, 1);
    const from = performance.now();
    world.want(false);
    await eventually('gone', isOver);
    expect(performance.now() - from).toBeGreaterThan(LIMITS.evictMs);
    expect(isOverridden('web-1')).toBe(true);
  } finally {
    await world.stop();
  }
});

test('a dead agent and a dead peer, and a budget: still over in time', async () => {
  await peered();
  try {
    await addPod('web-1', 'milan');
    await addBudget('web', { minAvailable: 1 }, 1);
    world.agents.dead = true;
    world.connected = false;
    world.want(false);
    await eventually('gone', isOver);
    expect(await podsOn('milan')).toEqual([]);
  } finally {
    await world.stop();
  }
});

test('un-peering in the middle of a kubectl drain ends what that has begun, and overrides nothing', async () => {
  await peered({ evictMs: 100_000, endMs: 1000 });
  try {
    world.agents.stubborn = true;
    await addPod('web-1', 'milan');
    await addPod('web-2', 'milan');
    await addBudget('web', { minAvailable: 1 }, 2);
    // As kubectl does: cordon, then evictions.
    await admin.patch(nodes, { name: 'milan' }, { type: 'merge', body: { spec: { unschedulable: true } } });
    const [first, second] = await podsOn('milan');
    const { signal } = new AbortController();
    const answers = [];
    for (const pod of [first, second]) answers.push(pod && (await evict(admin, pod, { signal })));
    expect(answers).toMatchObject([{ kind: 'Evicted' }, { kind: 'Held', budget: 'shop/web' }]);
    world.want(false);
    await eventually('told', () => message().includes('2 pods left, 1 held'));
    world.agents.stubborn = false;
    await eventually('one has left', async () => (await podsOn('milan')).length === 1);
    await addPod('home-1', real);
    await eventually('gone', isOver);
    expect(isOverridden('web-2')).toBe(false);
    expect(await podsOn(real)).toHaveLength(1);
  } finally {
    await world.stop();
  }
});

test('one drain that a budget holds delays no other, with one worker for both', async () => {
  const client = connect();
  const teardown = new Teardown({
    client,
    clock: systemClock,
    log: silentLogger,
    events: { event: () => undefined },
    limits: { evictMs: 100_000, endMs: 1000 },
  });
  const closed = [{ key: 'tributary.dev/closed', effect: 'NoSchedule' as const }];
  for (const name of ['stuck', 'free']) {
    const labels = { 'tributary.dev/provider': name, 'tributary.dev/virtual-node': name };
    const spec = {
      kubeconfigSecretRef: { namespace: SYSTEM, name },
      resources: { cpu: '1', memory: '1Gi', pods: '10' },
      taints: closed,
    };
    await admin.create(virtualNodes, { metadata: { name, labels }, spec });
    await admin.create(nodes, { metadata: { name, labels }, spec: { taints: closed } });
  }
  await addPod('held', 'stuck');
  await addBudget('web', { minAvailable: 1 }, 1);
  await admin.create(pods, {
    metadata: { name: 'quick', namespace: 'shop' },
    spec: {
      nodeName: 'free',
      containers: [{ name: 'main', image: 'web' }],
      tolerations: [{ operator: 'Exists' }],
    },
  });
  const done: string[] = [];
  let looks = 0;
  const controller = new Controller({
    name: 'drains',
    concurrency: 1,
    clock: systemClock,
    log: silentLogger,
    reconcile: async (name, { signal }) => {
      const node = await admin.get(virtualNodes, { name });
      const wait = await teardown.drain([node], { hasty: false }, signal);
      if (name === 'stuck') looks++;
      if (wait === undefined) done.push(name);
      return wait === undefined ? {} : { requeueAfterMs: wait.waitMs };
    },
  });
  controller.start(new AbortController().signal);
  controller.add('stuck');
  controller.add('free');
  await eventually('evicted', async () => {
    const [pod] = await podsOn('free');
    return pod === undefined || pod.metadata.deletionTimestamp !== undefined;
  });
  for (const { metadata } of await podsOn('free')) {
    await admin.delete(pods, metadata, { gracePeriodSeconds: 0 });
  }
  await eventually('the other one is done', () => done.includes('free'));
  await eventually('the stuck one is looked at again and again', () => looks >= 3);
  expect(done).toEqual(['free']);
  expect((await podsOn('stuck'))[0]?.metadata.deletionTimestamp).toBeUndefined();
  await controller.stop();
  await client.close();
  for (const name of ['stuck', 'free']) {
    await admin.delete(virtualNodes, { name });
    await admin.delete(nodes, { name });
  }
});

test('our account evicts by UID only, never a pod of a peer, and a dry run takes nothing from the budget', async () => {
  const client = connect();
  const { signal } = new AbortController();
  await admin.create(namespaces, { metadata: { name: 'guest', labels: { [LABEL_PEER]: 'somebody' } } });
  const account = '/api/v1/namespaces/guest/serviceaccounts/default';
  await eventually('pods can be made', async () => (await lab.cluster.api.get(account)) !== undefined);
  await addPod('theirs', real, 'guest');
  await addPod('web-1', real);
  const theirs = await admin.get(pods, { name: 'theirs', namespace: 'guest' });
  const ours = await admin.get(pods, { name: 'web-1', namespace: 'shop' });
  await eventually('refused', async () => {
    const error: unknown = await evict(client, theirs, { dryRun: true, signal }).catch(
      (caught: unknown) => caught,
    );
    return errorMessage(error).includes('pods of peers are not evicted');
  });
  const anonymous = { metadata: { ...ours.metadata, uid: '' } };
  await expect(evict(client, anonymous, { signal })).rejects.toThrow('names the UID');
  const another = { metadata: { ...ours.metadata, uid: 'another' } };
  await expect(evict(client, another, { signal })).resolves.toEqual({ kind: 'Gone' });
  await addBudget('web', { minAvailable: 1 }, 1);
  await expect(evict(client, ours, { dryRun: true, signal })).resolves.toMatchObject({ kind: 'Held' });
  await admin.create(budgets, {
    metadata: { name: 'second', namespace: 'shop' },
    spec: { selector: { matchLabels: { app: 'web' } }, minAvailable: 0 },
  });
  await expect(evict(client, ours, { dryRun: true, signal })).resolves.toMatchObject({
    kind: 'Misconfigured',
  });
  await admin.delete(budgets, { name: 'second', namespace: 'shop' });
  await client.close();
});

afterEach(clean);
