import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { kwokNodeAnnotation } from '../../lab/kwok.ts';
import { CONDITION_OFFLOADED, LABEL_VIRTUAL_NODE } from '../../src/api/names.ts';
import { deployments, nodes, pods, resourceQuotas } from '../../src/api/resources.ts';
import type { Placement } from '../../src/api/placement.ts';
import type { Pod, PodSpec } from '../../src/api/wire.ts';
import { parseMilli } from '../../src/lib/quantity.ts';
import { admit as admitPod } from '../../src/offloading/admission/decide.ts';
import { eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { patched } from '../unit/offloading/admission/scheduler.ts';
import { FullNode, GRACE_SECONDS } from './support/full-node.ts';

/** The virtual node shows more than the provider admits: real schedulers, controllers and quotas find their way. */

/** For several steps in which room comes back to the Node. */
const PATIENCE_MS = 150_000;
const SHOP = { namespace: 'shop' };

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  await lab.start();
  await lab.ready();
});
afterAll(async () => lab?.down());

const labels = { app: 'wide' };

/** Five of them fit on the one node over there. */
const wide = (replicas: number): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'wide', ...SHOP },
  spec: {
    replicas,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
        tolerations: [{ operator: 'Exists' }],
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '6' } } }],
      },
    },
  },
});

const list = async (): Promise<Pod[]> =>
  (await lab.home.list(pods, { ...SHOP, labelSelector: 'app=wide' })).items;
const inPhase = async (phase: string): Promise<Pod[]> =>
  (await list()).filter(({ status }) => status?.phase === phase);
const shownMilli = async (): Promise<bigint> =>
  parseMilli((await lab.home.get(nodes, { name: NODE })).status?.allocatable?.['cpu'] ?? '0');

/** What the provider admits from now on. */
async function admit(cpu: string): Promise<void> {
  const quota = { namespace: 'tenant', name: 'tributary' };
  const hard = { 'requests.cpu': cpu };
  await lab.foreign.patch(resourceQuotas, quota, { type: 'merge', body: { spec: { hard } } });
  await eventually(`${cpu} CPUs are admitted`, async () => {
    const { status } = await lab.foreign.get(resourceQuotas, quota);
    return status?.hard?.['requests.cpu'] === cpu;
  });
}

test('refused pods of a Deployment end as on a full node, others wait for the scheduler, and all run when there is room', async () => {
  await admit('20');
  await lab.homeCluster.api.call('POST', '/apis/apps/v1/namespaces/shop/deployments', wide(5));
  await eventually('two have ended', async () => (await inPhase('Failed')).length >= 2, PATIENCE_MS);
  for (const { status } of await inPhase('Failed')) {
    expect(status).toMatchObject({
      reason: 'OutOfcpu',
      message: expect.stringMatching(/has no room for the pod: .*exceeded quota: tributary/u),
    });
  }
  expect(await shownMilli()).toBeLessThan(1_000_000n);
  await eventually('three run', async () => (await inPhase('Running')).length === 3);
  await eventually('two others wait, and no node has them', async () => {
    const waiting = await inPhase('Pending');
    return waiting.length === 2 && waiting.every(({ spec }) => spec?.nodeName === undefined);
  });
  // The provider admits more.
  await admit('500');
  await eventually('all run', async () => (await inPhase('Running')).length === 5, PATIENCE_MS);
  await eventually('all is shown again', async () => (await shownMilli()) === 1_000_000n, PATIENCE_MS);
  await lab.home.delete(deployments, { ...SHOP, name: 'wide' });
});

describe('a pod of a higher class comes to a virtual node that is full', () => {
  let full: FullNode;
  beforeAll(async () => {
    full = new FullNode(lab);
    await full.fill();
  });
  afterAll(async () => full.empty());

  const runs = async (name: string): Promise<void> => {
    await eventually(`${name} runs`, async () => (await full.running('urgent')).includes(name));
    const { spec, status } = (await full.pod('foreign', name)) ?? {};
    expect(spec).toMatchObject({ priorityClassName: 'urgent', priority: 1000, preemptionPolicy: 'Never' });
    expect(status).toMatchObject({ phase: 'Running' });
  };

  test('the scheduler at home preempts one lower pod of this home, which first ends over there within its grace', async () => {
    const low = await full.running('low');
    await full.hold(low);
    await full.addUrgent('first');
    await eventually('a body is told to end', () => full.ended.foreign.size > 0);
    const [victim = ''] = full.ended.foreign.keys();
    expect(full.ended.foreign.get(victim)).toBe(GRACE_SECONDS);
    // What it does meanwhile is shown, and takes nothing off what the scheduler has said: that would cost one more pod.
    await full.showEnding(victim);
    await eventually('its end is shown', async () => {
      const ready = await full.condition('home', victim, 'Ready');
      return ready?.reason === 'Ending';
    });
    expect(await full.condition('home', victim, 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'PreemptionByScheduler',
    });
    const first = await full.pod('home', 'first');
    expect(first?.status?.nominatedNodeName).toBe(NODE);
    expect(first?.spec?.nodeName).toBeUndefined();
    expect(await full.pod('foreign', 'first')).toBeUndefined();
    await full.letGo(low);
    await runs('first');
    expect([...full.ended.home.keys()]).toEqual([victim]);
    expect([...full.ended.foreign.keys()]).toEqual([victim]);
    expect(await full.running('low')).toEqual(low.filter((name) => name !== victim));
    await eventually('another waits at home', async () => (await full.waiting('low')).length === 1);
  });

  test('one, although the quota over there counts its room a moment later', async () => {
    const controllers = lab.foreignCluster.daemon('kube-controller-manager');
    controllers.stop();
    try {
      await full.addUrgent('second');
      await eventually('the quota refuses it', async () => {
        const offloaded = await full.condition('home', 'second', CONDITION_OFFLOADED);
        return offloaded?.reason === 'ExceededQuota';
      });
    } finally {
      controllers.cont();
    }
    await runs('second');
    expect([full.ended.home.size, full.ended.foreign.size]).toEqual([2, 2]);
    expect([...full.shown]).toEqual(['24']);
  });

  test('where the provider has no room, it waits over there, and nobody is preempted', async () => {
    await full.keepLow(2);
    await full.agree('30');
    await full.addUrgent('third');
    await eventually('there is no place for it', async () => {
      const offloaded = await full.condition('home', 'third', CONDITION_OFFLOADED);
      return offloaded?.message?.includes('not eligible due to preemptionPolicy=Never') === true;
    });
    const own = await full.own();
    expect([own.status?.phase, own.metadata.deletionTimestamp]).toEqual(['Running', undefined]);
    expect(full.ended.foreign.size).toBe(2);
    expect(await full.running('low')).toHaveLength(2);
  });
});

const HOST = 'kubernetes.io/hostname';

/** A node over there that kwok plays. */
async function addNode(name: string): Promise<void> {
  const metadata = { name, annotations: kwokNodeAnnotation, labels: { [HOST]: name } };
  const capacity = { cpu: '32', memory: '128Gi', pods: '250' };
  await lab.foreign.create(nodes, { metadata, status: { capacity, allocatable: capacity } });
  await eventually(`${name} is Ready`, async () => {
    const { status, spec } = await lab.foreign.get(nodes, { name });
    const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
    return isReady === true && (spec?.taints ?? []).length === 0;
  });
}

const cordon = async (name: string, unschedulable: boolean): Promise<unknown> =>
  lab.foreign.patch(nodes, { name }, { type: 'merge', body: { spec: { unschedulable } } });

/** Six replicas as the webhook lets them in, in a namespace whose pods run on virtual nodes only. */
function six(app: string, spec: Partial<PodSpec>, placement: Placement): object {
  const template = {
    metadata: { name: app, uid: app, resourceVersion: '', creationTimestamp: '', labels: { app } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'web:1' }], ...spec },
  };
  const metadata = {
    name: 'offloading',
    namespace: 'shop',
    uid: 'o',
    resourceVersion: '1',
    creationTimestamp: '',
  };
  const offloading = { metadata, spec: { podStrategy: 'Remote', placement } as const };
  const facts = { offloading, failedNodes: [], isOpen: false, nowMs: 0 };
  const { metadata: made, spec: admitted } = patched(template, admitPod(template, facts).patch);
  const { labels: marks, annotations } = made;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: app, ...SHOP },
    spec: {
      replicas: 6,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: marks, annotations }, spec: admitted },
    },
  };
}

/** How many bodies are on each node over there, and how many home pods say that there is no place for them. */
async function spreadOf(app: string): Promise<{ on: number[]; waiting: number }> {
  const labelSelector = `app=${app}`;
  const bodies = (await lab.foreign.list(pods, { namespace: 'tenant', labelSelector })).items;
  const placed = bodies.filter(({ spec, metadata }) => spec?.nodeName && !metadata.deletionTimestamp);
  const byNode = Map.groupBy(placed, ({ spec }) => spec?.nodeName);
  const told = (await lab.home.list(pods, { ...SHOP, labelSelector })).items.filter(({ spec, status }) =>
    status?.conditions?.some(
      ({ type, reason, message }) =>
        spec?.nodeName === NODE &&
        type === CONDITION_OFFLOADED &&
        reason === 'Unschedulable' &&
        message?.includes('anti-affinity'),
    ),
  );
  return { on: Array.from(byNode.values(), ({ length }) => length), waiting: told.length };
}

const untilSpread = async (app: string, on: number[], waiting: number): Promise<void> => {
  const wanted = JSON.stringify({ on, waiting });
  let seen = '';
  await eventually(
    `${app}: ${wanted}`,
    async () => (seen = JSON.stringify(await spreadOf(app))) === wanted,
    PATIENCE_MS,
  ).catch((cause: unknown) => {
    throw new Error(`${app}: ${seen}, not ${wanted}`, { cause });
  });
};

test('six replicas are kept apart over three nodes behind one virtual node, by each choice, and come back with a node', async () => {
  await addNode('second');
  await addNode('third');
  const apart = (app: string): Partial<PodSpec> => {
    const term = { topologyKey: HOST, labelSelector: { matchLabels: { app } } };
    return {
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
    };
  };
  const wished = (app: string): Partial<PodSpec> => {
    const podAffinityTerm = { topologyKey: HOST, labelSelector: { matchLabels: { app } } };
    return {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm }],
        },
      },
    };
  };
  const spread = (app: string): Partial<PodSpec> => ({
    topologySpreadConstraints: [
      {
        topologyKey: HOST,
        maxSkew: 1,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app } },
      },
    ],
  });
  const make = async (app: string, spec: Partial<PodSpec>, placement: Placement): Promise<void> => {
    const path = '/apis/apps/v1/namespaces/shop/deployments';
    const answer = await lab.homeCluster.api.call('POST', path, six(app, spec, placement));
    if (answer.status !== 201) throw new Error(answer.body);
  };
  await make('required', apart('required'), 'Propagate');
  await make('soft', apart('soft'), 'Soft');
  await make('hard', wished('hard'), 'Hard');
  await make('spread', spread('spread'), 'Propagate');
  await untilSpread('required', [1, 1, 1], 3);
  await untilSpread('hard', [1, 1, 1], 3);
  await untilSpread('soft', [2, 2, 2], 0);
  await untilSpread('spread', [2, 2, 2], 0);
  // A node is lost: what ran there has no other place, and says so until the node is back.
  await cordon('third', true);
  const bodies = (await lab.foreign.list(pods, { namespace: 'tenant', labelSelector: 'app=required' })).items;
  const lost = bodies.find(({ spec }) => spec?.nodeName === 'third');
  if (lost === undefined) throw new Error('none is on the third node');
  await lab.foreign.delete(pods, { namespace: 'tenant', name: lost.metadata.name });
  await untilSpread('required', [1, 1], 4);
  await cordon('third', false);
  await untilSpread('required', [1, 1, 1], 3);
  for (const name of ['required', 'soft', 'hard', 'spread']) {
    await lab.home.delete(deployments, { ...SHOP, name });
  }
});
