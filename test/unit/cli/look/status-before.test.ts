import { expect, test } from '@jest/globals';

import { statusCommand } from '../../../../src/cli/look/status.ts';
import { CliWorld } from '../support/cli-world.ts';

test('where it was never installed, status says how to begin, in the same cluster', async () => {
  const world = CliWorld.start();
  world.others.set('rome', world.api);
  const { out } = await world.run(statusCommand, '--context rome');
  expect(out).toContain('role cluster: it has never run here; to begin: tributary --context rome install\n');
  await world.stop();
});
