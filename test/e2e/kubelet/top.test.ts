import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { aPod } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('top');
  await world.runPod(aPod('busy', 'head -c 30000000 /dev/zero > /dev/shm/ballast; while :; do :; done'));
});

afterAll(async () => world.close());

const answer = async (args: readonly string[], pattern: RegExp): Promise<string> =>
  until(
    `kubectl ${args.join(' ')} answers like ${pattern}`,
    async () => {
      const { stdout } = await world.kubectl(args);
      return pattern.exec(stdout)?.[0];
    },
    { seconds: 90, seen: async () => world.kubectl(args) },
  );

test('kubectl top pod shows what the pod uses over there', async () => {
  const line = await answer(['top', 'pod', 'busy', '--no-headers'], /^busy +\d{3,4}m +\d+Mi/m);
  const megabytes = Number(/(\d+)Mi/.exec(line)?.[1]);
  expect(megabytes).toBeGreaterThanOrEqual(28);
});

test('kubectl top pod --containers names the container', async () => {
  await answer(['top', 'pod', 'busy', '--containers', '--no-headers'], /^busy +main +\d+m +\d+Mi/m);
});

test('kubectl top node shows the virtual node beside the real one', async () => {
  await answer(['top', 'node', '--no-headers'], /^foreign +\d+m +\d+% +\d+Mi +\d+%/m);
  await answer(['top', 'node', '--no-headers'], /^home-1 +\d+m/m);
});
