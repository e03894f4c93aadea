/** One object that is followed, by its name. */
import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import { Informer, type InformerOptions } from '../kube/informer.ts';

/** By a watch of its own. */
export const oneAlone = <T extends KubeObject>(
  common: Pick<InformerOptions<T>, 'client' | 'clock' | 'log'>,
  type: ResourceType<T>,
  name: string,
): Informer<T> => new Informer<T>({ ...common, type, list: { fieldSelector: `metadata.name=${name}` } });

/** By the watch of all of its kind, which the process has anyway. */
export const oneOfAll = <T extends KubeObject>(
  shared: Caches,
  type: ResourceType<T>,
  name: string,
): Cache<T> => shared.of(type, { only: ({ metadata }) => metadata.name === name });
