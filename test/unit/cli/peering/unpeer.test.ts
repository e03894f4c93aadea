import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { namespaces } from '../../../../src/api/resources.ts';
import { LABEL_PEER } from '../../../../src/api/tenant-labels.ts';
import { unpeerCommand } from '../../../../src/cli/peering/unpeer.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
});
afterEach(async () => world.stop());

test('what still terminates is waited for, and named', async () => {
  const metadata = { name: 'milan-shop', labels: { [LABEL_PEER]: MILAN }, finalizers: ['x/y'] };
  const message = 'Some resources are remaining: pods. has 2 resource instances';
  world.seed(namespaces, {
    metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    status: {
      phase: 'Terminating',
      conditions: [{ type: 'NamespaceContentRemaining', status: 'True', message }],
    },
  });
  world.seed(namespaces, { metadata: { name: 'milan-kept', labels: { [LABEL_PEER]: MILAN } } });
  world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
  world.reconcile(() => ({ outgoing: { phase: 'None' }, incoming: { phase: 'None' } }));
  const { code, out, err } = await world.run(unpeerCommand, 'mine --timeout 1s');
  expect(code).toBe(1);
  expect(out).toContain(`ended; still terminating: Namespace milan-shop (${message})`);
  expect(out).not.toContain('Ended.');
  expect(err.split('\n')).toEqual([
    'The peering has ended, but some of its objects are still there after 1 s. They go by themselves.',
    `  still terminating: Namespace milan-shop (${message})`,
    '',
  ]);
  world.api.storage.remove('namespaces', 'milan-shop');
  const again = await world.run(unpeerCommand, 'mine --timeout 1s');
  expect(again).toMatchObject({ code: 0, err: '' });
  expect(again.out).toMatch(/stays: Namespace milan-kept \(its SharingPolicy keeps it.*\nEnded\. /u);
});
