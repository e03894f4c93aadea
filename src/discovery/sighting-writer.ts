import { type ForeignCluster, foreignClusters, type Sighting } from '../api/foreign-cluster.ts';
import { ANNOTATION_OUTGOING, LABEL_DISCOVERED } from '../api/names.ts';
import type { Cache } from '../kube/cache.ts';
import { type ControllerBasics, Controller, type ReconcileResult } from '../kube/controller.ts';
import type { Random } from '../lib/backoff.ts';
import { hasCode, ignoring } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Subscriptions } from '../lib/listeners.ts';
import { Pace, type PaceOptions } from '../lib/pace.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import type { Candidate, CandidateSource } from './candidates.ts';
import { clusterIDsOf, inOrder, isDiscovered, nextSighting, sightingPatch } from './sighting.ts';

/** Name of the index in `foreignClusterIndexes`. */
export const CLUSTER_ID_INDEX = 'clusterID';
export const foreignClusterIndexes: Record<string, (object: ForeignCluster) => string[]> = {
  [CLUSTER_ID_INDEX]: clusterIDsOf,
};

export interface SightingWriterOptions extends ControllerBasics {
  source: CandidateSource;
  /** A cache with `foreignClusterIndexes`, started before this component. */
  clusters: Pick<Cache<ForeignCluster>, 'byIndex' | 'list' | 'onChange'>;
  limits?: Partial<SightingLimits>;
  /** Of the pauses between two attempts. */
  random?: Random;
}

export interface SightingLimits {
  /** How long a sighting counts after its writer has died. */
  validityMs: number;
  /** The most candidates that are written for this source, and the most ForeignClusters that discovery may have made. */
  maxCandidates: number;
  /** So many ForeignClusters are made at once, and further ones at the rate below. */
  creationBurst: number;
  creationsPerSecond: number;
}

const LIMITS: SightingLimits = {
  validityMs: 300_000,
  maxCandidates: 1000,
  creationBurst: 100,
  creationsPerSecond: 10,
};
const CONCURRENCY = 4;
/** Of what is seen of a cluster: anybody on the network can announce something else each moment. */
const CHANGES: Omit<PaceOptions, 'clock'> = {
  free: 24,
  baseMs: 2_000,
  quietMs: 60_000,
  all: { burst: 256, perSecond: 10 },
};
/** When a candidate for which there is no room is looked at again. */
const NO_ROOM_MS = 30_000;

/**
 * Writes what one source sees into `status.sightings.<source>` of ForeignClusters, and makes a ForeignCluster for a cluster that has
 * none. It touches nothing else: neither the sightings of other sources nor what people wrote.
 *
 * The ClusterID in an announcement is only a hint, and so is the whole sighting: anybody can announce another cluster's ID with
 * endpoints of their own. Nothing is believed until TLS has proved the ID to whoever dials (src/peering/link).
 */
export class SightingWriter implements Component {
  readonly name: string;
  readonly #options: SightingWriterOptions;
  readonly #limits: SightingLimits;
  readonly #controller: Controller;
  readonly #bucket: TokenBucket;
  readonly #pace: Pace;
  /** Candidates that this process has seen and has room for. When one of them goes, it has really left. */
  readonly #admitted = new Set<string>();
  readonly #subscriptions = new Subscriptions();
  /** Whether it was logged that there is no room. It is logged once in the life of this process. */
  #isFull = false;

  constructor(options: SightingWriterOptions) {
    const { source, clock, log, metrics, limits, random } = options;
    this.name = `sightings-${source.source.toLowerCase()}`;
    this.#options = options;
    this.#limits = { ...LIMITS, ...limits };
    const { creationBurst: burst, creationsPerSecond: perSecond } = this.#limits;
    this.#bucket = new TokenBucket({ clock, burst, perSecond });
    // What is written because it would expire is never held up.
    const quietMs = Math.min(CHANGES.quietMs, this.#limits.validityMs / 2);
    this.#pace = new Pace({ clock, ...CHANGES, quietMs });
    this.#controller = new Controller({
      name: this.name,
      concurrency: CONCURRENCY,
      reconcile: async (clusterID, { signal }) => this.#reconcile(clusterID, signal),
      clock,
      log,
      ...(metrics && { metrics }),
      ...(random && { random }),
    });
  }

  start(signal: AbortSignal): void {
    const { source, clusters } = this.#options;
    this.#subscriptions.add(
      source.onChange((clusterID) => this.#controller.add(clusterID)),
      clusters.onChange((_, current, previous) => {
        const concerned = [current, previous].filter((object) => object !== undefined);
        for (const id of new Set(concerned.flatMap(clusterIDsOf))) this.#controller.add(id);
      }),
    );
    for (const { clusterID } of source.candidates()) this.#controller.add(clusterID);
    for (const object of clusters.list()) for (const id of clusterIDsOf(object)) this.#controller.add(id);
    this.#controller.start(signal);
  }

  /** Leaves sightings as they are: whoever takes over goes on with them, and otherwise they expire. */
  async stop(): Promise<void> {
    this.#subscriptions.end();
    await this.#controller.stop();
  }

  async #reconcile(clusterID: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clusters, source } = this.#options;
    const candidate = [...source.candidates()].find((one) => one.clusterID === clusterID);
    const objects = inOrder(clusterID, clusters.byIndex(CLUSTER_ID_INDEX, clusterID));
    if (candidate === undefined) return this.#gone(clusterID, objects, signal);
    const [first, ...others] = objects;
    if (!this.#admit(clusterID)) return { requeueAfterMs: NO_ROOM_MS };
    for (const other of others) await this.#patch(other, null, signal);
    if (first === undefined) return this.#create(candidate, signal);
    const { clock } = this.#options;
    const { validityMs } = this.#limits;
    const known = first.status?.sightings?.[source.source];
    const sighting = nextSighting(candidate, known, { now: clock.now(), validityMs });
    if (sighting !== undefined) {
      const waitMs = this.#pace.turn(clusterID);
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      await this.#patch(first, sighting, signal);
    }
    const leftMs = Date.parse((sighting ?? known)?.expires ?? '') - clock.now();
    return { requeueAfterMs: Math.max(1000, leftMs - validityMs / 2) };
  }

  /**
   * The cluster is not seen now. If this process has seen it, it has left. If not, an earlier process saw it, and we may not have
   * looked for long enough: its sighting holds until it expires.
   */
  async #gone(
    clusterID: string,
    objects: readonly ForeignCluster[],
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, source } = this.#options;
    const { validityMs } = this.#limits;
    let requeueAfterMs = Infinity;
    for (const object of objects) {
      const known = object.status?.sightings?.[source.source];
      const leftMs = Date.parse(known?.expires ?? '') - clock.now();
      const isPlausible = leftMs > 0 && leftMs <= validityMs * 2;
      if (isPlausible && !this.#admitted.has(clusterID)) requeueAfterMs = Math.min(requeueAfterMs, leftMs);
      else await this.#patch(object, null, signal);
    }
    this.#admitted.delete(clusterID);
    return Number.isFinite(requeueAfterMs) ? { requeueAfterMs } : {};
  }

  /** Whether there is room for the cluster. Those that came first stay. */
  #admit(clusterID: string): boolean {
    if (this.#admitted.has(clusterID)) return true;
    if (this.#admitted.size >= this.#limits.maxCandidates) return this.#full();
    this.#admitted.add(clusterID);
    return true;
  }

  async #create(candidate: Candidate, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, clusters } = this.#options;
    const { clusterID, outgoing = 'Auto' } = candidate;
    let discovered = 0;
    for (const object of clusters.list()) if (isDiscovered(object)) discovered++;
    if (discovered >= this.#limits.maxCandidates) {
      this.#full();
      return { requeueAfterMs: NO_ROOM_MS };
    }
    if (!this.#bucket.tryTake(1)) return { requeueAfterMs: 1000 / this.#limits.creationsPerSecond };

    const metadata = {
      name: clusterID,
      labels: { [LABEL_DISCOVERED]: 'true' },
      ...(outgoing !== 'Auto' && { annotations: { [ANNOTATION_OUTGOING]: outgoing } }),
    };
    const spec = { clusterID, outgoing, incoming: 'Auto' } as const;
    try {
      await client.create(foreignClusters, { metadata, spec }, { signal });
    } catch (error) {
      // It was made just now, or its name is in use for another cluster. The cache will show which.
      if (hasCode(error, 'AlreadyExists')) return { requeueAfterMs: NO_ROOM_MS };
      throw error;
    }
    // Its sighting follows when the cache shows it.
    return {};
  }

  async #patch(object: ForeignCluster, sighting: Sighting | null, signal: AbortSignal): Promise<void> {
    const { client, source } = this.#options;
    const { metadata, status } = object;
    if (metadata.deletionTimestamp !== undefined) return;
    if (sighting === null && status?.sightings?.[source.source] === undefined) return;
    const patch = { type: 'merge', body: sightingPatch(source.source, sighting) } as const;
    const how = { subresource: 'status', signal } as const;
    // NotFound: the watch will tell that the object is gone.
    await client.patch(foreignClusters, { name: metadata.name }, patch, how).catch(ignoring('NotFound'));
  }

  #full(): false {
    if (!this.#isFull) {
      const { maxCandidates } = this.#limits;
      this.#options.log.warn('too many clusters are announced; the rest is passed over', { maxCandidates });
    }
    this.#isFull = true;
    return false;
  }
}
