import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CONDITION_OFFLOADED, LABEL_VIRTUAL_NODE } from '../../src/api/names.ts';
import { events, nodes, pods, secrets } from '../../src/api/resources.ts';
import type { Pod, PodSpec } from '../../src/api/wire.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { parseMilli } from '../../src/lib/quantity.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { eventually } from '../support/eventually.ts';

/** Pods that the foreign cluster refuses, and changes that it refuses, on real API servers. */

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  await lab.start();
  await lab.ready();
});
afterAll(async () => lab?.down());

const main = { name: 'main', image: 'web:1' };

async function add(name: string, spec: Partial<PodSpec>): Promise<void> {
  const metadata = { name, namespace: 'shop' };
  await lab.home.create(pods, { metadata, spec: { nodeName: NODE, containers: [main], ...spec } });
}
const read = async (name: string): Promise<Pod> => lab.home.get(pods, { namespace: 'shop', name });
const settled = async (name: string): Promise<Pod> => {
  await eventually(`${name} has a status`, async () => {
    const { status } = await read(name);
    return status?.reason !== undefined || status?.startTime !== undefined;
  });
  return read(name);
};

describe('cannot be offloaded, and says why in the words of Kubernetes', () => {
  beforeAll(async () => {
    await lab.homeCluster.api.call('POST', '/apis/node.k8s.io/v1/runtimeclasses', {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'gvisor' },
      handler: 'runsc',
    });
  });

  test.each<[string, Partial<PodSpec>, string, RegExp]>([
    [
      'host-network',
      { hostNetwork: true },
      'Forbidden',
      /violates PodSecurity "baseline:latest": host namespaces/u,
    ],
    [
      'host-path',
      { volumes: [{ name: 'root', hostPath: { path: '/' } }] },
      'Forbidden',
      /violates PodSecurity "baseline:latest": hostPath volumes/u,
    ],
    ['runtime-class', { runtimeClassName: 'gvisor' }, 'Forbidden', /RuntimeClass "gvisor" not found/u],
    [
      'missing-secret',
      { containers: [{ ...main, envFrom: [{ secretRef: { name: 'none' } }] }] },
      'MissingReference',
      /secret "none" not found/u,
    ],
    [
      'over-quota',
      { containers: [{ ...main, resources: { requests: { cpu: '500' } } }] },
      'ExceededQuota',
      /exceeded quota: tributary, requested: requests\.cpu=500/u,
    ],
    [
      'missing-claim',
      { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'none' } }] },
      'MissingReference',
      /persistentvolumeclaim "none" not found/u,
    ],
  ])('%s', async (name, spec, reason, message) => {
    await add(name, spec);
    const { status } = await settled(name);
    expect(status).toMatchObject({ phase: 'Pending', reason });
    expect(status?.message).toMatch(message);
    const condition = status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
    expect(condition).toMatchObject({ status: 'False', reason });
  });

  test('a pod of a DaemonSet that tolerates everything stays Pending, and is not made anew', async () => {
    const labels = { app: 'agent' };
    await lab.homeCluster.api.call('POST', '/apis/apps/v1/namespaces/shop/daemonsets', {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'agent', namespace: 'shop' },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
            tolerations: [{ operator: 'Exists' }],
            containers: [main],
          },
        },
      },
    });
    const found = async (): Promise<Pod[]> =>
      (await lab.home.list(pods, { namespace: 'shop', labelSelector: 'app=agent' })).items;
    await eventually('said', async () => (await found())[0]?.status?.reason !== undefined);
    expect(await found()).toMatchObject([{ status: { phase: 'Pending', reason: 'DaemonSetNotOffloaded' } }]);
    // As `kubectl rollout status` looks at it.
    await eventually('the rollout is done', async () => {
      const path = '/apis/apps/v1/namespaces/shop/daemonsets/agent';
      const { body } = await lab.homeCluster.api.call('GET', path);
      const { status } = JSON.parse(body) as { status: Record<string, number | undefined> };
      return status['desiredNumberScheduled'] === 1 && status['numberAvailable'] === 1;
    });
  });

  test('a pod of a Job that counts on its end is replaced when it is deleted before it ran', async () => {
    await lab.homeCluster.api.call('POST', '/apis/batch/v1/namespaces/shop/jobs', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'work', namespace: 'shop' },
      spec: {
        // Waits for the pod's phase, not for its deletion.
        podReplacementPolicy: 'Failed',
        template: {
          spec: { nodeName: NODE, restartPolicy: 'Never', hostNetwork: true, containers: [main] },
        },
      },
    });
    const found = async (): Promise<Pod[]> =>
      (await lab.home.list(pods, { namespace: 'shop', labelSelector: 'job-name=work' })).items;
    await eventually('refused', async () => (await found())[0]?.status?.reason === 'Forbidden');
    const [first] = await found();
    expect(first?.metadata.finalizers).toEqual(['batch.kubernetes.io/job-tracking']);
    await lab.home.delete(pods, { namespace: 'shop', name: first?.metadata.name ?? '' });
    await eventually('another one', async () =>
      (await found()).every(({ metadata }) => metadata.uid !== first?.metadata.uid),
    );
    await eventually('replaced', async () => (await found()).length === 1);
    await lab.homeCluster.api.call(
      'DELETE',
      '/apis/batch/v1/namespaces/shop/jobs/work?propagationPolicy=Background',
    );
  });

  test('asked again with patience, and written once', async () => {
    const before = await read('host-network');
    let asked = 0;
    lab.proxy.judge(({ method, path }) => {
      if (method === 'POST' && path.startsWith('/api/v1/namespaces/tenant/pods')) asked++;
      return undefined;
    });
    await eventually('asked again', () => asked >= 3);
    expect((await read('host-network')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    lab.proxy.calm();
  });

  test('what waits for an object is shown as a kubelet shows a pod that it has accepted', async () => {
    const { metadata, status } = await read('missing-secret');
    expect(status).toMatchObject({
      startTime: expect.any(String),
      hostIP: expect.any(String),
      hostIPs: [{ ip: status?.hostIP }],
      observedGeneration: metadata.generation,
    });
    const byType = (status?.conditions ?? []).map((one) => [one.type, one.status, one.observedGeneration]);
    expect(byType).toEqual(
      expect.arrayContaining([
        ['PodReadyToStartContainers', 'False', 1],
        ['Initialized', 'True', 1],
        ['Ready', 'False', 1],
        ['ContainersReady', 'False', 1],
        ['PodScheduled', 'True', undefined],
      ]),
    );
    const said = await lab.home.list(events, { namespace: 'shop' });
    const reasons = said.items
      .filter(({ involvedObject }) => involvedObject?.uid === metadata.uid)
      .map(({ reason }) => reason);
    expect(reasons).toEqual(expect.arrayContaining(['MissingReference', 'MandatorySecretNotFound']));
  });

  test.each([
    ['missing-secret', 'is waiting to start: CreateContainerConfigError'],
    ['over-quota', 'is not available: ExceededQuota: '],
  ])('the log of %s is refused as by a kubelet', async (name, why) => {
    const { api } = lab.homeCluster;
    const { status, body } = await api.call('GET', `/api/v1/namespaces/shop/pods/${name}/log`);
    const { message } = JSON.parse(body) as { message: string };
    expect([status, message]).toEqual([
      400,
      expect.stringContaining(`container "main" in pod "${name}" ${why}`),
    ]);
  });

  test('what was missing comes, and the pod runs', async () => {
    const { startTime } = (await read('missing-secret')).status ?? {};
    await lab.home.create(secrets, { metadata: { namespace: 'shop', name: 'none' }, data: {} });
    await eventually('runs', async () => (await read('missing-secret')).status?.phase === 'Running');
    const { status } = await read('missing-secret');
    // It may have been seen over there before it started: then it has started when its body has (forge/made-anew.ts).
    expect(Date.parse(status?.startTime ?? '')).toBeGreaterThanOrEqual(Date.parse(startTime ?? ''));
    expect(status?.reason).toBeUndefined();
    expect(status?.conditions?.some(({ type }) => type === CONDITION_OFFLOADED)).toBe(false);
  });
});

describe('changed while it runs', () => {
  beforeAll(async () => {
    await add('changed', { containers: [{ ...main, resources: { requests: { cpu: '1' } } }] });
    await eventually('runs', async () => (await read('changed')).status?.phase === 'Running');
  });
  const ref = { namespace: 'shop', name: 'changed' };
  const patch = async (spec: object, subresource?: string): Promise<Pod> =>
    lab.home.patch(
      pods,
      ref,
      { type: 'strategic', body: { spec } },
      subresource === undefined ? {} : { subresource },
    );
  const body = async (): Promise<Pod> => lab.foreign.get(pods, { namespace: 'tenant', name: 'changed' });

  test('the image travels', async () => {
    await patch({ containers: [{ name: 'main', image: 'web:2' }] });
    await eventually('over there', async () => (await body()).spec?.containers[0]?.image === 'web:2');
  });

  test('a resize travels', async () => {
    // A kubelet reports the resources of a container, and kwok does not. Without them the home API server accepts no
    // resize.
    const containerStatuses = (await body()).status?.containerStatuses?.map((status) => ({
      ...status,
      resources: { requests: { cpu: '1' } },
    }));
    const there = { namespace: 'tenant', name: 'changed' };
    const told = { type: 'merge', body: { status: { containerStatuses } } } as const;
    await lab.foreign.patch(pods, there, told, { subresource: 'status' });
    await eventually(
      'shown',
      async () => (await read('changed')).status?.containerStatuses?.[0]?.resources !== undefined,
    );
    await patch({ containers: [{ name: 'main', resources: { requests: { cpu: '2' } } }] }, 'resize');
    await eventually(
      'over there',
      async () => (await body()).spec?.containers[0]?.resources?.requests?.['cpu'] === '2',
    );
  });

  test('a resize that the provider refuses is pending, infeasible', async () => {
    // The pod above that was refused for room has taken room off the Node, and the home API server checks what is left.
    await eventually('the Node shows more than the resize needs', async () => {
      const { status } = await lab.home.get(nodes, { name: NODE });
      return parseMilli(status?.allocatable?.['cpu'] ?? '0') > 300_000n;
    });
    await patch({ containers: [{ name: 'main', resources: { requests: { cpu: '300' } } }] }, 'resize');
    const pending = async (): Promise<object | undefined> =>
      (await read('changed')).status?.conditions?.find(({ type }) => type === 'PodResizePending');
    await eventually('said', async () => (await pending()) !== undefined);
    expect(await pending()).toMatchObject({
      status: 'True',
      reason: 'Infeasible',
      message: expect.stringContaining("node didn't have enough allocatable resources"),
    });
    await patch({ containers: [{ name: 'main', resources: { requests: { cpu: '2' } } }] }, 'resize');
    await eventually('taken back', async () => (await pending()) === undefined);
  });

  test('ephemeral containers: one is refused and has ended with the reason, the other travels', async () => {
    const debug = (name: string, capability?: string): object => ({
      name,
      image: 'tools',
      ...(capability === undefined ? {} : { securityContext: { capabilities: { add: [capability] } } }),
    });
    await patch({ ephemeralContainers: [debug('tracer', 'SYS_PTRACE')] }, 'ephemeralcontainers');
    const status = async (): Promise<object | undefined> =>
      (await read('changed')).status?.ephemeralContainerStatuses?.find(({ name }) => name === 'tracer');
    await eventually('said', async () => (await status()) !== undefined);
    expect(await status()).toMatchObject({
      state: {
        terminated: { exitCode: 128, reason: 'StartError', message: expect.stringContaining('SYS_PTRACE') },
      },
    });
    await patch(
      { ephemeralContainers: [debug('tracer', 'SYS_PTRACE'), debug('plain')] },
      'ephemeralcontainers',
    );
    await eventually('over there', async () =>
      Boolean((await body()).spec?.ephemeralContainers?.some(({ name }) => name === 'plain')),
    );
    expect(await status()).toBeDefined();
  });

  test('the body is taken away: the home pod ends as evicted', async () => {
    await lab.foreign.delete(pods, { namespace: 'tenant', name: 'changed' }, { gracePeriodSeconds: 0 });
    await eventually('ended', async () => (await read('changed')).status?.phase === 'Failed');
    const { status } = await read('changed');
    expect(status).toMatchObject({ reason: 'RemotePodLost' });
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', status: 'True' }),
    );
  });
});

// No kubelet over there says how they ended.
test.each<[string, NonNullable<Pod['spec']>['restartPolicy'], object]>([
  [
    'made to end: the last that home shows of it is an end',
    'Never',
    { phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 137 } } }] },
  ],
  ['made to run for ever: home makes up no end of it', 'Always', { phase: 'Running' }],
])('deleted while it runs, %s', async (_, restartPolicy = 'Always', status) => {
  const name = `ended-${restartPolicy.toLowerCase()}`;
  await add(name, { restartPolicy });
  await eventually('runs', async () => (await read(name)).status?.phase === 'Running');
  const list = { namespace: 'shop', fieldSelector: `metadata.name=${name}` };
  const watched = new Informer({
    client: lab.home,
    type: pods,
    list,
    clock: systemClock,
    log: silentLogger,
  });
  const last: (Pod | undefined)[] = [];
  watched.onChange((_key, current, previous) => {
    if (current === undefined) last.push(previous);
  });
  const abort = new AbortController();
  await watched.start(abort.signal);
  try {
    await lab.home.delete(pods, { namespace: 'shop', name });
    await eventually('gone at home', () => last.length > 0);
  } finally {
    abort.abort();
    await watched.stop();
  }
  expect(last).toMatchObject([{ status }]);
});
