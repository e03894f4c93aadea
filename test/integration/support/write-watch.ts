/** All writes to objects of peerings in several clusters, as their API servers tell of them. */
import { advertisements } from '../../../src/api/advertisement.ts';
import { type ForeignCluster, type PeeringPhase, foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { peeringRequests } from '../../../src/api/peering-request.ts';
import type { ResourceType } from '../../../src/api/resources.ts';
import {
  namespaces,
  resourceQuotas,
  roleBindings,
  secrets,
  serviceAccounts,
} from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { KubeObject } from '../../../src/api/wire.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';

export interface Write {
  city: string;
  kind: string;
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: KubeObject;
  /** Of a ForeignCluster. */
  phases?: Partial<Record<'outgoing' | 'incoming', PeeringPhase>>;
}

interface Watched {
  name: string;
  client: HttpClient;
}

const TYPES = [
  foreignClusters,
  advertisements,
  peeringRequests,
  virtualNodes,
  namespaces,
  serviceAccounts,
  secrets,
  resourceQuotas,
  roleBindings,
] as ResourceType<KubeObject>[];
const PATIENCE_MS = 60_000;

export class WriteWatch {
  readonly #abort = new AbortController();
  readonly #heard = new Set<(write: Write) => void>();
  readonly #running: Promise<void>[] = [];

  /** `more`: kinds besides those of every peering. */
  static async start(
    cities: readonly Watched[],
    more: readonly ResourceType<KubeObject>[] = [],
  ): Promise<WriteWatch> {
    const watch = new WriteWatch();
    for (const city of cities) {
      await Promise.all([...TYPES, ...more].map(async (type) => watch.#open(city, type)));
    }
    return watch;
  }

  async #open({ name, client }: Watched, type: ResourceType<KubeObject>): Promise<void> {
    const { resourceVersion } = await client.list(type);
    this.#running.push(
      (async () => {
        for await (const event of client.watch(type, { resourceVersion, signal: this.#abort.signal })) {
          if (event.type === 'BOOKMARK') continue;
          const { status } = event.object as ForeignCluster;
          const phases =
            type.kind === 'ForeignCluster'
              ? { phases: { ...phaseOf(status, 'outgoing'), ...phaseOf(status, 'incoming') } }
              : {};
          for (const heard of this.#heard) heard({ city: name, kind: type.kind, ...event, ...phases });
        }
      })().catch(() => undefined),
    );
  }

  each(heard: (write: Write) => void): void {
    this.#heard.add(heard);
  }

  /** The first write that the test holds for; fails when there is none in time. */
  async first(test: (write: Write) => boolean): Promise<Write> {
    const { promise, resolve, reject } = Promise.withResolvers<Write>();
    const timer = setTimeout(() => reject(new Error(`no such write within ${PATIENCE_MS} ms`)), PATIENCE_MS);
    const look = (write: Write): void => {
      if (test(write)) resolve(write);
    };
    this.each(look);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#heard.delete(look);
    }
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await Promise.all(this.#running);
  }
}

const phaseOf = (
  status: ForeignCluster['status'],
  direction: 'outgoing' | 'incoming',
): Partial<Record<'outgoing' | 'incoming', PeeringPhase>> => {
  const phase = status?.[direction]?.phase;
  return phase === undefined ? {} : { [direction]: phase };
};
