import { NETWORK_CONFIG_MAP, readOwnNetwork } from '../../api/own-network.ts';
import { configMaps } from '../../api/resources.ts';
import type { ConfigMap } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ownRangesOf, type OwnRanges } from './isolation.ts';

/** Addresses of this cluster as the network has published them: what guests are kept out of. */
export class OwnRangesCache {
  readonly cache: Cache<ConfigMap>;
  readonly #key: string;

  constructor(caches: Caches, namespace: string) {
    this.#key = `${namespace}/${NETWORK_CONFIG_MAP}`;
    this.cache = caches.of(configMaps, {
      list: { namespace, fieldSelector: `metadata.name=${NETWORK_CONFIG_MAP}` },
      name: 'cache of our own addresses',
    });
  }

  /** Undefined while they are not known. */
  get current(): OwnRanges | undefined {
    return read(this.cache.get(this.#key));
  }

  /** Calls back when they are others; the returned function ends that. */
  onChange(listener: () => void): () => void {
    return this.cache.onChange((_key, current, previous) => {
      if (!deepEqual(read(current), read(previous))) listener();
    });
  }
}

const read = (map: ConfigMap | undefined): OwnRanges | undefined => ownRangesOf(readOwnNetwork(map?.data));
