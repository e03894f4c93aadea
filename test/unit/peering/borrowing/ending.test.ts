import { afterEach, describe, expect, test } from '@jest/globals';
import { nodes, pods } from '../../../../src/api/resources.ts';
import type { MakeAnew } from '../../../../src/kube/drain.ts';
import { type Running, World } from './support/world.ts';

let world: World;
afterEach(async () => world.down());

const established = async (more: ConstructorParameters<typeof World>[0] = {}): Promise<Running> => {
  world = await new World(more).up();
  const running = await world.start();
  await world.established();
  return running;
};

const pod = (name: string): ReturnType<World['home']['storage']['get']> =>
  world.home.storage.get('pods', `shop/${name}`);

/** From the intent to the end, in milliseconds of the world's clock. */
async function tookMs(end: () => Promise<void>): Promise<number> {
  const from = world.clock.monotonic();
  await end();
  return world.clock.monotonic() - from;
}

test('pods that do not end are ended by force, a dead agent or not, and nothing stays', async () => {
  await established({ drain: { evictMs: 4000, endMs: 1000 } });
  world.agents.dead = true;
  world.addPod('web', 'milan');
  world.addPod('daemon', 'milan', { ownerReferences: [{ kind: 'DaemonSet', controller: true, uid: 'd' }] });
  world.addPod('elsewhere', 'real');
  const own = world.home.seed(nodes, { metadata: { name: 'real' } });
  const took = await tookMs(async () => {
    world.want({ wanted: false });
    await world.until('gone', () => world.advertisement === undefined);
  });
  expect(took).toBeGreaterThanOrEqual(4000);
  expect(pod('elsewhere')).toBeDefined();
  expect(world.home.storage.get('nodes', 'real')).toEqual(own);
  await world.until('withdrawn', () => world.provider.request === undefined);
  expect(world.leftovers()).toEqual(['nodes/real', 'pods/elsewhere']);
});

test('pods are ended only once the node is closed, and DaemonSets are not waited for', async () => {
  // Whatever is waited for until its deadline is waited for longer than this test lives.
  await established({ drain: { evictMs: 86_400_000, endMs: 86_400_000 } });
  world.addPod('web', 'milan');
  world.addPod('daemon', 'milan', { ownerReferences: [{ kind: 'DaemonSet', controller: true, uid: 'd' }] });
  let openWhenDeleted = false;
  world.home.storage.subscribe(({ resource, current }) => {
    if (resource !== 'pods' || current?.metadata.deletionTimestamp === undefined) return;
    const { spec } = world.home.storage.get('nodes', 'milan') ?? {};
    if (!JSON.stringify(spec?.['taints']).includes('tributary.dev/closed')) openWhenDeleted = true;
  });
  world.want({ wanted: false });
  await world.gone();
  expect(openWhenDeleted).toBe(false);
});

test('pods of peers are deleted at once: nobody may evict them', async () => {
  await established({ drain: { evictMs: 86_400_000, endMs: 86_400_000 } });
  const match = ({ path }: { path: string }): boolean => path.includes('guest/eviction');
  world.home.fault({ match, times: Infinity, status: 403 });
  world.addPod('guest', 'milan', { labels: { 'tributary.dev/home-uid': 'u' } });
  world.addPod('web', 'milan');
  world.want({ wanted: false });
  await world.gone();
  expect(world.home.count(/guest\/eviction/)).toBe(0);
  expect(world.home.count(/web\/eviction/)).toBe(1);
});

test('pods are asked about before they end, and one that cannot be made anew waits, but not for ever', async () => {
  let isStored = false;
  const asked: string[] = [];
  const makeAnew: MakeAnew = async ({ metadata }) => {
    asked.push(metadata.name);
    expect(pod(metadata.name)?.metadata.deletionTimestamp).toBeUndefined();
    return Promise.resolve({ mayEnd: metadata.name === 'web' || (metadata.name === 'late' && isStored) });
  };
  const offloadings = { of: () => [], onChange: () => () => {}, makeAnew };
  await established({ drain: { evictMs: 4000, endMs: 1000 }, offloadings });
  for (const name of ['web', 'late', 'never']) world.addPod(name, 'milan');
  world.want({ wanted: false });
  await world.until('asked', () => pod('web') === undefined && asked.includes('late'));
  expect(pod('late')?.metadata.deletionTimestamp).toBeUndefined();
  isStored = true;
  await world.until('ended', () => pod('late') === undefined);
  expect(pod('never')?.metadata.deletionTimestamp).toBeUndefined();
  await world.gone();
});

test('the request stands until nothing is left here, then it is withdrawn', async () => {
  await established();
  world.addPod('web', 'milan');
  world.agents.stubborn = true;
  world.want({ wanted: false });
  await world.until('ending', () => pod('web')?.metadata.deletionTimestamp !== undefined);
  expect(world.provider.request?.namespaces).toEqual(['shop']);
  expect(world.provider.acceptance?.text).toBe(world.provider.contract?.text);
  expect(world.secret).toBeDefined();
  world.agents.stubborn = false;
  world.agents.work();
  await world.gone();
});

test('with the provider dead and the link down, all of it ends in time', async () => {
  await established({ drain: { evictMs: 4000, endMs: 1000 } });
  world.addPod('web', 'milan');
  world.agents.dead = true;
  world.link(false);
  world.want({ wanted: false, force: true });
  await world.until('gone', () => world.advertisement === undefined);
  expect(world.leftovers()).toEqual(['the request']);
  world.link(true);
  await world.gone();
});

test('wanted again on the way: opened again, and nothing of it is lost', async () => {
  const { borrowing } = await established();
  const { uid } = world.virtualNode('milan')?.metadata ?? {};
  world.addPod('web', 'milan');
  world.agents.stubborn = true;
  world.want({ wanted: false });
  await world.until(
    'ending',
    () => borrowing.report(world.id).phase === 'Ending' && pod('web') !== undefined,
  );
  await world.until('closed', () => world.virtualNode('milan')?.spec.taints?.length === 1);
  world.want({ wanted: true });
  await world.until('open', () => world.virtualNode('milan')?.spec.taints === undefined);
  expect(world.virtualNode('milan')?.metadata.annotations).not.toHaveProperty('tributary.dev/ending-since');
  await world.until('in use', () => borrowing.report(world.id).phase === 'Established');
  expect(world.virtualNode('milan')?.metadata.uid).toBe(uid);
});

test('an Advertisement that a person deletes ends the peering; still wanted, it begins anew', async () => {
  await established();
  const { uid } = world.advertisement?.metadata ?? {};
  const { advertisements } = await import('../../../../src/api/advertisement.ts');
  const client = world.home.client({ token: async () => 'cluster-role' });
  await client.delete(advertisements, { name: world.id });
  await client.close();
  await world.until('anew', () => ![undefined, uid].includes(world.advertisement?.metadata.uid));
  await world.established();
});

test.each(['Denied', 'Ended'] as const)(
  '%s by the provider: taken down here, and used again once it may be',
  async (assessment) => {
    const { borrowing } = await established();
    world.addPod('web', 'milan');
    world.provider.assessment = assessment;
    world.provider.contract = undefined;
    world.say();
    await world.until('denied', () => borrowing.report(world.id).phase === 'Denied');
    expect(borrowing.report(world.id)).toMatchObject(
      assessment === 'Denied'
        ? { reason: 'DeniedByPeer', message: 'the provider says: not you' }
        : { reason: 'NoPolicyMatches', message: 'the provider says: over' },
    );
    expect(world.leftovers()).toEqual([`advertisements.tributary.dev/${world.id}`, 'the request']);
    expect(world.advertisement?.status?.contract).toBeUndefined();
    expect(world.provider.acceptance).toBeUndefined();
    world.provider.assessment = 'Automatic';
    world.provider.renew();
    world.say();
    await world.established();
  },
);

/** A pod with two budgets can never be evicted. */
const TWO_BUDGETS =
  'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';

describe('the provider says when it ends', () => {
  const leave = (inMs: number): void => {
    world.provider.ends = new Date(world.clock.now() + inMs).toISOString().replace(/\.\d+Z$/u, 'Z');
    world.say();
  };

  test('pods are evicted while their agent can still end them, then the contract is given back', async () => {
    const { borrowing } = await established();
    world.addPod('web', 'milan');
    world.agents.stubborn = true;
    leave(300_000);
    await world.until('evicted', () => pod('web')?.metadata.deletionTimestamp !== undefined);
    expect(world.home.count(/web\/eviction/)).toBe(1);
    const said = borrowing.report(world.id);
    expect(said.phase).toBe('Ending');
    expect(said.message).toMatch(/^the provider ends it at 20/u);
    expect(world.provider.acceptance).toBeDefined();
    world.agents.stubborn = false;
    world.agents.work();
    await world.until('given back', () => world.provider.acceptance === undefined);
    await world.until('denied', () => borrowing.report(world.id).phase === 'Denied');
    expect(world.virtualNode('milan')).toBeUndefined();
  });

  test('a budget holds a pod until it must go to end well, and no longer', async () => {
    await established();
    world.addPod('web', 'milan');
    world.agents.stubborn = true;
    const match = ({ path }: { path: string }): boolean => path.includes('web/eviction');
    world.home.fault({ match, times: Infinity, status: 500, message: TWO_BUDGETS });
    const from = world.clock.monotonic();
    leave(120_000);
    await world.until('deleted', () => pod('web')?.metadata.deletionTimestamp !== undefined);
    const tookMs = world.clock.monotonic() - from;
    expect(tookMs).toBeGreaterThan(80_000);
    expect(tookMs).toBeLessThan(90_000);
    expect(pod('web')?.metadata['deletionGracePeriodSeconds']).not.toBe(0);
  });

  test('it has thought again: the node is open, and nothing of it is lost', async () => {
    const { borrowing } = await established();
    const { uid } = world.virtualNode('milan')?.metadata ?? {};
    world.addPod('web', 'milan');
    world.agents.stubborn = true;
    leave(300_000);
    await world.until('closed', () => world.virtualNode('milan')?.spec.taints?.length === 1);
    world.provider.ends = undefined;
    world.say();
    await world.until('open', () => world.virtualNode('milan')?.spec.taints === undefined);
    await world.until('in use', () => borrowing.report(world.id).phase === 'Established');
    expect(world.virtualNode('milan')?.metadata.uid).toBe(uid);
  });
});

test('a restart keeps what was agreed on, without the link and without a new token', async () => {
  const { borrowing } = await established();
  expect(world.calls).toBe(1);
  const { secret } = world;
  await world.until('in use', () => borrowing.report(world.id).phase === 'Established');
  world.connected = false;
  const next = await world.replaceAll();
  expect(next.borrowing.report(world.id).phase).toBe('Established');
  const from = world.home.log.length;
  await world.until('opened again', () => world.reach.opened === 2);
  world.link(true);
  await world.until('heard', () => world.reach.opened === 3);
  expect(world.calls).toBe(1);
  expect(world.secret).toEqual(secret);
  expect(world.home.log.slice(from).filter((line) => !line.startsWith('GET'))).toEqual([]);
});

test('a clock that is set far forward ends nothing while the provider is there', async () => {
  const { borrowing } = await established();
  const { uid } = world.virtualNode('milan')?.metadata ?? {};
  world.addPod('web', 'milan');
  world.jump(24 * 3_600_000);
  await world.until('said', () => world.advertisement?.status?.reason === 'Expired');
  world.say();
  await world.until('in use', () => borrowing.report(world.id).phase === 'Established');
  expect(world.virtualNode('milan')?.metadata.uid).toBe(uid);
  expect(world.virtualNode('milan')?.metadata.annotations).not.toHaveProperty('tributary.dev/ending-since');
  expect(pod('web')?.metadata.deletionTimestamp).toBeUndefined();
});

test('an offer that nobody renews: said at once, ended after the time that the contract gives', async () => {
  const { borrowing } = await established();
  world.link(false);
  // The offer's life, and what two clocks may differ by.
  world.jump(3_600_000 + 300_000);
  await world.until('said', () => world.advertisement?.status?.reason === 'Expired');
  await world.until('still in use', () => borrowing.report(world.id).phase === 'Established');
  expect(world.virtualNode('milan')?.spec.taints).toBeUndefined();
  // A clock that is set forward ends nothing: the provider has to be silent for so long.
  world.jump(86_400_000);
  await world.clock.advance(60_000);
  expect([borrowing.report(world.id).phase, world.virtualNode('milan')?.spec.taints]).toEqual([
    'Established',
    undefined,
  ]);
  await world.clock.advance(3_600_000);
  await world.until('over', () => world.secret === undefined && world.virtualNode('milan') === undefined);
  await world.until('forgotten', () => world.advertisement?.status?.contract === undefined);
});

test('what bears a provider’s name without an Advertisement is taken down', async () => {
  await established();
  const { storage } = world.home;
  world.silence();
  storage.remove('advertisements.tributary.dev', world.id);
  world.intent = { wanted: false, namespaces: [] };
  await world.replaceAll();
  await world.gone();
});

test('a Node of the same name that is not ours keeps its pods', async () => {
  await established();
  const { storage } = world.home;
  world.agents.dead = true;
  storage.remove('nodes', 'milan');
  world.home.seed(nodes, { metadata: { name: 'milan', labels: { real: 'yes' } } });
  world.home.seed(pods, {
    metadata: { name: 'system', namespace: 'kube-system' },
    spec: { nodeName: 'milan', containers: [] },
    status: { phase: 'Running' },
  });
  world.want({ wanted: false });
  await world.until('gone', () => world.advertisement === undefined);
  expect(storage.get('nodes', 'milan')).toBeDefined();
  expect(storage.get('pods', 'kube-system/system')?.metadata.deletionTimestamp).toBeUndefined();
});
