import { expect, test } from '@jest/globals';
import { OffloadWorld } from './support/offload-world.ts';

/** A namespace is offloaded and taken back, with the controller killed at each of its writes. */

const OWNED = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }],
};
const LET_IN = { annotations: { 'tributary.dev/strategy': 'Remote' } };
/** More writes than there are; the last rounds run without a crash. */
const MAX_WRITES = 30;

/** Whether it came to the crash. */
async function round(k: number, when: 'before' | 'after'): Promise<boolean> {
  const world = await new OffloadWorld().up();
  try {
    await world.virtualNode('milan', 'milan');
    await world.start();
    const { crashed } = world.crashAt(k, when);
    let replaced: Promise<void> | undefined;
    const going = async (what: string, done: () => Promise<boolean>): Promise<void> =>
      world.until(`${what}; killed ${when} write ${k}`, async () => {
        if (crashed()) await (replaced ??= world.replace());
        return done();
      });
    await world.offload();
    await going('offloaded', async () => (await world.phases()).includes('milan Ready AsExpected'));
    await world.pod('owned', 'milan', OWNED);
    await world.pod('bare', 'milan', LET_IN);
    await world.remove();
    await going('gone', async () => (await world.get()) === undefined);
    await going('made anew', async () => (await world.podNames()).includes('bare@'));
    await going('forgotten', async () => (await world.journals()) === 0);
    expect(await world.podNames()).toEqual(['bare@']);
    expect(await world.mappings('milan')).toEqual([]);
    return crashed();
  } finally {
    await world.down();
  }
}

test.each(['before', 'after'] as const)('killed %s each write', async (when) => {
  let k = 1;
  while (k < MAX_WRITES && (await round(k, when))) k++;
  // Finalizer, status, status again, journal, new pod, journal dropped, finalizer gone: else nothing was shown.
  expect(k).toBeGreaterThan(6);
  expect(k).toBeLessThan(MAX_WRITES);
});
