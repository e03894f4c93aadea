import AggregatorRegistry from 'prom-client/lib/cluster.js';
import Registry from 'prom-client/lib/registry.js';

/** What answers a scrape. */
type Exposition = Pick<Registry, 'metrics' | 'contentType'>;

/**
 * The metrics of a process that serves several virtual nodes: the process's own, and those of each virtual node with
 * the label `virtual_node`. Their parts know of one registry each.
 */
export class Registries implements Exposition {
  readonly #own: Registry;
  readonly #nodes = new Map<string, Registry>();

  constructor(own: Registry) {
    this.#own = own;
  }

  get contentType(): Registry['contentType'] {
    return this.#own.contentType;
  }

  /** Made anew each time: a node that is started again counts from nothing. */
  open(virtualNode: string): Registry {
    const registry = new Registry();
    registry.setDefaultLabels({ virtual_node: virtualNode });
    this.#nodes.set(virtualNode, registry);
    return registry;
  }

  close(virtualNode: string): void {
    this.#nodes.delete(virtualNode);
  }

  async metrics(): Promise<string> {
    if (this.#nodes.size === 0) return this.#own.metrics();
    const all = [this.#own, ...this.#nodes.values()];
    const read = await Promise.all(all.map(async (registry) => registry.getMetricsAsJSON()));
    return AggregatorRegistry.aggregate(read).metrics();
  }
}
