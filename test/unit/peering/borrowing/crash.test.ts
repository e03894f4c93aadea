import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { World } from './support/world.ts';

/**
 * Killed at every write in turn, before it arrives and after it is stored, while a peering is set up and while it is
 * taken down. A fresh process, which remembers nothing, finishes the work.
 */

/** More than a run without faults needs; the last ones then crash nothing. */
const WRITES = { up: 7, down: 13 };
const DRAIN_MS = 1000;
const TIMEOUT_MS = 30_000;

let world: World;
afterEach(async () => world.down());

const crashes = { up: 0, down: 0 };
const points = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** Starts another one as soon as this one has crashed. */
function supervised(k: number, when: 'before' | 'after', what: 'up' | 'down'): { over: () => Promise<void> } {
  const { crashed, crash } = world.crashAt(k, when);
  const supervision = crash.then(async () => {
    crashes[what]++;
    await world.replaceAll();
  });
  return {
    over: async () => {
      if (crashed()) await supervision;
    },
  };
}

describe.each(['before', 'after'] as const)('killed %s', (when) => {
  test.each(points(WRITES.up))(
    'write %i of a set-up',
    async (k) => {
      world = await new World().up();
      const supervision = supervised(k, when, 'up');
      await world.start();
      await world.established();
      await supervision.over();
      await world.established();
      await world.until('agreed', () => {
        const { contract } = world.advertisement?.status ?? {};
        return contract !== undefined && contract.text === world.provider.contract?.text;
      });
      expect(world.advertisement?.status?.contract).toEqual(world.provider.contract);
      expect(world.leftovers()).toEqual([
        `advertisements.tributary.dev/${world.id}`,
        'virtualnodes.tributary.dev/milan',
        'nodes/milan',
        `secrets/tributary-kubeconfig-${world.id}`,
        'leases.coordination.k8s.io/milan',
        `agent of ${world.id}`,
        'the request',
      ]);
      expect(world.kubeconfig?.token).toBe(`token-${world.provider.tokens}`);
    },
    TIMEOUT_MS,
  );

  test.each(points(WRITES.down).flatMap((k) => [[k, 'alive'] as const, [k, 'dead'] as const]))(
    'write %i of a teardown with an agent that is %s',
    async (k, agent) => {
      world = await new World({ drain: { evictMs: DRAIN_MS, endMs: 1000 } }).up();
      await world.start();
      await world.established();
      for (const pod of ['web-0', 'web-1']) world.addPod(pod, 'milan');
      world.agents.dead = agent === 'dead';
      const supervision = supervised(k, when, 'down');
      world.want({ wanted: false });
      await world.gone();
      await supervision.over();
      await world.gone();
    },
    TIMEOUT_MS,
  );
});

afterAll(() => {
  // Else the points would lie beyond the last write, and prove nothing.
  for (const what of ['up', 'down'] as const) {
    if (crashes[what] < 2 * WRITES[what] - 2) throw new Error(`only ${crashes[what]} crashes of ${what}`);
  }
});
