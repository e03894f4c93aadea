import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import 'reflect-metadata';

import { ANNOTATION_AVOIDS, ANNOTATION_STRATEGY, CONDITION_OFFLOADED } from '../../src/api/names.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import type { Right } from '../../src/api/rbac.ts';
import { pods, secrets } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { Pod } from '../../src/api/wire.ts';
import { Caches } from '../../src/kube/caches.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { Lifecycle } from '../../src/lib/lifecycle.ts';
import { createLogger } from '../../src/lib/log.ts';
import { avoiding } from '../../src/offloading/admission/avoid.ts';
import { forgeReleaseFence } from '../../src/offloading/release/fence.ts';
import { Release } from '../../src/offloading/release/release.ts';
import { RELEASE_EVENT_RIGHTS, RELEASE_RIGHTS, RELEASE_SYSTEM_RIGHTS } from '../../src/offloading/rights.ts';
import { WaitingPods } from '../../src/offloading/waiting/waiting-pods.ts';
import { endedStatus } from '../../src/provider/forge/ended-status.ts';
import { eventually } from '../support/eventually.ts';
import { ACCOUNT, rightsAccount, SYSTEM } from '../support/labs/rights-account.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/**
 * Release on a real API server with its real controllers, under an account that has the rights of its tables and, to read
 * NamespaceOffloadings, one more. The scheduler and the agent are a few lines.
 */

const OFFLOADINGS: Right = {
  resource: 'namespaceoffloadings.tributary.dev',
  verbs: ['list', 'watch'],
  why: 'which namespaces are offloaded',
};

let lab: RightsCluster;
let admin: KubeClient;
/** With the account's rights. */
let client: KubeClient;
let lifecycle: Lifecycle;
const told: string[] = [];
const warnings: string[] = [];

beforeAll(async () => {
  lab = await RightsCluster.up();
  const account = await rightsAccount(
    lab,
    [[[...RELEASE_RIGHTS, ...RELEASE_EVENT_RIGHTS, OFFLOADINGS]], [RELEASE_SYSTEM_RIGHTS, SYSTEM]],
    [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'milan' } }, ...forgeReleaseFence(ACCOUNT)],
  );
  ({ admin } = account);
  await admin.create(virtualNodes, {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'VirtualNode',
    metadata: { name: 'milan' },
    spec: {
      kubeconfigSecretRef: { namespace: SYSTEM, name: 'none' },
      resources: { cpu: '1', memory: '1Gi', pods: '10' },
    },
  });
  const offloading = await admin.create<NamespaceOffloading>(namespaceOffloadings, {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'NamespaceOffloading',
    metadata: { namespace: 'shop', name: 'offloading' },
    spec: { releaseAfterSeconds: 1 },
  });
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'AsExpected', message: '', lastTransitionTime: seconds() },
  ];
  await admin.patch(
    namespaceOffloadings,
    offloading.metadata,
    { type: 'merge', body: { status: { conditions } } },
    { subresource: 'status' },
  );
  client = account.connect();
  await start();
});

afterAll(async () => {
  await lifecycle?.stop();
  await Promise.all([client?.close(), admin?.close()]);
  await lab?.down();
});

async function start(): Promise<void> {
  const log = createLogger({
    level: 'warn',
    now: () => systemClock.now(),
    write: (line) => warnings.push(line),
  });
  const common = { client, clock: systemClock, log };
  const offloadings = new Informer<NamespaceOffloading>({ ...common, type: namespaceOffloadings, list: {} });
  const release = new Release({
    ...common,
    caches: new Caches(common),
    events: { event: ({ metadata }, _type, reason) => told.push(`${reason} ${metadata.name}`) },
    offloadings: {
      offloadingOf: (namespace) => offloadings.get(`${namespace}/offloading`),
      onChange: (listener) => offloadings.onChange(listener),
    },
    systemNamespace: SYSTEM,
  });
  lifecycle = new Lifecycle([offloadings, ...release.components()], { ...common, stopDeadlineMs: 10_000 });
  await lifecycle.start(new AbortController().signal);
}

const seconds = (): string => `${new Date().toISOString().slice(0, 19)}Z`;
const list = async (labelSelector: string): Promise<Pod[]> =>
  (await admin.list(pods, { namespace: 'shop', labelSelector })).items;

/** The scheduler of the test binds it, and the agent says that there is no place. */
async function refuse({ metadata: { name, uid } }: Pod): Promise<void> {
  const path = `/api/v1/namespaces/shop/pods/${name}`;
  const binding = await lab.cluster.api.call('POST', `${path}/binding`, {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name, uid },
    target: { apiVersion: 'v1', kind: 'Node', name: 'milan' },
  });
  if (binding.status !== 201) throw new Error(binding.body);
  const condition = {
    type: CONDITION_OFFLOADED,
    status: 'False',
    reason: 'ExceededQuota',
    message: 'exceeded quota: tributary',
    lastTransitionTime: seconds(),
  };
  const body = { status: { phase: 'Pending', conditions: [condition] } };
  await admin.patch(
    pods,
    { namespace: 'shop', name },
    { type: 'strategic', body },
    { subresource: 'status' },
  );
}

/** The agent does the same: a pod with a controller fails first. */
async function end(uid: string): Promise<void> {
  const find = async (): Promise<Pod | undefined> =>
    (await admin.list(pods, { namespace: 'shop' })).items.find(({ metadata }) => metadata.uid === uid);
  await eventually(`${uid} is released`, async () => {
    const pod = await find();
    return pod?.metadata.deletionTimestamp !== undefined;
  });
  const pod = await find();
  if (pod === undefined) throw new Error('gone too early');
  if ((pod.metadata.finalizers ?? []).length > 0) {
    const body = { ...pod, status: endedStatus(pod, seconds()) };
    await admin.replace(pods, body, { subresource: 'status' });
  }
  const { name } = pod.metadata;
  await admin.delete(pods, { namespace: 'shop', name }, { uid, gracePeriodSeconds: 0 });
}

const template = (labels: Record<string, string>): object => ({
  metadata: { labels },
  spec: { schedulerName: 'none', containers: [{ name: 'main', image: 'web:1' }] },
});

test('a pod of a ReplicaSet is released; its successor is nobody else and bears no mark', async () => {
  const { status, body } = await lab.cluster.api.call('POST', '/apis/apps/v1/namespaces/shop/replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { replicas: 1, selector: { matchLabels: { app: 'web' } }, template: template({ app: 'web' }) },
  });
  if (status !== 201) throw new Error(body);
  await eventually('a pod', async () => (await list('app=web')).length === 1);
  const [pod] = await list('app=web');
  if (pod === undefined) throw new Error('no pod');
  await refuse(pod);
  await end(pod.metadata.uid);
  await eventually('a successor alone', async () => {
    const all = await list('app=web');
    return all.length === 1 && all[0]?.metadata.uid !== pod.metadata.uid;
  });
  expect((await list('app=web'))[0]?.spec?.nodeName).toBeUndefined();
  const offloading = await admin.get(namespaceOffloadings, { namespace: 'shop', name: 'offloading' });
  expect(offloading.status?.heldOff).toMatchObject([{ owner: 'ReplicaSet/web', virtualNode: 'milan' }]);
  expect(offloading.status?.conditions).toHaveLength(1);
});

test('a Job does not count it against its backoffLimit, where its policy says so', async () => {
  const { status, body } = await lab.cluster.api.call('POST', '/apis/batch/v1/namespaces/shop/jobs', {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work', namespace: 'shop' },
    spec: {
      backoffLimit: 0,
      podFailurePolicy: { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] },
      template: {
        spec: {
          schedulerName: 'none',
          restartPolicy: 'Never',
          containers: [{ name: 'main', image: 'web:1' }],
        },
      },
    },
  });
  if (status !== 201) throw new Error(body);
  await eventually('a pod', async () => (await list('job-name=work')).length === 1);
  const [pod] = await list('job-name=work');
  if (pod === undefined) throw new Error('no pod');
  await refuse(pod);
  await end(pod.metadata.uid);
  await eventually('another pod', async () =>
    (await list('job-name=work')).some(({ metadata }) => metadata.uid !== pod.metadata.uid),
  );
  const job = await lab.cluster.api.call('GET', '/apis/batch/v1/namespaces/shop/jobs/work');
  expect((JSON.parse(job.body) as { status: object }).status).not.toHaveProperty('failed');
});

test('a bare pod is made anew, as admission lets it in again', async () => {
  const created = await admin.create(pods, {
    metadata: {
      namespace: 'shop',
      name: 'bare',
      labels: { app: 'bare' },
      annotations: { [ANNOTATION_STRATEGY]: 'LocalAndRemote', note: 'mine' },
    },
    spec: {
      schedulerName: 'none',
      priorityClassName: 'system-node-critical',
      tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' }],
      containers: [{ name: 'main', image: 'web:1', env: [{ name: 'PASSWORD', value: 'hidden' }] }],
    },
  });
  await refuse(created);
  await eventually('a journal', async () => {
    const { items } = await admin.list(secrets, { namespace: SYSTEM });
    return items.some(({ metadata }) => metadata.name === `tributary-remake-${created.metadata.uid}`);
  });
  await end(created.metadata.uid);
  await eventually('made anew', async () => {
    const [pod] = await list('app=bare');
    return pod !== undefined && pod.metadata.uid !== created.metadata.uid;
  });
  const [pod] = await list('app=bare');
  expect(pod?.metadata.annotations).toEqual({
    note: 'mine',
    'tributary.dev/released-from': 'milan',
    'tributary.dev/remade-for': created.metadata.uid,
  });
  expect(pod?.spec?.nodeName).toBeUndefined();
  expect(pod?.spec?.priority).toBe(2_000_001_000);
  expect(pod?.spec?.tolerations?.map(({ key }) => key)).toEqual([
    'node.kubernetes.io/not-ready',
    'node.kubernetes.io/unreachable',
  ]);
  expect(pod?.spec?.volumes).toHaveLength(1);
  expect(pod?.spec?.containers[0]?.env).toEqual([{ name: 'PASSWORD', value: 'hidden' }]);
  await eventually('no journal', async () => {
    const { items } = await admin.list(secrets, { namespace: SYSTEM });
    return items.every(({ metadata }) => !metadata.name.startsWith('tributary-remake-'));
  });
  await eventually('told', () => told.includes('Remade bare'));
  expect(warnings.filter((line) => line.includes('hidden'))).toEqual([]);
});

test('a pod that waits and was let in to avoid a virtual node goes when that can take it', async () => {
  const avoids = { matchExpressions: [avoiding(['milan'])] };
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [avoids] } };
  const { status, body } = await lab.cluster.api.call('POST', '/apis/apps/v1/namespaces/shop/replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'waits', namespace: 'shop' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'waits' } },
      template: {
        metadata: { labels: { app: 'waits' }, annotations: { [ANNOTATION_AVOIDS]: 'milan' } },
        spec: {
          schedulerName: 'none',
          affinity: { nodeAffinity: required },
          containers: [{ name: 'main', image: 'web:1' }],
        },
      },
    },
  });
  if (status !== 201) throw new Error(body);
  await eventually('a pod', async () => (await list('app=waits')).length === 1);
  const [pod] = await list('app=waits');
  const offloading = await admin.get(namespaceOffloadings, { namespace: 'shop', name: 'offloading' });
  const milan = { cluster: 'milan', virtualNodes: ['milan'], phase: 'Ready', reason: 'AsExpected' };
  const back = { ...offloading, status: { clusters: [milan] } } as NamespaceOffloading;
  const waiting = new WaitingPods({
    client,
    clock: systemClock,
    events: { event: ({ metadata }, _type, reason) => told.push(`${reason} ${metadata.name}`) },
    remake: { begin: async () => false, count: () => 0 },
    facts: () => ({ offloading: back, failedNodes: [], nowMs: systemClock.now() }),
  });
  await waiting.look(back, new AbortController().signal);
  await eventually('a successor alone', async () => {
    const all = await list('app=waits');
    return all.length === 1 && all[0]?.metadata.uid !== pod?.metadata.uid;
  });
  expect(told).toContain(`MadeAnew ${pod?.metadata.name}`);
});

test('a pod that runs is left alone', async () => {
  const { metadata } = await admin.create(pods, {
    metadata: { namespace: 'shop', name: 'runs', labels: { app: 'runs' } },
    spec: { nodeName: 'milan', containers: [{ name: 'main', image: 'web:1' }] },
  });
  const condition = {
    type: CONDITION_OFFLOADED,
    status: 'False',
    reason: 'Invalid',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const status = { phase: 'Running', startTime: seconds(), conditions: [condition] };
  const patch = { type: 'strategic', body: { status } } as const;
  await admin.patch(pods, { namespace: 'shop', name: 'runs' }, patch, { subresource: 'status' });
  // Another one, refused after it, goes first.
  const other = await admin.create(pods, {
    metadata: { namespace: 'shop', name: 'other', labels: { app: 'other' } },
    spec: { schedulerName: 'none', containers: [{ name: 'main', image: 'web:1' }] },
  });
  await refuse(other);
  await end(other.metadata.uid);
  const [pod] = await list('app=runs');
  expect(pod?.metadata).toMatchObject({ uid: metadata.uid });
  expect(pod?.metadata.deletionTimestamp).toBeUndefined();
});

describe('the fence', () => {
  const remade = { 'tributary.dev/remade-for': 'u', 'tributary.dev/released-from': 'milan' };
  const make = async (
    namespace: string,
    { annotations = remade, nodeName }: { annotations?: Record<string, string>; nodeName?: string },
  ): Promise<unknown> =>
    client.create(pods, {
      metadata: { namespace, name: 'fenced', annotations },
      spec: {
        schedulerName: 'none',
        ...(nodeName !== undefined && { nodeName }),
        containers: [{ name: 'main', image: 'web:1' }],
      },
    });

  test.each([
    ['a pod that stands for none', 'shop', { annotations: {} }, /must say so/],
    ['a pod in kube-system', 'kube-system', {}, /own namespaces/],
    ['a pod in our own namespace', SYSTEM, {}, /own namespaces/],
    ['a pod on a certain node', 'shop', { nodeName: 'milan' }, /placed by the scheduler/],
  ])('refuses %s', async (_name, namespace, given, why) => {
    await expect(make(namespace, given)).rejects.toThrow(why);
  });

  test.each([
    ['a phase', { phase: 'Failed' }],
    ['readiness', { conditions: [{ type: 'Ready', status: 'True' }] }],
    ['an address', { podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] }],
  ])('refuses to give a pod %s', async (_name, status) => {
    const name = 'judged';
    const spec = { schedulerName: 'none', containers: [{ name: 'main', image: 'web:1' }] };
    await admin
      .create(pods, { metadata: { namespace: 'shop', name }, spec })
      .catch(ignoring('AlreadyExists'));
    const patch = { type: 'strategic', body: { status } } as const;
    const writing = client.patch(pods, { namespace: 'shop', name }, patch, { subresource: 'status' });
    await expect(writing).rejects.toThrow(/it is disrupted, and nothing else/);
  });
});
