import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
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
  await eventually('gone at home', () => world.home.storage.get('pods', 'shop/web') === undefined);
  expect(world.body('web')).toBeUndefined();
  await world.settled();
});
