import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { LABEL_MANAGED_BY } from '../../../../src/api/names.ts';
import { persistentVolumes } from '../../../../src/api/resources.ts';
import { uninstallCommand } from '../../../../src/cli/install/uninstall.ts';
import { CliWorld } from '../support/cli-world.ts';

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  world.others.set('rome', world.api);
});
afterEach(async () => world.stop());

/** Of a peering that has ended, where nobody was left to delete it. */
function volume(phase: string, persistentVolumeReclaimPolicy: string): void {
  world.seed(persistentVolumes, {
    metadata: { name: 'tributary-1', labels: { [LABEL_MANAGED_BY]: 'milan'.padEnd(26, 'a') } },
    spec: { claimRef: { namespace: 'shop', name: 'data' }, persistentVolumeReclaimPolicy },
    status: { phase },
  });
}

test.each([
  ['Bound', 'Delete'],
  ['Released', 'Retain'],
])('a volume that is %s (%s) holds data: nothing is changed', async (phase, policy) => {
  volume(phase, policy);
  expect(await world.run(uninstallCommand, '--yes')).toMatchObject({
    code: 1,
    err:
      'nothing was changed: what is in 1 volume(s) in foreign clusters would be lost, of the claims shop/data. ' +
      'Save what you need and delete the claims (where one is gone, the PersistentVolume), or add --delete-volumes\n',
  });
});

test.each([
  ['Released', 'Delete', ''],
  ['Failed', 'Delete', ''],
  ['Bound', 'Delete', ' --delete-volumes'],
])('a volume that is %s (%s) is named at the end, with how to remove it', async (phase, policy, more) => {
  volume(phase, policy);
  const { code, out, err } = await world.run(uninstallCommand, `--yes --context rome${more}`);
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(
    /\n1 PersistentVolume\(s\) stay, whose data have gone with the peerings: tributary-1\. Delete their claims, then run: kubectl --context rome delete persistentvolumes -l tributary\.dev\/managed-by\nnothing else of Tributary is left in this cluster\n$/,
  );
});

test('without one, nothing is left', async () => {
  const { code, out } = await world.run(uninstallCommand, '--yes');
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/\nnothing of Tributary is left in this cluster\n$/),
  ]);
});
