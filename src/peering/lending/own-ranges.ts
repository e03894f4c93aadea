import { NETWORK_CONFIG_MAP, readOwnNetwork } from '../../api/own-network.ts';
import { configMaps } from '../../api/resources.ts';
import type { ConfigMap } from '../../api/wire.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ownRangesOf, type OwnRanges } from '../tenant-isolation.ts';

/** Addresses of this cluster as the network has published them: what guests are kept out of. */
export class OwnRangesCache {
  readonly informer: Informer<ConfigMap>;
  readonly #key: string;

  constructor({
    namespace,
    ...common
  }: { namespace: string } & Pick<InformerOptions<ConfigMap>, 'client' | 'clock' | 'log' | 'random'>) {
    this.#key = `${namespace}/${NETWORK_CONFIG_MAP}`;
    this.informer = new Informer({
      ...common,
      type: configMaps,
      list: { namespace, fieldSelector: `metadata.name=${NETWORK_CONFIG_MAP}` },
      name: 'informer of our own addresses',
    });
  }

  /** Undefined while they are not known. */
  get current(): OwnRanges | undefined {
    return read(this.informer.get(this.#key));
  }

  /** Calls back when they are others; the returned function ends that. */
  onChange(listener: () => void): () => void {
    return this.informer.onChange((_key, current, previous) => {
      if (!deepEqual(read(current), read(previous))) listener();
    });
  }
}

const read = (map: ConfigMap | undefined): OwnRanges | undefined => ownRangesOf(readOwnNetwork(map?.data));
