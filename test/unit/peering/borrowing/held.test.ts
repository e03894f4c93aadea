import { afterEach, expect, test } from '@jest/globals';
import { VIRTUAL_NODES } from './support/fake-agents.ts';
import { World } from './support/world.ts';

/** What somebody in this cluster refuses or holds: a peering ends all the same. */

let world: World;
afterEach(async () => world.down());

async function established(): Promise<void> {
  world = await new World({ drain: { evictMs: 4000, endMs: 1000 } }).up();
  await world.start();
  await world.established();
}

/** An admission webhook may answer so. */
function refuseEndOf(pod: string): void {
  const match = ({ method, path }: { method: string; path: string }): boolean =>
    (method === 'DELETE' && path.endsWith(`/pods/${pod}`)) || path.endsWith(`/pods/${pod}/eviction`);
  world.home.fault({ match, times: Infinity, status: 403 });
}

test.each([
  ['by and by', {}],
  ['by force', { force: true }],
])(
  'a pod that may not be deleted keeps neither the other pods nor the end of the peering, %s',
  async (_, how) => {
    await established();
    world.agents.dead = true;
    refuseEndOf('a-stuck');
    world.addPod('a-stuck', 'milan');
    for (let at = 0; at < 40; at += 1) world.addPod(`web-${at}`, 'milan');
    world.want({ wanted: false, ...how });
    await world.until('gone', () => world.advertisement === undefined);
    await world.until('withdrawn', () => world.provider.request === undefined);
    expect(world.leftovers()).toEqual(['pods/a-stuck']);
    const told = world.events.find((line) => line.startsWith('NotBroughtHome'));
    expect(told).toMatch(/^NotBroughtHome: cannot be ended by force.*node milan.*403/u);
  },
);

test('while it may still go, the Advertisement says what keeps it', async () => {
  await established();
  world.agents.stubborn = true;
  refuseEndOf('a-stuck');
  world.addPod('a-stuck', 'milan');
  world.want({ wanted: false });
  const said = (): string => world.condition('VirtualNodeReady')?.message ?? '';
  await world.until('told', () => said().includes('1 cannot be evicted: '));
  expect(said()).toContain('403');
  await world.until('gone', () => world.advertisement === undefined);
});

/** As somebody's controller that is gone by now has left it. */
function hold(resource: string, key: string): void {
  const { storage } = world.home;
  const object = storage.get(resource, key);
  if (object === undefined) throw new Error(`no ${key}`);
  const metadata = { ...object.metadata, finalizers: ['example.com/never'] };
  storage.update(resource, { ...object, metadata });
}

test('a deleted object that somebody holds is waited for a minute, ever more rarely, and is named', async () => {
  await established();
  hold(VIRTUAL_NODES, 'milan');
  world.want({ wanted: false });
  await world.until('deleted', () => world.virtualNode('milan')?.metadata.deletionTimestamp !== undefined);
  const { length } = world.home.log;
  const from = world.clock.monotonic();
  await world.until('gone', () => world.advertisement === undefined);
  const tookMs = world.clock.monotonic() - from;
  expect(tookMs).toBeGreaterThan(55_000);
  expect(tookMs).toBeLessThan(65_000);
  const looks = world.home.log.slice(length).filter((line) => /^GET .*\/nodes\/milan/u.test(line));
  expect(looks.length).toBeLessThan(25);
  const told = world.events.filter((line) => line.includes('milan is held by example.com/never'));
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/^PeeringEnding: /u);
  await world.until('withdrawn', () => world.provider.request === undefined);
  expect(world.leftovers()).toEqual([`${VIRTUAL_NODES}/milan`]);
});
