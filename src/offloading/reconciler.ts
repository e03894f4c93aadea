import { withCondition } from '../api/conditions.ts';
import { MAX_NAMESPACES } from '../api/limits.ts';
import { FINALIZER_OFFLOADING } from '../api/names.ts';
import { NAMESPACE_OFFLOADING_CONDITIONS, namespaceOffloadings } from '../api/namespace-offloading.ts';
import type { NamespaceOffloading, OffloadedCluster } from '../api/namespace-offloading.ts';
import { API_VERSION } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ReconcileResult } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import { type Held, heldText } from '../kube/evictions.ts';
import { addFinalizer, removeFinalizer } from '../kube/finalizers.ts';
import type { Clock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';
import type { Logger } from '../lib/log.ts';
import { type Departures, LOOK_MS, lookAfterMs } from './departures.ts';
import type { LeftNodes } from './leaving.ts';
import { type Leaving, NOT_OFFLOADED, type NamespacePods } from './pods.ts';
import { newsOf, readyOf } from './verdict.ts';
import { clustersIn, namespaceOf, type View } from './view.ts';
import { clusterOf } from './selection.ts';

export interface ReconcilerOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  events: EventRecorder;
  view: View;
  pods: NamespacePods;
  departures: Departures;
  /** How long PodDisruptionBudgets hold up what has to leave, milliseconds. */
  budgetsForMs: number;
  /** What `of` answers has changed without a change in any cache. */
  changed: () => void;
}

/** After so long it is not waited any more for what the other side would have to do. */
const LEAVE_LIMIT_MS = 120_000;
/** Beyond the limit, a pod is given the time that it has asked for; more than so long it is not. */
const MAX_GRACE_MS = 600_000;
/** Until then the webhook may not have been asked about new pods. */
const SETTLE_MS = 5000;

interface LeftBehind {
  /** Clusters. */
  mapped: readonly string[];
  /** Of pods. */
  count: number;
  isReturning: boolean;
}

/** Makes the status of one NamespaceOffloading true, and ends what has to end. Keys are namespaces. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  /** UIDs of pods that were told that they were made too early, by UID of the NamespaceOffloading that is still young. */
  readonly #told = new Map<string, Set<string>>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(namespace: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { view, client } = this.#options;
    const offloading = view.offloading(namespace);
    if (offloading === undefined) return this.#forget();
    const { deletionTimestamp, finalizers = [] } = offloading.metadata;
    const isKept = finalizers.includes(FINALIZER_OFFLOADING);
    if (deletionTimestamp !== undefined) return isKept ? this.#remove(offloading, signal) : {};
    if (!isKept && view.refusal(namespace) === undefined && !view.isTerminating(namespace)) {
      await addFinalizer(client, namespaceOffloadings, offloading, {
        finalizer: FINALIZER_OFFLOADING,
        signal,
      });
      return {};
    }
    const early = await this.#tellEarly(offloading, signal);
    const still = await this.#leave(offloading, signal);
    await this.#writeStatus(offloading, view.entries(offloading, still), { signal });
    return still.length > 0 ? { requeueAfterMs: this.#lookAfterMs(offloading, still) } : early;
  }

  /** The object is gone. */
  #forget(): ReconcileResult {
    const uids = new Set([...this.#options.view.offloadings()].map(({ metadata }) => metadata.uid));
    this.#options.departures.retain(uids);
    for (const uid of this.#told.keys()) if (!uids.has(uid)) this.#told.delete(uid);
    return {};
  }

  /** Once for each object: when it has no status yet, and again when the webhook must have heard of it. */
  async #tellEarly(offloading: NamespaceOffloading, signal: AbortSignal): Promise<ReconcileResult> {
    const { view, pods, clock, events } = this.#options;
    const { uid, creationTimestamp } = offloading.metadata;
    const isFirst = offloading.status?.observedGeneration === undefined;
    if (!isFirst && !this.#told.has(uid)) return {};
    if (offloading.spec.podStrategy === 'Local' || !view.isInEffect(offloading)) return {};
    const told = this.#told.get(uid) ?? new Set<string>();
    const waitMs = Date.parse(creationTimestamp) + SETTLE_MS - clock.now();
    if (isFirst || waitMs <= 0) {
      const count = await pods.tellEarly(namespaceOf(offloading), told, signal);
      if (count > 0) {
        const message = `${count} pods were made before the namespace was offloaded and stay on real nodes; an event on each says how to let it go`;
        events.event(subjectOf(offloading), 'Normal', NOT_OFFLOADED, message);
      }
    }
    if (waitMs > 0) {
      this.#told.set(uid, told);
      return { requeueAfterMs: waitMs };
    }
    this.#told.delete(uid);
    return {};
  }

  /** Ends the pods in places that are left. Returns the places that are not finished with. */
  async #leave(offloading: NamespaceOffloading, signal: AbortSignal): Promise<string[]> {
    const { view, departures } = this.#options;
    const namespace = namespaceOf(offloading);
    const { uid } = offloading.metadata;
    const clusters = view.leftBy(offloading).filter((cluster) => view.virtualNodesOf(cluster).length > 0);
    const present = [...clusters, ...view.siblingsLeftBy(offloading)];
    departures.begin(uid, present);
    // What has been emptied once stays so: pods that somebody sends there afterwards are none of ours.
    const full = present.filter((place) => !departures.isEmpty(uid, place));
    const since = Math.max(...full.map((place) => departures.since(uid, place) ?? 0));
    const remaining =
      full.length === 0
        ? []
        : (await this.#sendHome(offloading, full, { since, isRemoved: false, signal })).pods;
    this.#empty(offloading, full, remaining);
    return present.filter((place) => {
      const emptyMs = departures.emptyForMs(uid, place);
      return emptyMs === undefined || (view.isMapped(namespace, place) && emptyMs < LEAVE_LIMIT_MS);
    });
  }

  #lookAfterMs({ metadata: { uid } }: NamespaceOffloading, places: readonly string[]): number {
    const { departures, clock } = this.#options;
    const latest = Math.max(...places.map((place) => departures.since(uid, place) ?? 0));
    return lookAfterMs(clock.now() - latest);
  }

  async #sendHome(
    offloading: NamespaceOffloading,
    places: readonly string[],
    options: { since: number; isRemoved: boolean; signal: AbortSignal },
  ): Promise<Leaving> {
    const { view, pods, budgetsForMs } = this.#options;
    const namespace = namespaceOf(offloading);
    const { onRemoval = 'Return', clusterSelector } = offloading.spec;
    return pods.sendHome({
      ...options,
      namespace,
      nodes: view.nodesOf(offloading, places),
      onRemoval,
      clusterSelector,
      virtualNodeOf: (nodeName) => view.virtualNodeOf(nodeName),
      isTerminating: view.isTerminating(namespace),
      budgetsForMs,
    });
  }

  /** From then on the mapping may go. */
  #empty(offloading: NamespaceOffloading, places: readonly string[], remaining: readonly Pod[]): void {
    const { view, departures, changed } = this.#options;
    const { uid } = offloading.metadata;
    const news = places
      .filter((place) => !isIn(view.nodesOf(offloading, [place]), remaining))
      .filter((place) => departures.empty(uid, place));
    if (news.length > 0) changed();
  }

  /** Pods first, then the mapping, then the object; each at most until the limit. */
  async #remove(offloading: NamespaceOffloading, signal: AbortSignal): Promise<ReconcileResult> {
    const { view, departures, clock, client, pods, budgetsForMs } = this.#options;
    const { uid, deletionTimestamp = '' } = offloading.metadata;
    const namespace = namespaceOf(offloading);
    const clusters = [...new Set([...clustersIn(offloading), ...view.selectedBy(offloading).map(clusterOf)])];
    departures.begin(uid, clusters);
    const since = Date.parse(deletionTimestamp);
    const leaving = await this.#sendHome(offloading, clusters, { since, isRemoved: true, signal });
    const { pods: remaining, held } = leaving;
    const limitMs = LEAVE_LIMIT_MS + (remaining.length > 0 ? budgetsForMs : 0) + graceMs(remaining);
    const isOverdue = clock.now() - since >= limitMs;
    this.#empty(offloading, clusters, isOverdue ? [] : remaining);
    const mapped = clusters.filter((cluster) => view.isMapped(namespace, cluster));
    // None can be made in a namespace that ends, which would wait for us.
    const isReturning = pods.isReturning(namespace) && !view.isTerminating(namespace);
    const isDone = remaining.length === 0 && mapped.length === 0 && !isReturning;
    if (!isDone && !isOverdue) {
      await this.#writeStatus(offloading, view.entries(offloading, clustersIn(offloading)), { held, signal });
      return { requeueAfterMs: LOOK_MS };
    }
    if (!isDone) this.#tellLeft(offloading, { mapped, count: remaining.length, isReturning });
    await removeFinalizer(client, namespaceOffloadings, offloading, {
      finalizer: FINALIZER_OFFLOADING,
      signal,
    });
    return {};
  }

  #tellLeft(offloading: NamespaceOffloading, left: LeftBehind): void {
    const { mapped, count, isReturning } = left;
    const { events, log } = this.#options;
    const entries = offloading.status?.clusters ?? [];
    const where = mapped.map((cluster) => {
      const entry = entries.find((one) => one.cluster === cluster);
      return `${entry?.clusterName ?? cluster} (namespace ${entry?.remoteNamespace ?? 'unknown'})`;
    });
    const what = [
      ...(where.length > 0 ? [`still mapped: ${where.join(', ')}`] : []),
      ...(count > 0 ? [`pods that have not ended: ${count}`] : []),
      ...(isReturning ? ['pods that are still to be made anew here'] : []),
    ].join('; ');
    const message = `not waited for any longer; ${what}. What is left at a provider that does not answer goes when its peering ends`;
    events.event(subjectOf(offloading), 'Warning', 'LeftBehind', message);
    log.warn('an offloaded namespace was not given back in time', {
      namespace: namespaceOf(offloading),
      left: what,
    });
  }

  async #writeStatus(
    offloading: NamespaceOffloading,
    entries: readonly OffloadedCluster[],
    { held = [], signal }: { held?: readonly Held[]; signal: AbortSignal },
  ): Promise<void> {
    const { client, clock, view } = this.#options;
    const { status = {}, metadata } = offloading;
    const { uid, generation, deletionTimestamp } = metadata;
    const isEnding = deletionTimestamp !== undefined;
    const refusal = view.refusal(namespaceOf(offloading));
    const clusters = entries.slice(0, MAX_NAMESPACES);
    const ready = readyOf({ clusters, refusal, isEnding, generation, held: held.map(heldText) });
    const conditions = withCondition(status.conditions ?? [], ready, clock.now());
    const wanted = {
      ...(generation !== undefined && { observedGeneration: generation }),
      clusters,
      conditions,
    };
    const { observedGeneration, clusters: shown, conditions: told } = status;
    if (deepEqual({ observedGeneration, clusters: shown, conditions: told }, wanted)) return;
    // heldOff is another's, so a merge patch of what is ours.
    const patch = { type: 'merge', body: { metadata: { uid }, status: wanted } } as const;
    await client.patch(namespaceOffloadings, metadata, patch, { subresource: 'status', signal });
    this.#tell(offloading, ready, clusters);
  }

  #tell(
    offloading: NamespaceOffloading,
    ready: ReturnType<typeof readyOf>,
    clusters: OffloadedCluster[],
  ): void {
    const { conditions, clusters: before } = offloading.status ?? {};
    const reason = conditions?.find(({ type }) => type === NAMESPACE_OFFLOADING_CONDITIONS.ready)?.reason;
    const news = newsOf({ ready: reason, ...(before && { clusters: before }) }, { ready, clusters });
    for (const { type, reason: why, message } of news) {
      this.#options.events.event(subjectOf(offloading), type, why, message);
    }
  }
}

/** Whether any of those pods is on those nodes. One without a node may still get to any. */
function isIn({ peers, byHand }: LeftNodes, remaining: readonly Pod[]): boolean {
  return remaining.some(
    ({ spec }) => spec?.nodeName === undefined || peers.has(spec.nodeName) || byHand.has(spec.nodeName),
  );
}

function graceMs(remaining: readonly Pod[]): number {
  const asked = remaining.map(({ metadata }) => (metadata.deletionGracePeriodSeconds ?? 0) * 1000);
  return Math.min(MAX_GRACE_MS, Math.max(0, ...asked));
}

/** Of objects that were listed, the API server leaves the kind out. */
const subjectOf = (
  offloading: NamespaceOffloading,
): NamespaceOffloading & { apiVersion: string; kind: string } => ({
  ...offloading,
  apiVersion: API_VERSION,
  kind: 'NamespaceOffloading',
});
