import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { pods } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import { deepEqual } from '../../../src/lib/equality.ts';
import { OffloadWorld } from './support/offload-world.ts';

/** What a namespace leaves, and what it waits for, against an API server in memory. */

const OWNED = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }],
};
const LET_IN = { annotations: { 'tributary.dev/strategy': 'LocalAndRemote' } };
const hasEvent = (world: OffloadWorld, text: string): boolean =>
  world.events.some((line) => line.includes(text));

let world: OffloadWorld;

beforeEach(async () => {
  world = await new OffloadWorld().up();
});
afterEach(async () => world.down());

describe('removal', () => {
  test('the object goes when the last pod has been made anew, and not before', async () => {
    await world.virtualNode('milan', 'milan', { nodeName: 'node-of-milan' });
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.pod('bare', 'node-of-milan', LET_IN);
    let isRefused = true;
    world.api.fault({
      match: ({ method, path }) => isRefused && method === 'POST' && path.endsWith('/shop/pods'),
      status: 403,
      times: Infinity,
    });
    await world.remove();
    // As the agent does.
    await world.until('the pod is ended', async () => {
      const pod = await world.client.get(pods, { name: 'bare', namespace: 'shop' });
      return pod.metadata.deletionTimestamp !== undefined;
    });
    await world.client.delete(pods, { name: 'bare', namespace: 'shop' }, { gracePeriodSeconds: 0 });
    await world.until('refused', () => hasEvent(world, 'RemakeFailed'));
    await world.until('nothing mapped', async () => (await world.mappings('milan')).length === 0);
    await world.clock.advance(5000);
    expect(await world.get()).toBeDefined();
    isRefused = false;
    await world.untilGone();
    const made = await world.client.get(pods, { name: 'bare', namespace: 'shop' });
    expect(made.metadata.annotations?.['tributary.dev/released-from']).toBe('milan');
    expect(hasEvent(world, 'LeftBehind')).toBe(false);
  });
});

describe('a peering ends', () => {
  const ask = async (name: string, budgetsUntil = 0): ReturnType<OffloadWorld['offloading']['makeAnew']> =>
    world.offloading.makeAnew(await world.client.get(pods, { name, namespace: 'shop' }), {
      budgetsUntil,
      signal: new AbortController().signal,
    });

  beforeEach(async () => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.pod('bare', 'milan', LET_IN);
    await world.pod('owned', 'milan', { ...OWNED, ...LET_IN });
    await world.pod('done', 'milan', LET_IN, 'Succeeded');
  });

  test('a pod without a controller is made anew at home, whoever ends it', async () => {
    await world.offload();
    await world.untilReady('AsExpected');
    for (const name of ['bare', 'owned', 'done']) expect(await ask(name)).toEqual({ mayEnd: true });
    await world.until('made anew', async () => (await world.podNames()).includes('bare@'));
    const made = await world.client.get(pods, { name: 'bare', namespace: 'shop' });
    expect(made.metadata.annotations?.['tributary.dev/released-from']).toBe('milan');
    await world.until('forgotten', async () => (await world.journals()) === 0);
    expect(await world.podNames()).toEqual(['bare@', 'done@milan', 'owned@milan']);
  });

  test.each([
    ['its namespace says End', { onRemoval: 'End' } as const],
    ['its namespace has no NamespaceOffloading', undefined],
  ])('it is left to end where %s', async (_what, spec) => {
    if (spec !== undefined) {
      await world.offload(spec);
      await world.untilReady('AsExpected');
    }
    expect(await ask('bare')).toEqual({ mayEnd: true });
    expect(await world.journals()).toBe(0);
  });

  test('nothing is stored while a budget holds it, nor twice', async () => {
    await world.offload();
    await world.untilReady('AsExpected');
    const message = "Cannot evict pod as it would violate the pod's disruption budget.";
    const match = ({ path }: { path: string }): boolean => path.includes('bare/eviction');
    world.api.fault({ match, times: 1, status: 500, message });
    const untilMs = world.clock.now() + 3_600_000;
    expect(await ask('bare', untilMs)).toMatchObject({
      mayEnd: false,
      held: { pod: { metadata: { name: 'bare' } } },
    });
    expect(await world.journals()).toBe(0);
    world.dead.add('milan');
    expect(await ask('bare')).toEqual({ mayEnd: true });
    await world.until('ending', async () => {
      const { metadata } = await world.client.get(pods, { name: 'bare', namespace: 'shop' });
      return metadata.deletionTimestamp !== undefined;
    });
    const before = world.api.count(/POST .*secrets/);
    expect(await ask('bare')).toEqual({ mayEnd: true });
    expect(world.api.count(/POST .*secrets/)).toBe(before);
  });

  test('what cannot be stored is told on the pod, which waits', async () => {
    await world.offload();
    await world.untilReady('AsExpected');
    const match = ({ method, path }: { method: string; path: string }): boolean =>
      method === 'POST' && path.includes('/secrets');
    world.api.fault({ match, times: 1, status: 403 });
    expect(await ask('bare')).toEqual({ mayEnd: false });
    expect(hasEvent(world, 'Pod/bare NotBroughtHome')).toBe(true);
  });
});

describe('two virtual nodes of one provider', () => {
  const zone = (name: string): { labels: Record<string, string> } => ({ labels: { zone: name } });
  const ONLY_A = { clusterSelector: { matchLabels: { zone: 'a' } } };
  const shown = async (): Promise<string[]> => (await world.clusters()).flatMap((one) => one.virtualNodes);

  beforeEach(async () => {
    await world.virtualNode('milan-1', 'milan', zone('a'));
    await world.virtualNode('milan-2', 'milan', zone('b'));
    await world.start();
  });

  test('only those that are selected are shown, though the mapping is of both', async () => {
    await world.offload(ONLY_A);
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan-2')).includes('shop'));
    expect(await shown()).toEqual(['milan-1']);
    await world.pod('by-its-own-wish', 'milan-2', OWNED);
    await world.clock.advance(10_000);
    expect(await shown()).toEqual(['milan-1']);
    expect(await world.podNames()).toEqual(['by-its-own-wish@milan-2']);
  });

  test('another selector: pods end on the one that it leaves, and nothing else changes', async () => {
    const { metadata } = await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan-2')).includes('shop'));
    await world.pod('stays', 'milan-1', { ...OWNED, ...LET_IN });
    await world.pod('goes', 'milan-2', { ...OWNED, ...LET_IN });
    await world.pod('returns', 'milan-2', LET_IN);
    await world.pod('slow', 'milan-2', { ...OWNED, finalizers: ['test/wait'] });
    await world.client.patch(namespaceOffloadings, metadata, { type: 'merge', body: { spec: ONLY_A } });
    await world.until('ended', async () => !(await world.podNames()).includes('goes@milan-2'));
    expect(await shown()).toEqual(['milan-1', 'milan-2']);
    expect(await world.phases()).toEqual(['milan Ready AsExpected']);
    expect((await world.clusters())[0]?.message).toBe('no longer selected: pods on milan-2 end');
    // The next process goes on with it.
    await world.replace();
    const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await world.client.patch(pods, { name: 'slow', namespace: 'shop' }, freed);
    await world.until('done', async () => (await shown()).length === 1);
    await world.until('made anew', async () => (await world.podNames()).includes('returns@'));
    expect(await world.podNames()).toEqual(['returns@', 'stays@milan-1']);
    expect(await world.mappings('milan-1')).toEqual(['shop']);
    expect(await world.mappings('milan-2')).toEqual(['shop']);
  });
});

describe('a namespace that a policy names, too', () => {
  const isOver = async (): Promise<boolean> => (await world.get()) === undefined;

  beforeEach(async () => {
    world.named.add('milan/shop');
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
    await world.pod('let-in', 'milan', { ...OWNED, ...LET_IN });
    await world.pod('by-policy', 'milan', OWNED);
  });

  test('removal ends what the webhook has let in, and does not wait for the mapping', async () => {
    await world.remove();
    await world.until('gone', isOver);
    expect(await world.podNames()).toEqual(['by-policy@milan']);
    expect(await world.mappings('milan')).toEqual(['shop']);
    expect(hasEvent(world, 'LeftBehind')).toBe(false);
  });

  test('a selector that leaves the cluster does not wait for it, either', async () => {
    await world.virtualNode('paris', 'paris');
    const ref = { name: 'offloading', namespace: 'shop' };
    const spec = { clusterSelector: { matchLabels: { 'tributary.dev/cluster': 'paris' } } };
    await world.client.patch(namespaceOffloadings, ref, { type: 'merge', body: { spec } });
    await world.until('left', async () =>
      deepEqual(
        (await world.clusters()).map(({ cluster }) => cluster),
        ['paris'],
      ),
    );
    expect(await world.podNames()).toEqual(['by-policy@milan']);
    expect(await world.mappings('milan')).toEqual(['shop']);
  });
});

describe('pods that their own template sends to the virtual node', () => {
  const LEAVING = { homeNamespace: 'shop', tenantNamespace: 'shop-there', leaving: true };
  const REFUSED = {
    phase: 'Pending',
    conditions: [{ type: 'tributary.dev/Offloaded', status: 'False', reason: 'NamespaceNotOffloaded' }],
  };
  const ASKING = { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } };
  const begun = async (): Promise<void> => {
    await world.virtualNode('milan', 'milan');
    await world.start();
    await world.offload();
    await world.untilReady('AsExpected');
    await world.until('mapped', async () => (await world.mappings('milan')).includes('shop'));
  };
  /** A pod as the next one of its controller is. */
  const next = async (name: string, status: object): Promise<void> => {
    await world.client.create(pods, {
      metadata: { name, namespace: 'shop', ...OWNED },
      spec: { containers: [{ name: 'app', image: 'app' }], nodeName: 'milan', ...ASKING },
    });
    const body = { status };
    await world.client.patch(
      pods,
      { name, namespace: 'shop' },
      { type: 'merge', body },
      { subresource: 'status' },
    );
  };
  const evictions = (): number => world.api.count(/POST .*eviction/);

  test('none is ended before its agent has confirmed that it begins no more there', async () => {
    await begun();
    world.dead.add('milan');
    await world.pod('old', 'milan', OWNED);
    await world.remove();
    await world.until('it is ending', async () => (await world.phases()).includes('milan Ending Ending'));
    await world.clock.advance(5000);
    expect(evictions()).toBe(0);
    world.dead.delete('milan');
    await world.until('ended', () => evictions() > 0);
    await world.untilGone();
    expect(await world.podNames()).toEqual([]);
  });

  test('an agent that confirms nothing is waited for ten seconds', async () => {
    await begun();
    world.dead.add('milan');
    await world.pod('old', 'milan', OWNED);
    await world.remove();
    await world.until('ended', () => evictions() > 0, 15_000);
  });

  test('one that was refused stays, is named with what to change, and delays nothing', async () => {
    await begun();
    await world.pod('old', 'milan', { ...OWNED, finalizers: ['test/wait'] });
    await world.remove();
    await world.until('ended', () => evictions() > 0);
    await world.clock.advance(1000);
    await next('new', REFUSED);
    const advice =
      'take the nodeSelector tributary.dev/virtual-node out of the pod template of ReplicaSet web';
    await world.until('named', async () => {
      const offloading = await world.get();
      return offloading?.status?.conditions?.[0]?.message.includes(advice) === true;
    });
    expect(hasEvent(world, `KeptAwayByTemplate: pod new waits for a virtual node`)).toBe(true);
    const began = world.clock.now();
    const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await world.client.patch(pods, { name: 'old', namespace: 'shop' }, freed);
    await world.untilGone();
    expect(world.clock.now() - began).toBeLessThan(10_000);
    expect(await world.podNames()).toEqual(['new@milan']);
    expect(hasEvent(world, 'LeftBehind')).toBe(false);
  });

  test('one that began before the agent had heard of it is ended, too', async () => {
    await begun();
    await world.pod('old', 'milan', { ...OWNED, finalizers: ['test/wait'] });
    await world.remove();
    await world.until('confirmed', async () => {
      const { status } = await world.client.get(virtualNodes, { name: 'milan' });
      return deepEqual(status?.namespaces, [LEAVING]);
    });
    await world.clock.advance(1000);
    await next('late', { phase: 'Running', startTime: new Date(world.clock.now()).toISOString() });
    await world.until('it is gone', async () => !(await world.podNames()).includes('late@milan'));
    const freed = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await world.client.patch(pods, { name: 'old', namespace: 'shop' }, freed);
    await world.untilGone();
  });
});
