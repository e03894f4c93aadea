import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { podMetrics, type PodSample } from '../../../src/api/pod-usage.ts';
import { namespaces } from '../../../src/api/resources.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import type { Provider } from '../../../src/provider/provider.ts';
import { ForeignUsage, runningPods } from '../../../src/provider/usage.ts';
import { ResourceMetrics } from '../../../src/server/kubelet/resource-metrics.ts';
import { World } from './support/world.ts';

const NOTHING_ELSE = { recordFailure: () => expect(undefined).toBe('an answer'), prune: () => undefined };

let world: World;
beforeEach(async () => {
  world = await new World({ types: [podMetrics] }).up();
});
afterEach(async () => world.down());

test('what a pod uses is told under its name and UID at home; of swap, what the foreign cluster says', async () => {
  const { provider } = await world.start();
  const uid = world.addPod('web', {
    containers: [
      { name: 'main', image: 'web:1' },
      { name: 'side', image: 'side:1' },
    ],
  });
  await world.settled();
  world.foreign.seed(podMetrics, {
    metadata: { name: 'web', namespace: 'tenant' },
    timestamp: new Date(world.clock.now()).toISOString(),
    window: '15s',
    containers: [
      { name: 'main', usage: { cpu: '250m', memory: '64Mi', swap: '4Ki' } },
      { name: 'side', usage: { cpu: '0', memory: '1Mi' } },
    ],
  });
  const recorded: PodSample[] = [];
  const record = { record: (samples: readonly PodSample[]) => recorded.push(...samples), ...NOTHING_ELSE };
  const usage = new ForeignUsage(provider, record, { clock: world.clock, log: silentLogger });
  await world.clock.during('read', usage.refresh());
  expect(recorded).toMatchObject([{ namespace: 'shop', name: 'web', uid, windowMs: 15_000 }]);
  const [main, side] = recorded[0]?.containers ?? [];
  expect(main).toMatchObject({ name: 'main', cpu: '250m', memory: '64Mi', swap: '4Ki' });
  expect(side).toMatchObject({ name: 'side', cpu: '0', memory: '1Mi' });
  expect(side).not.toHaveProperty('swap');
});

/** Of the containers, as the foreign metrics server tells it now. */
function measured(name: string, containers: readonly string[] = ['main']): void {
  world.foreign.seed(podMetrics, {
    metadata: { name, namespace: 'tenant' },
    timestamp: new Date(world.clock.now()).toISOString(),
    window: '15s',
    containers: containers.map((one) => ({ name: one, usage: { cpu: '250m', memory: '64Mi' } })),
  });
}

/** What is told to a record, in order, and the lines that are logged above debug. */
function follow(provider: Provider): { usage: ForeignUsage; told: unknown[]; lines: string[] } {
  const told: unknown[] = [];
  const lines: string[] = [];
  const record = {
    record: (samples: readonly PodSample[]) => told.push(samples.map(({ name }) => name)),
    recordFailure: () => told.push('failure'),
    prune: () => undefined,
  };
  const log = {
    ...silentLogger,
    info: (text: string, more: object = {}) => lines.push(JSON.stringify({ text, ...more })),
  };
  return { usage: new ForeignUsage(provider, record, { clock: world.clock, log }), told, lines };
}

/** These are offloaded as well, and are before the first one. */
async function offload(...others: readonly string[]): Promise<void> {
  const { storage } = world.home;
  const node = storage.get('virtualnodes.tributary.dev', 'rome');
  if (node === undefined) throw new Error('no VirtualNode');
  for (const name of others) {
    world.home.seed(namespaces, { metadata: { name } });
    world.foreign.seed(namespaces, { metadata: { name: `tenant-${name}` } });
  }
  const added = others.map((name) => ({ homeNamespace: name, tenantNamespace: `tenant-${name}` }));
  const shop = { homeNamespace: 'shop', tenantNamespace: 'tenant' };
  storage.update('virtualnodes.tributary.dev', {
    ...node,
    spec: { ...node.spec, namespaces: [...added, shop] },
  });
}

const isOfBar = ({ path }: { path: string }): boolean =>
  path.startsWith('/apis/metrics.k8s.io') && path.includes('/tenant-bar');

test('a namespace that cannot be read hides nothing of the others, and is told of when it begins', async () => {
  await offload('bar');
  const { provider } = await world.start();
  world.addPod('web');
  await world.settled();
  measured('web');
  const { usage, told, lines } = follow(provider);
  const read = async (): Promise<unknown[]> => {
    told.length = 0;
    await world.clock.advance(6_000);
    await world.clock.during('read', usage.refresh());
    return [...told];
  };
  const refuse = (): (() => void) =>
    world.foreign.fault({ match: isOfBar, times: Infinity, status: 403, message: 'not for you' });
  const allow = refuse();
  expect(await read()).toEqual([['web'], 'failure']);
  expect(await read()).toEqual([['web'], 'failure']);
  expect(lines).toEqual([expect.stringMatching(/tenant-bar.*not for you/u)]);
  allow();
  expect(await read()).toEqual([['web']]);
  refuse();
  expect(await read()).toEqual([['web'], 'failure']);
  expect(lines).toHaveLength(2);
});

test.each([1, 12])(
  'others are read while %i namespaces hang, and those who scrape need not give up',
  async (count) => {
    const hanging = Array.from({ length: count }, (_, index) => `bar-${index}`);
    await offload(...hanging);
    const { provider } = await world.start();
    world.addPod('web');
    await world.settled();
    measured('web');
    world.foreign.fault({ match: isOfBar, times: Infinity, stall: true });
    const { usage, told, lines } = follow(provider);
    const before = world.clock.monotonic();
    const read = usage.refresh();
    await world.clock.advance(0);
    expect(world.foreign.count(/metrics\.k8s\.io.*\/tenant\/pods/u)).toBe(count === 1 ? 1 : 0);
    await world.clock.during('read', read);
    expect(world.clock.monotonic() - before).toBeLessThan(9_000);
    // Of twelve, eight take all the time once. They are known by then.
    expect(told).toEqual(count === 1 ? [['web'], 'failure'] : ['failure']);
    told.length = 0;
    await world.clock.advance(6_000);
    await world.clock.during('read', usage.refresh());
    expect(told).toEqual([['web'], 'failure']);
    expect(lines).toHaveLength(count);
  },
);

test('a cluster that says nothing at all leaves everything as it was', async () => {
  const { provider } = await world.start();
  world.foreign.fault({
    match: ({ path }) => path.startsWith('/apis/metrics.k8s.io'),
    times: Infinity,
    status: 404,
  });
  const { usage, told } = follow(provider);
  await world.clock.during('read', usage.refresh());
  expect(told).toEqual(['failure']);
});

test('a pod that has ended counts no longer, although its object stays', async () => {
  const { provider } = await world.start();
  const clock = world.clock;
  const figures = new ResourceMetrics({
    nodeName: 'rome',
    startTimeMs: clock.now(),
    own: () => ({ cpuSeconds: 0, memoryBytes: 1 }),
  });
  const usage = new ForeignUsage(provider, figures, { clock, log: silentLogger });
  const node = async (): Promise<{
    memory?: { usageBytes: number };
    cpu?: { usageCoreNanoSeconds: number };
  }> => {
    await clock.advance(6_000);
    await clock.during('read', usage.refresh());
    return (figures.summary([], clock.now()) as { node: object }).node;
  };
  world.addPod('job', { restartPolicy: 'Never' });
  await world.settled();
  measured('job');
  const before = await node();
  expect(before.memory?.usageBytes).toBe(64 * 1024 * 1024 + 1);
  world.kubelet.finish('tenant/job', 'Succeeded');
  await world.until('home shows it', () => world.status('job')?.['phase'] === 'Succeeded');
  // The metrics server still speaks of it.
  const after = await node();
  expect(after.memory?.usageBytes).toBe(1);
  expect(after.cpu?.usageCoreNanoSeconds).toBe(before.cpu?.usageCoreNanoSeconds);
  expect(world.home.storage.get('pods', 'shop/job')).toBeDefined();
});

test('a sidecar has a start, and is among the containers that run', async () => {
  const { provider } = await world.start();
  world.addPod('web', { initContainers: [{ name: 'proxy', image: 'proxy:1', restartPolicy: 'Always' }] });
  await world.settled();
  const body = world.body('web');
  if (body === undefined) throw new Error('no body');
  const startedAt = new Date(world.clock.now()).toISOString();
  const proxy = {
    name: 'proxy',
    image: 'proxy:1',
    imageID: 'sha256:2',
    containerID: 'containerd://proxy',
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt } },
    lastState: {},
  };
  world.foreign.storage.update('pods', {
    ...body,
    status: { ...body.status, initContainerStatuses: [proxy] },
  });
  await world.until('home shows it', () => world.status('web')?.['initContainerStatuses'] !== undefined);
  measured('web', ['main', 'proxy']);
  const samples: PodSample[] = [];
  const record = { record: (all: readonly PodSample[]) => samples.push(...all), ...NOTHING_ELSE };
  const usage = new ForeignUsage(provider, record, { clock: world.clock, log: silentLogger });
  await world.clock.during('read', usage.refresh());
  const startTimeMs = Math.floor(Date.parse(startedAt) / 1000) * 1000;
  expect(samples[0]?.containers).toContainEqual(expect.objectContaining({ name: 'proxy', startTimeMs }));
  const [running] = await runningPods(provider.homePods);
  expect(running?.containers).toContainEqual({ name: 'proxy', startTimeMs });
});

test('a sample comes from no time that a node could be measured at: not the future, and not none', async () => {
  const { provider } = await world.start();
  const timestamps = { ahead: '2099-01-01T00:00:00Z', odd: 'yesterday', none: undefined };
  for (const [name, timestamp] of Object.entries(timestamps)) {
    world.addPod(name);
    world.foreign.seed(podMetrics, {
      metadata: { name, namespace: 'tenant' },
      ...(timestamp !== undefined && { timestamp }),
      window: '15s',
      containers: [{ name: 'main', usage: { cpu: '1', memory: '64Mi' } }],
    });
  }
  await world.settled();
  const recorded: PodSample[] = [];
  const record = { record: (samples: readonly PodSample[]) => recorded.push(...samples), ...NOTHING_ELSE };
  const usage = new ForeignUsage(provider, record, { clock: world.clock, log: silentLogger });
  await world.clock.during('read', usage.refresh());
  expect(recorded.map(({ name }) => name)).toEqual(['ahead']);
  expect(recorded[0]?.timestampMs).toBeLessThanOrEqual(world.clock.now());
});

test('containers that home does not have, a container twice, and amounts that are no texts do not count', async () => {
  const { provider } = await world.start();
  world.addPod('web');
  await world.settled();
  const many = Array.from({ length: 1000 }, (_, index) => ({ name: `x-${index}`, usage: { cpu: '1' } }));
  world.foreign.seed(podMetrics, {
    metadata: { name: 'web', namespace: 'tenant' },
    timestamp: new Date(world.clock.now()).toISOString(),
    window: '9999999h',
    containers: [
      ...many,
      { name: 7, usage: { cpu: '1' } },
      { name: 'main', usage: { cpu: { a: 1 }, memory: '64Mi', swap: 5 } },
      { name: 'main', usage: { cpu: '9' } },
    ],
  });
  const recorded: PodSample[] = [];
  const record = { record: (samples: readonly PodSample[]) => recorded.push(...samples), ...NOTHING_ELSE };
  const usage = new ForeignUsage(provider, record, { clock: world.clock, log: silentLogger });
  await world.clock.during('read', usage.refresh());
  const [sample] = recorded;
  expect(sample?.windowMs).toBe(3_600_000);
  expect(sample?.containers).toMatchObject([{ name: 'main', cpu: '0', memory: '64Mi' }]);
  expect(sample?.containers[0]).not.toHaveProperty('swap');
});
