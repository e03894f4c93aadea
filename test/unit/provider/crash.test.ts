import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import { World } from './support/world.ts';

/**
 * Killed at every write in turn, before it arrives and after it is stored, during a rollout: two pods come, one
 * changes, one goes and is made anew under its name. A fresh agent, which remembers nothing, finishes the work.
 */

const WITH_CONFIG = {
  volumes: [{ name: 'config', configMap: { name: 'settings' } }],
};
/** More than a run without faults needs; the last ones then crash nothing. */
const WRITES = 16;
const TIMEOUT_MS = 30_000;

let world: World;
afterEach(async () => {
  await world.down();
});

function rollout(): void {
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' }, data: { a: '1' } });
  world.addPod('web-0', WITH_CONFIG);
  world.addPod('web-1');
}

/** What people do meanwhile, as soon as they can. */
function change(): void {
  const { storage } = world.home;
  const pod = storage.get('pods', 'shop/web-0');
  if (pod === undefined) throw new Error('web-0 is gone');
  const { metadata, spec } = pod;
  const containers = [{ name: 'main', image: 'web:2' }];
  storage.update('pods', {
    ...pod,
    metadata: { ...metadata, generation: (metadata.generation ?? 1) + 1 },
    spec: { ...spec, containers },
  });
  world.deletePod('web-1');
}

const image = (name: string): string | undefined =>
  (world.body(name)?.spec?.['containers'] as { image: string }[] | undefined)?.[0]?.image;

let crashes = 0;
const points = Array.from({ length: WRITES }, (_, index) => index + 1);

describe.each(['before', 'after'] as const)('killed %s', (when) => {
  test.each(points)(
    'write %i',
    async (k) => {
      world = await new World().up();
      rollout();
      const { crashed, crash } = world.crashAt(k, when);
      const agent = await world.start();
      const supervision = crash.then(async () => {
        crashes++;
        await world.replace(agent);
      });
      await world.settled();
      change();
      await world.until('web-1 is gone', () => world.home.storage.get('pods', 'shop/web-1') === undefined);
      world.addPod('web-1');
      await world.settled();
      await world.until('the new image', () => image('web-0') === 'web:2');
      if (crashed()) await supervision;
      await world.settled();
      expect(world.auditor.violations).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

afterAll(() => {
  // Else the points would lie beyond the last write, and prove nothing.
  if (crashes <= WRITES) throw new Error(`only ${crashes} crashes`);
});
