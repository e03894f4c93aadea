import { pods } from '../../../src/api/resources.ts';
import type { Pod } from '../../../src/api/wire.ts';
import type { Cache } from '../../../src/kube/cache.ts';
import { Caches } from '../../../src/kube/caches.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import type { City } from '../../support/labs/peering-lab.ts';

/** Where a pod runs indeed. It has the same name in each cluster that it passes through. */
export interface Body {
  name: string;
  at: string;
  uid: string;
  restarts: number;
}

/** Watches the pods of several clusters that run on real nodes. */
export class Bodies {
  readonly #caches = new Map<string, Cache<Pod>>();
  readonly #isReal: (node: string) => boolean;
  /** Where the same pod ran at the same moment. */
  readonly twice: Set<string> = new Set();

  private constructor(isReal: (node: string) => boolean) {
    this.#isReal = isReal;
  }

  /** `virtual`: the nodes that run nothing by themselves. */
  static async watch(cities: readonly City[], virtual: readonly string[]): Promise<Bodies> {
    const bodies = new Bodies((node) => !virtual.includes(node));
    for (const { name, client } of cities) {
      const cache = new Caches({ client, clock: systemClock, log: silentLogger }).of(pods);
      cache.onChange((_key, current) => bodies.#changed(current));
      bodies.#caches.set(name, cache);
      await cache.start(new AbortController().signal);
    }
    return bodies;
  }

  async stop(): Promise<void> {
    for (const cache of this.#caches.values()) await cache.stop();
  }

  /** Those whose names begin so; default: all. */
  running(...prefixes: string[]): Body[] {
    return [...this.#caches]
      .flatMap(([city, cache]) =>
        [...cache.list()].filter((pod) => this.#runs(pod)).map((pod) => bodyOf(city, pod)),
      )
      .filter(({ name }) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)))
      .toSorted((one, other) => one.at.localeCompare(other.at));
  }

  /** A pod that is being deleted runs until it is gone. */
  #runs({ spec, status }: Pod): boolean {
    return status?.phase === 'Running' && spec?.nodeName !== undefined && this.#isReal(spec.nodeName);
  }

  #changed(pod: Pod | undefined): void {
    if (pod === undefined || !this.#runs(pod)) return;
    const bodies = this.running().filter(({ name }) => name === pod.metadata.name);
    if (bodies.length > 1) this.twice.add(bodies.map(({ at }) => at).join(' and '));
  }
}

const bodyOf = (city: string, { metadata, spec, status }: Pod): Body => ({
  name: metadata.name,
  at: `${city} ${metadata.namespace}/${metadata.name} on ${spec?.nodeName}`,
  uid: metadata.uid,
  restarts: (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
});
