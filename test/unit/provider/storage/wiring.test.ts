import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { LABEL_HOME_UID, LABEL_MANAGED_BY, STORAGE_PROVISIONER } from '../../../../src/api/names.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import { World } from '../support/world.ts';

/** What wakes a claim: between two simulated clusters. */

const KINDS = [persistentVolumes, persistentVolumeClaims, storageClasses];

let world: World;
beforeEach(async () => {
  world = await new World({ types: KINDS }).up();
});
afterEach(async () => world.down());

const claims = (cluster: 'home' | 'foreign'): unknown[] =>
  world[cluster].storage.list('persistentvolumeclaims');

test('a volume whose claims went while nobody looked goes, too', async () => {
  world.home.seed(persistentVolumes, {
    metadata: { name: 'tributary-u1', labels: { [LABEL_MANAGED_BY]: 'rome', [LABEL_HOME_UID]: 'u1' } },
    spec: {
      claimRef: { namespace: 'shop', name: 'data', uid: 'u1' },
      persistentVolumeReclaimPolicy: 'Delete',
    },
    status: { phase: 'Released' },
  });
  await world.start();
  await world.until('it is gone', () => world.home.storage.list('persistentvolumes').length === 0);
});

test('a claim that waits for a node is looked at when its namespace is recorded', async () => {
  const node = world.home.storage.get('virtualnodes.tributary.dev', 'rome') as unknown as VirtualNode;
  const { spec } = node;
  const without = { ...node, spec: { ...spec, namespaces: [] } };
  world.home.storage.update('virtualnodes.tributary.dev', without as never);
  world.home.seed(storageClasses, {
    metadata: { name: 'foreign' },
    provisioner: STORAGE_PROVISIONER,
    volumeBindingMode: 'WaitForFirstConsumer',
    parameters: { foreignClass: 'local-path' },
  });
  world.home.seed(persistentVolumeClaims, {
    metadata: {
      name: 'data',
      namespace: 'shop',
      annotations: {
        'volume.kubernetes.io/selected-node': 'rome',
        'volume.kubernetes.io/storage-provisioner': STORAGE_PROVISIONER,
      },
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'foreign',
    },
  });
  await world.start();
  await world.clock.advance(60_000);
  expect(claims('foreign')).toEqual([]);
  // The record of the namespace comes when its claims have been looked at.
  let isHeld = true;
  world.home.fault({
    match: ({ method, path }) => isHeld && method === 'PUT' && path.endsWith('/virtualnodes/rome/status'),
    times: Infinity,
    status: 409,
  });
  const now = world.home.storage.get('virtualnodes.tributary.dev', 'rome');
  world.home.storage.update('virtualnodes.tributary.dev', { ...now, spec } as never);
  await world.clock.advance(5_000);
  expect(claims('foreign')).toEqual([]);
  isHeld = false;
  await world.until('it is asked for over there', () => claims('foreign').length === 1);
});
