import { LABEL_SERVICE_NAME } from '../../api/names.ts';
import { endpointSlices, services } from '../../api/resources.ts';
import type { EndpointSlice, Service } from '../../api/wire.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';

interface NamespaceCachesOptions extends ClusterBasics {
  changed: () => void;
}

interface Caches {
  services: Informer<Service>;
  slices: Informer<EndpointSlice>;
  synced: Promise<unknown>;
}

const BY_SERVICE = 'service';

/** Services and EndpointSlices of the namespaces that policies name. No other namespace is read. */
export class NamespaceCaches {
  readonly #options: NamespaceCachesOptions;
  readonly #abort = new AbortController();
  readonly #caches = new Map<string, Caches>();
  readonly #stopping = new Set<Promise<unknown>>();

  constructor(options: NamespaceCachesOptions) {
    this.#options = options;
  }

  /** Watches exactly these namespaces from now on. Resolves when all caches are filled, which may be never. */
  async watch(namespaces: ReadonlySet<string>): Promise<void> {
    for (const [namespace, caches] of this.#caches)
      if (!namespaces.has(namespace)) this.#end(namespace, caches);
    for (const namespace of namespaces) {
      if (!this.#caches.has(namespace)) this.#caches.set(namespace, this.#begin(namespace));
    }
    await Promise.all([...this.#caches.values()].map(async ({ synced }) => synced));
  }

  /** Whether all Services and slices of it are known. */
  isSynced(namespace: string): boolean {
    const caches = this.#caches.get(namespace);
    return caches !== undefined && caches.services.synced && caches.slices.synced;
  }

  services(namespace: string): Iterable<Service> {
    return this.#caches.get(namespace)?.services.list() ?? [];
  }

  slices(namespace: string, service: string): readonly EndpointSlice[] {
    return this.#caches.get(namespace)?.slices.byIndex(BY_SERVICE, service) ?? [];
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    for (const [namespace, caches] of this.#caches) this.#end(namespace, caches);
    await Promise.all(this.#stopping);
  }

  #begin(namespace: string): Caches {
    const { client, clock, log, changed } = this.#options;
    const common = { client, clock, log, list: { namespace } };
    const caches = {
      services: new Informer<Service>({ ...common, type: services }),
      slices: new Informer<EndpointSlice>({
        ...common,
        type: endpointSlices,
        indexes: { [BY_SERVICE]: ({ metadata }) => [metadata.labels?.[LABEL_SERVICE_NAME] ?? ''] },
      }),
    };
    const { signal } = this.#abort;
    const all = [caches.services.start(signal), caches.slices.start(signal)];
    caches.services.onChange(changed);
    caches.slices.onChange(changed);
    // An empty cache tells no change.
    const synced = Promise.all(all).then(changed, () => undefined);
    return { ...caches, synced };
  }

  #end(namespace: string, { services: one, slices: other }: Caches): void {
    this.#caches.delete(namespace);
    const stopping = Promise.all([one.stop(), other.stop()]).finally(() => this.#stopping.delete(stopping));
    this.#stopping.add(stopping);
  }
}
