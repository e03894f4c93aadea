/** The NamespaceOffloading of namespace `shop`, and what the role `cluster` says of it. */
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  type NamespaceOffloadingStatus,
} from '../../../../../src/api/namespace-offloading.ts';
import type { CliWorld } from '../../support/cli-world.ts';

export const KEY = 'namespaceoffloadings.tributary.dev';
export const ORIGIN = 'tributary.dev/offloading-origin';

interface Offloadings {
  stored: () => NamespaceOffloading | undefined;
  existing: (spec: object, metadata?: object) => unknown;
  /** The part of the cluster role. */
  answers: (status: NamespaceOffloadingStatus) => void;
}

export const offloadingsOf = (world: () => CliWorld): Offloadings => ({
  stored: () => world().api.storage.get(KEY, 'shop/offloading') as NamespaceOffloading | undefined,
  existing: (spec, metadata = {}) =>
    world().seed(namespaceOffloadings, {
      metadata: { namespace: 'shop', name: 'offloading', ...metadata },
      spec,
    }),
  answers: (status) => {
    const { storage } = world().api;
    const tell = (): void => {
      const now = storage.get(KEY, 'shop/offloading');
      if (now === undefined) return;
      const observedGeneration = now.metadata.generation ?? 1;
      storage.update(KEY, { ...now, status: { ...status, observedGeneration } });
    };
    storage.subscribe(({ resource, current }) => {
      if (resource === KEY && current !== undefined) queueMicrotask(tell);
    });
    tell();
  },
});
