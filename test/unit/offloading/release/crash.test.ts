import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { World } from './world.ts';

/**
 * Killed at every write in turn, before it arrives and after it is stored, while a pod is released. A fresh process,
 * which remembers nothing, finishes the work, once.
 */

/** Held off, marked, deleted; and with a journal: stored, made anew, journal deleted. One more than there are. */
const WRITES = { owned: 4, bare: 7 };

let world: World;
afterEach(async () => world.down());

let crashes = 0;
const points = (['owned', 'bare'] as const).flatMap((kind) =>
  Array.from({ length: WRITES[kind] }, (_, index) => [kind, index + 1] as const),
);

describe.each(['before', 'after'] as const)('killed %s', (when) => {
  test.each(points)('a pod that is %s, write %i', async (kind, k) => {
    world = await new World().up();
    const name = 'web-0';
    const uid = world.addPod(name, { owned: kind === 'owned' });
    const { crashed, crash } = world.crashAt(k, when);
    const process = await world.start();
    const supervision = crash.then(async () => {
      crashes++;
      await world.replace(process);
    });
    const isDone = (): boolean => {
      const made = world.pod(kind === 'owned' ? 'made-0' : name);
      return made !== undefined && made.metadata.uid !== uid && world.journals.length === 0;
    };
    await world.until('done', isDone);
    if (crashed()) await supervision;
    await world.until('still done', isDone);
    expect(world.creations(name)).toBe(kind === 'owned' ? 1 : 2);
    expect(world.creations('made-1')).toBe(0);
    expect(world.offloading.status?.heldOff).toHaveLength(1);
  });
});

afterAll(() => {
  // All but the points beyond the last write, else they prove nothing.
  const expected = 2 * (WRITES.owned + WRITES.bare - 2);
  if (crashes !== expected) throw new Error(`${crashes} crashes instead of ${expected}`);
});
