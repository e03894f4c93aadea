import { expect, test } from '@jest/globals';

import { configMaps, daemonSets, deployments } from '../../../../src/api/resources.ts';
import { installedImage } from '../../../../src/cli/install/uninstall-hosts.ts';
import { forgeInstalled } from '../../../../src/cli/install/versions.ts';
import { defaultValues } from '../../../../src/deploy/installation/values.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';

test('an uninstallation that was killed after it had removed the roles still knows their image', async () => {
  const client = new FakeApi({ types: [configMaps, daemonSets, deployments] }).client();
  const io = { out: () => {}, err: () => {} };
  const session = { client, clock: systemClock, io, signal: new AbortController().signal };
  expect(await installedImage(session)).toBeUndefined();
  await client.create(configMaps, forgeInstalled('0.1.0', { ...defaultValues(), image: 'tributary:7' }));
  expect(await installedImage(session)).toBe('tributary:7');
});
