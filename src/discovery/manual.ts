import { type ForeignCluster, peerIDOf } from '../api/foreign-cluster.ts';
import type { Cache } from '../kube/cache.ts';
import type { Clock } from '../lib/clock.ts';
import { type Candidate, CandidateSet, type CandidateSource } from './candidates.ts';

export interface ManualSourceOptions {
  /** Started before this one. */
  clusters: Pick<Cache<ForeignCluster>, 'list' | 'onChange'>;
  ownClusterID: string;
  clock: Clock;
}

/**
 * Clusters that people have named by their endpoint: ForeignClusters with `spec.endpoint` whose ClusterID is known, either from a
 * person or proved by whoever answered there. What a person says does not expire.
 */
export class ManualSource implements CandidateSource {
  readonly name = 'manual-discovery';
  readonly source = 'Manual';
  readonly #options: ManualSourceOptions;
  readonly #set: CandidateSet;
  #unsubscribe: () => void = () => undefined;

  constructor(options: ManualSourceOptions) {
    this.#options = options;
    this.#set = new CandidateSet(options.clock);
  }

  start(signal: AbortSignal): void {
    signal.throwIfAborted();
    this.#unsubscribe = this.#options.clusters.onChange(() => this.#read());
    this.#read();
  }

  stop(): void {
    this.#unsubscribe();
  }

  candidates(): Iterable<Candidate> {
    return this.#set.values();
  }

  onChange(listener: (clusterID: string) => void): () => void {
    return this.#set.onChange(listener);
  }

  #read(): void {
    const candidates = new Map<string, Candidate>();
    for (const object of this.#options.clusters.list()) {
      const candidate = candidateOf(object);
      if (candidate === undefined || candidate.clusterID === this.#options.ownClusterID) continue;
      const known = candidates.get(candidate.clusterID);
      // Of two objects for one cluster, both endpoints are useful.
      const endpoints = [...(known?.endpoints ?? []), ...candidate.endpoints].toSorted((a, b) =>
        a < b ? -1 : 1,
      );
      candidates.set(candidate.clusterID, { ...candidate, endpoints: [...new Set(endpoints)] });
    }
    this.#set.replace(candidates);
  }
}

/** Names neither the cluster's name nor its protocols, which only the cluster itself can tell. */
function candidateOf(cluster: ForeignCluster): Candidate | undefined {
  const { metadata, spec } = cluster;
  const clusterID = peerIDOf(cluster);
  if (spec?.endpoint === undefined || clusterID === undefined) return undefined;
  if (metadata.deletionTimestamp !== undefined) return undefined;
  return { clusterID, endpoints: [spec.endpoint], protocols: [], expiresAt: Infinity };
}
