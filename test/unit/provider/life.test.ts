import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { configMaps, secrets } from '../../../src/api/resources.ts';
import type { NamespaceMapping, VirtualNodeStatus } from '../../../src/api/virtual-node.ts';
import type { PodStatus } from '../../../src/api/wire.ts';
import { deepEqual } from '../../../src/lib/equality.ts';
import { STOPPED } from './support/foreign-kubelet.ts';
import { World } from './support/world.ts';

/** The life of pods between two simulated clusters, without faults. */

let world: World;
beforeEach(async () => {
  world = await new World().up();
});
afterEach(async () => world.down());

test('created, shown, deleted: and nothing is left', async () => {
  await world.start();
  world.addPod('web');
  await world.settled();
  expect(world.status('web')).toMatchObject({ phase: 'Running', hostIP: '192.0.2.1', podIP: '10.0.0.1' });
  world.deletePod('web');
  await world.until('gone at home', () => world.home.storage.get('pods', 'shop/web') === undefined);
  expect(world.body('web')).toBeUndefined();
  await world.settled();
});

test('an agent that stops shows its Node as not ready, also where others have just written both objects', async () => {
  const { provider } = await world.start();
  await world.settled();
  const { storage } = world.home;
  const ready = (resource: string): unknown => {
    const [object] = storage.list(resource) as {
      status?: { conditions?: { type: string; status: string }[] };
    }[];
    return object?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  };
  const KINDS = ['nodes', 'virtualnodes.tributary.dev'];
  expect(KINDS.map(ready)).toEqual(['True', 'True']);
  for (const kind of KINDS) {
    for (const object of storage.list(kind)) {
      const labels = { ...object.metadata.labels, 'example.com/mark': 'new' };
      storage.update(kind, { ...object, metadata: { ...object.metadata, labels } });
    }
  }
  // No watch has told of that yet.
  await world.clock.during('the last write', provider.markStopped());
  expect(KINDS.map(ready)).toEqual(['False', 'False']);
});

test('an agent looks at a pod as often as there is something to find, and not at what it has done itself', async () => {
  await world.start();
  await world.settled();
  const looks = (controller: string): number => world.looks.get(controller) ?? 0;
  const names = Array.from({ length: 20 }, (_, index) => `web-${index}`);
  world.looks.clear();
  for (const name of names) world.addPod(name);
  await world.settled();
  const perPod = (controller: string): number => looks(controller) / names.length;
  // It appears, its remote pod appears, that one is placed, and runs; then its status comes back.
  expect(perPod('pods')).toBeGreaterThan(1);
  expect(perPod('pods')).toBeLessThanOrEqual(4);
  expect(perPod('tokens')).toBe(1);
  world.looks.clear();
  for (const name of names) world.deletePod(name);
  await world.until('gone', () => names.every((name) => world.status(name) === undefined));
  await world.settled();
  // It is deleted, its remote pod is, that one ends, is gone, its end is shown, and it is gone itself.
  expect(perPod('pods')).toBeLessThanOrEqual(6);
  expect(perPod('tokens')).toBeLessThanOrEqual(2);
});

test.each([
  ['', false],
  [', also if its deletion arrives before that could be written', true],
])('how a pod ended over there is the last that home shows of it%s', async (_, isLate) => {
  await world.start();
  world.addPod('web');
  await world.settled();
  const last: unknown[] = [];
  world.home.storage.subscribe(({ resource, previous, current }) => {
    if (resource === 'pods' && current === undefined) last.push(previous?.status);
  });
  if (isLate) {
    const isStatus = ({ method, path }: { method: string; path: string }): boolean =>
      method === 'PUT' && path.endsWith('/web/status');
    world.home.fault({ match: isStatus, times: 1, status: 500 });
  }
  world.deletePod('web');
  await world.until('gone at home', () => last.length > 0);
  const terminated = { exitCode: STOPPED, reason: 'Error' };
  expect(last).toMatchObject([{ phase: 'Failed', containerStatuses: [{ state: { terminated } }] }]);
});

test('a pod that the foreign cluster is ending is deleted at home while its containers still run', async () => {
  await world.start();
  world.addPod('web');
  await world.settled();
  const { storage } = world.home;
  const pod = storage.get('pods', 'shop/web');
  if (pod === undefined) throw new Error('web is gone');
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true };
  storage.update('pods', { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } });
  await world.settled();
  world.kubelet.holding = true;
  const remote = world.foreign.storage.get('pods', 'tenant/web');
  if (remote === undefined) throw new Error('its remote pod is gone');
  const deletionTimestamp = new Date(world.clock.now() + 30_000).toISOString();
  const going = { deletionTimestamp, deletionGracePeriodSeconds: 30 };
  world.foreign.storage.update('pods', { ...remote, metadata: { ...remote.metadata, ...going } });
  const isGoing = (): boolean => storage.get('pods', 'shop/web')?.metadata.deletionTimestamp !== undefined;
  await world.until('it goes at home', isGoing);
  expect(storage.get('pods', 'shop/web')?.metadata.deletionGracePeriodSeconds).toBe(30);
  expect(world.status('web')).toMatchObject({
    phase: 'Running',
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: 'DisruptionTarget', reason: 'DeletionByForeignCluster' }),
    ]),
  });
  expect(world.events.join()).toContain('so it ends here, too');
  world.kubelet.release();
  await world.until('gone at home', () => storage.get('pods', 'shop/web') === undefined);
});

test('a pod that a controller counts is ended before it is let go', async () => {
  await world.start();
  world.addPod('work');
  await world.settled();
  const { storage } = world.home;
  const finalizers = ['batch.kubernetes.io/job-tracking'];
  const pod = storage.get('pods', 'shop/work');
  if (pod === undefined) throw new Error('work is gone');
  storage.update('pods', { ...pod, metadata: { ...pod.metadata, finalizers } });
  world.deletePod('work');
  const ended = (): boolean => {
    const { metadata, status } = storage.get('pods', 'shop/work') ?? {};
    return (
      metadata?.deletionGracePeriodSeconds === 0 &&
      ['Failed', 'Succeeded'].includes(String(status?.['phase']))
    );
  };
  await world.until('ended at home, and held by its finalizer', ended);
  expect(world.body('work')).toBeUndefined();
});

test('one that never had a body, too', async () => {
  world.foreign.fault({
    match: ({ method, path }) => method === 'POST' && path.endsWith('/pods'),
    status: 403,
    times: Infinity,
  });
  await world.start();
  world.addPod('work');
  await world.until('refused', () => world.status('work')?.['reason'] === 'Forbidden');
  const { storage } = world.home;
  const pod = storage.get('pods', 'shop/work');
  if (pod === undefined) throw new Error('work is gone');
  const finalizers = ['batch.kubernetes.io/job-tracking'];
  storage.update('pods', { ...pod, metadata: { ...pod.metadata, finalizers } });
  world.deletePod('work');
  await world.until('failed', () => world.status('work')?.['phase'] === 'Failed');
  await world.until(
    'held by its finalizer only',
    () => storage.get('pods', 'shop/work')?.metadata.deletionGracePeriodSeconds === 0,
  );
});

test('a pod that waits for a Secret is accepted, says so, and runs when it comes', async () => {
  await world.start();
  world.addPod('web', {
    containers: [{ name: 'main', image: 'x', envFrom: [{ secretRef: { name: 'key' } }] }],
  });
  world.addPod('hasty', {
    containers: [{ name: 'main', image: 'x', envFrom: [{ secretRef: { name: 'key', optional: true } }] }],
  });
  await world.until('waits', () => world.status('web')?.['startTime'] !== undefined);
  const { startTime } = world.status('web') ?? {};
  expect(world.status('web')).toMatchObject({ phase: 'Pending', hostIP: '192.0.2.1' });
  await world.until('runs without it', () => world.status('hasty')?.['phase'] === 'Running');
  expect(world.events.toSorted()).toEqual([
    'MandatorySecretNotFound: secret "key" not found',
    'MissingReference: secret "key" not found',
    'OptionalSecretNotFound: container "main" goes without optional variables: secret "key" not found',
  ]);
  world.home.seed(secrets, { metadata: { name: 'key', namespace: 'shop' }, data: {} });
  await world.settled();
  expect(world.status('web')).toMatchObject({ phase: 'Running', startTime });
});

test('a pod that only waited for a Secret can be deleted, and nothing is made over there', async () => {
  await world.start();
  world.addPod('web', { volumes: [{ name: 'files', secret: { secretName: 'key' } }] });
  await world.until('waits', () => world.status('web')?.['startTime'] !== undefined);
  world.deletePod('web');
  await world.until('gone at home', () => world.home.storage.get('pods', 'shop/web') === undefined);
  await world.settled();
  expect(world.events.some((line) => line.startsWith('RemotePodLost'))).toBe(false);
});

test.each(['that never came to be over there', 'that runs over there'])(
  'a pod %s can be deleted where our rights at home have ended with its namespace',
  async (which) => {
    const forbid = (): void => {
      const match = ({ path }: { path: string }): boolean => /\/shop\/(configmaps|secrets)$/u.test(path);
      world.home.fault({ match, times: Infinity, status: 403 });
    };
    if (which.startsWith('that never')) {
      forbid();
      await world.start();
      world.addPod('web');
    } else {
      const agent = await world.start();
      world.addPod('web');
      await world.until('runs', () => world.status('web')?.['phase'] === 'Running');
      forbid();
      await world.replace(agent);
    }
    world.deletePod('web');
    await world.until('gone at home', () => world.home.storage.get('pods', 'shop/web') === undefined);
    expect(world.body('web')).toBeUndefined();
  },
);

test('a refusal names the field and the SharingPolicy of the provider', async () => {
  const annotations = { 'tributary.dev/sharing-policy': 'guests' };
  const known = world.home.storage.get('virtualnodes.tributary.dev', 'rome');
  if (known === undefined) throw new Error('no VirtualNode');
  world.home.storage.update('virtualnodes.tributary.dev', {
    ...known,
    metadata: { ...known.metadata, annotations },
  });
  const isCreation = ({ method, path }: { method: string; path: string }): boolean =>
    method === 'POST' && path.endsWith('/tenant/pods');
  const message = 'pods "web" is forbidden: violates PodSecurity "baseline:latest": privileged';
  world.foreign.fault({ match: isCreation, times: Infinity, status: 403, message });
  await world.start();
  world.addPod('web');
  await world.until('refused', () => world.status('web')?.['reason'] === 'Forbidden');
  const said = `${message} (podSecurity of the provider's SharingPolicy "guests")`;
  expect(world.status('web')).toMatchObject({ message: expect.stringContaining(said) });
  expect(world.events).toEqual([expect.stringContaining(said)]);
});

describe('a namespace that is taken out', () => {
  const VIRTUAL_NODES = 'virtualnodes.tributary.dev';
  const set = (namespaces: readonly NamespaceMapping[]): void => {
    const { storage } = world.home;
    const known = storage.get(VIRTUAL_NODES, 'rome');
    if (known === undefined) throw new Error('there is no VirtualNode');
    storage.update(VIRTUAL_NODES, { ...known, spec: { ...(known['spec'] as object), namespaces } });
  };
  const looksAfter = (): unknown =>
    (world.home.storage.get(VIRTUAL_NODES, 'rome')?.status as VirtualNodeStatus | undefined)?.namespaces;
  const shop = { homeNamespace: 'shop', tenantNamespace: 'tenant' };
  const reasonOf = (name: string): unknown =>
    (world.status(name) as PodStatus | undefined)?.conditions?.find(
      ({ type }) => type === 'tributary.dev/Offloaded',
    )?.reason;

  const volumes = [{ name: 'settings', configMap: { name: 'settings' } }];
  const copies = (): number => world.foreign.storage.list('configmaps').length;
  beforeEach(() => void world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' } }));

  test('begins nothing from the moment that it is to leave, and ends with the last body', async () => {
    await world.start();
    world.addPod('old', { volumes });
    await world.settled();
    set([{ ...shop, leaving: true }]);
    await world.until('confirmed', () => deepEqual(looksAfter(), [{ ...shop, leaving: true }]));
    world.addPod('new', { volumes, nodeSelector: { 'tributary.dev/virtual-node': 'rome' } });
    await world.until('refused', () => reasonOf('new') === 'NamespaceNotOffloaded');
    expect(world.events.some((line) => line.includes('take the nodeSelector'))).toBe(true);
    expect(world.body('new')).toBeUndefined();
    expect(world.status('old')).toMatchObject({ phase: 'Running' });
    set([]);
    expect(looksAfter()).toEqual([{ ...shop, leaving: true }]);
    world.deletePod('old');
    await world.until('nothing is looked after', () => deepEqual(looksAfter() ?? [], []));
    expect(copies()).toBe(0);
    // Its template keeps it here; it runs nowhere.
    expect(reasonOf('new')).toBe('NamespaceNotOffloaded');
    expect(world.body('old')).toBeUndefined();
    world.deletePod('new');
    await world.until('gone', () => world.status('new') === undefined);
  });

  test('takes pods again, with all that they need, when it is not to leave any more', async () => {
    await world.start();
    await world.settled();
    set([{ ...shop, leaving: true }]);
    await world.until('confirmed', () => deepEqual(looksAfter(), [{ ...shop, leaving: true }]));
    world.addPod('web', { volumes });
    await world.until('refused', () => reasonOf('web') === 'NamespaceNotOffloaded');
    set([shop]);
    await world.until('it runs', () => (world.status('web') as PodStatus).phase === 'Running');
    expect(reasonOf('web')).toBeUndefined();
    expect(copies()).toBe(1);
  });
});

describe('an agent that begins anew', () => {
  /** Not the probe, which asks for one. */
  const isList = ({
    method,
    path,
    query,
  }: {
    method: string;
    path: string;
    query: URLSearchParams;
  }): boolean =>
    method === 'GET' &&
    path.endsWith('/tenant/pods') &&
    query.get('watch') !== 'true' &&
    query.get('limit') !== '1';

  test('looks at pods when all are known that are over there, not at each that it hears of', async () => {
    const agent = await world.start();
    const names = Array.from({ length: 20 }, (_, index) => `web-${index}`);
    for (const name of names) world.addPod(name);
    await world.settled();
    world.foreign.fault({ match: isList, times: 1, delayMs: 3_000 });
    world.looks.clear();
    await world.replace(agent);
    await world.settled();
    await world.clock.advance(10_000);
    // It has heard of it at home; it knows all at home, and all over there.
    expect(world.looks.get('pods')).toBeLessThanOrEqual(3 * names.length);
    expect(world.looks.get('tokens')).toBeLessThanOrEqual(2 * names.length);
  });

  test('and cannot know them still says of a pod what needs no knowledge', async () => {
    world.foreign.fault({ match: isList, times: Infinity, delayMs: 20_000, status: 500 });
    await world.start();
    world.addPod('agent');
    const { storage } = world.home;
    const pod = storage.get('pods', 'shop/agent');
    if (pod === undefined) throw new Error('agent is gone');
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      name: 'agent',
      uid: 'of-the-set',
      controller: true,
    };
    storage.update('pods', { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } });
    await world.until('refused', () => JSON.stringify(world.status('agent')).includes('DaemonSet'));
  });
});
