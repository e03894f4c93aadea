import { expressionsOf } from './admission/strategy.ts';
import { type WantedCondition, withCondition, withoutCondition } from '../api/conditions.ts';
import { MAX_NAMESPACES } from '../api/limits.ts';
import { FINALIZER_OFFLOADING } from '../api/names.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  type NamespaceOffloading,
  namespaceOffloadings,
  type OffloadedCluster,
} from '../api/namespace-offloading.ts';
import { homeAdvice } from '../api/sent-abroad.ts';
import type { Condition, Pod } from '../api/wire.ts';
import type { ReconcileResult } from '../kube/controller.ts';
import { type Held, heldText } from '../kube/evictions.ts';
import { addFinalizer, removeFinalizer } from '../kube/finalizers.ts';
import { Ages } from '../lib/ages.ts';
import { deepEqual } from '../lib/equality.ts';
import { present } from '../lib/fields.ts';
import { type Drains, type DrainedNodes, LOOK_MS, nextLookMs } from './drain.ts';
import type { DrainResult, NamespacePods } from './pods.ts';
import type { HomeLook, PodsAtHome } from './at-home/pods-at-home.ts';
import type { OffloadingParts } from './release/remake.ts';
import { eventsFor, policiesStricter, readyCondition, subjectOf } from './status.ts';
import { clusterOf, clustersIn, namespaceOf, type View } from './view.ts';
import type { WaitingPods } from './waiting/waiting-pods.ts';

interface ReconcilerOptions extends OffloadingParts {
  view: View;
  pods: NamespacePods;
  atHome: PodsAtHome;
  waiting: WaitingPods;
  drains: Drains;
  /** How long PodDisruptionBudgets may hold up a drain, milliseconds. */
  budgetsForMs: number;
  /** Called when the answers of `Offloading.of` have changed without a change in any cache. */
  changed: () => void;
}

/** What the other side has to do is waited for at most so long. */
const DRAIN_LIMIT_MS = 120_000;
/** Agents confirm for at most so long that they begin nothing more in a namespace; then its pods are ended nevertheless. */
const CLOSE_LIMIT_MS = 10_000;
/** Beyond that limit a pod gets the grace period that it asked for, but at most this. */
const MAX_GRACE_MS = 600_000;

interface StatusFacts {
  held?: readonly Held[];
  keptAway?: readonly Pod[];
  home?: HomeLook | undefined;
  signal: AbortSignal;
}

interface LeftBehind {
  /** Clusters that still have the mapping. */
  mapped: readonly string[];
  /** Those that have not ended. */
  pods: readonly Pod[];
  isRemaking: boolean;
}

/** Keeps the status of one NamespaceOffloading true, and drains what it no longer uses. Keys are namespaces. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #ages: Ages;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#ages = new Ages(options.clock);
  }

  async reconcile(namespace: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { view, client } = this.#options;
    const offloading = view.offloading(namespace);
    if (offloading === undefined) return this.#forget();
    const { deletionTimestamp, finalizers = [] } = offloading.metadata;
    const isKept = finalizers.includes(FINALIZER_OFFLOADING);
    if (deletionTimestamp !== undefined) return isKept ? this.#remove(offloading, signal) : {};
    if (!isKept && view.whyNotOffloadable(namespace) === undefined && !view.isTerminating(namespace)) {
      const ours = { finalizer: FINALIZER_OFFLOADING, signal };
      await addFinalizer(client, namespaceOffloadings, offloading, ours);
      return {};
    }
    const { drains, clock, atHome, waiting } = this.#options;
    const isInEffect = view.isInEffect(offloading);
    const home = isInEffect ? await atHome.look(offloading, signal) : undefined;
    const places = await this.#drainLeft(offloading, signal);
    await this.#writeStatus(offloading, view.entries(offloading, places), { home, signal });
    const waits = isInEffect ? await waiting.look(offloading, signal) : undefined;
    const looks = [home?.requeueAfterMs, waits].filter((ms) => ms !== undefined);
    if (places.length > 0) {
      looks.push(nextLookMs(clock.now() - drains.latestSince(offloading.metadata.uid, places)));
    }
    return looks.length === 0 ? {} : { requeueAfterMs: Math.min(...looks) };
  }

  /** The object is gone. */
  #forget(): ReconcileResult {
    const uids = new Set([...this.#options.view.offloadings()].map(({ metadata }) => metadata.uid));
    this.#options.drains.retain(uids);
    this.#options.atHome.retain(uids);
    this.#options.waiting.retain(uids);
    return {};
  }

  /** Drains the places that are no longer selected. Returns those that are not finished. */
  async #drainLeft(offloading: NamespaceOffloading, signal: AbortSignal): Promise<string[]> {
    const { view, drains } = this.#options;
    const namespace = namespaceOf(offloading);
    const { uid } = offloading.metadata;
    const clusters = view.leftBy(offloading).filter((cluster) => view.virtualNodesOf(cluster).length > 0);
    const present = [...clusters, ...view.siblingsLeftBy(offloading)];
    drains.set(uid, present);
    // A place that was empty once stays so: pods that somebody puts there afterwards are not ours to end.
    const full = present.filter((place) => !drains.isEmpty(uid, place) && this.#isClosed(offloading, place));
    const since = drains.latestSince(uid, full);
    const remaining =
      full.length === 0
        ? []
        : (await this.#drain(offloading, full, { since, isRemoved: false, signal })).pods;
    this.#setEmpty(offloading, full, remaining);
    return present.filter((place) => {
      const emptyMs = drains.emptyForMs(uid, place);
      return emptyMs === undefined || (view.isMapped(namespace, place) && emptyMs < DRAIN_LIMIT_MS);
    });
  }

  /** What ends first would begin there again. */
  #isClosed(offloading: NamespaceOffloading, place: string): boolean {
    const { view, drains, clock } = this.#options;
    const lastedMs = clock.now() - drains.latestSince(offloading.metadata.uid, [place]);
    return lastedMs >= CLOSE_LIMIT_MS || !view.mayBegin(namespaceOf(offloading), place);
  }

  async #drain(
    offloading: NamespaceOffloading,
    places: readonly string[],
    options: { since: number; isRemoved: boolean; signal: AbortSignal },
  ): Promise<DrainResult> {
    const { view, pods, budgetsForMs } = this.#options;
    const namespace = namespaceOf(offloading);
    const { onRemoval = 'Return', clusterSelector } = offloading.spec;
    return pods.drain({
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

  /** Records the places that have none of the remaining pods: their mapping may go. */
  #setEmpty(offloading: NamespaceOffloading, places: readonly string[], remaining: readonly Pod[]): void {
    const { view, drains, changed } = this.#options;
    const { uid } = offloading.metadata;
    const news = places
      .filter((place) => !isIn(view.nodesOf(offloading, [place]), remaining))
      .filter((place) => drains.setEmpty(uid, place));
    if (news.length > 0) changed();
  }

  /** Pods end first, then the mapping goes, then the object; each step waits at most until the limit. */
  async #remove(offloading: NamespaceOffloading, signal: AbortSignal): Promise<ReconcileResult> {
    const { view, drains, client, pods, budgetsForMs } = this.#options;
    const { uid, deletionTimestamp = '' } = offloading.metadata;
    const namespace = namespaceOf(offloading);
    const clusters = [...new Set([...clustersIn(offloading), ...view.selectedBy(offloading).map(clusterOf)])];
    drains.set(uid, clusters);
    const since = Date.parse(deletionTimestamp);
    if (!view.isTerminating(namespace) && clusters.some((cluster) => !this.#isClosed(offloading, cluster))) {
      await this.#writeStatus(offloading, view.entries(offloading, clustersIn(offloading)), { signal });
      return { requeueAfterMs: LOOK_MS };
    }
    const drain = await this.#drain(offloading, clusters, { since, isRemoved: true, signal });
    const { pods: remaining, held, keptAway } = drain;
    this.#tellKept(offloading, keptAway);
    const limitMs = DRAIN_LIMIT_MS + (remaining.length > 0 ? budgetsForMs : 0) + graceMs(remaining);
    const isOverdue = this.#ages.ageMs(uid, since) >= limitMs;
    this.#setEmpty(offloading, clusters, isOverdue ? [] : remaining);
    const mapped = clusters.filter((cluster) => view.isMapped(namespace, cluster));
    // In a namespace that is being deleted no pod can be made, and its deletion waits for us.
    const isRemaking = pods.isRemaking(namespace) && !view.isTerminating(namespace);
    const isDone = remaining.length === 0 && mapped.length === 0 && !isRemaking;
    if (!isDone && !isOverdue) {
      const entries = view.entries(offloading, clustersIn(offloading));
      await this.#writeStatus(offloading, entries, { held, keptAway, signal });
      return { requeueAfterMs: LOOK_MS };
    }
    if (!isDone) this.#tellLeft(offloading, { mapped, pods: remaining, isRemaking });
    const ours = { finalizer: FINALIZER_OFFLOADING, signal };
    await removeFinalizer(client, namespaceOffloadings, offloading, ours);
    return {};
  }

  #tellLeft(offloading: NamespaceOffloading, left: LeftBehind): void {
    const { mapped, pods, isRemaking } = left;
    const { events, log } = this.#options;
    const entries = offloading.status?.clusters ?? [];
    const where = mapped.map((cluster) => {
      const entry = entries.find((one) => one.cluster === cluster);
      return `${entry?.clusterName ?? cluster} (namespace ${entry?.remoteNamespace ?? 'unknown'})`;
    });
    const what = [
      ...(where.length > 0 ? [`still mapped: ${where.join(', ')}`] : []),
      ...(pods.length > 0 ? [`pods that have not ended: ${pods.length} (${someNames(pods)})`] : []),
      ...(isRemaking ? ['pods that are still to be made anew here'] : []),
    ].join('; ');
    const message = `not waited for any longer; ${what}. What is left over there goes when the peering ends`;
    events.event(subjectOf(offloading), 'Warning', 'LeftBehind', message);
    const namespace = namespaceOf(offloading);
    log.warn('an offloaded namespace was not given back in time', { namespace, left: what });
  }

  async #writeStatus(
    offloading: NamespaceOffloading,
    entries: readonly OffloadedCluster[],
    { held = [], keptAway = [], home, signal }: StatusFacts,
  ): Promise<void> {
    const { client, clock, view } = this.#options;
    const { spec, status = {}, metadata } = offloading;
    const { uid, generation, deletionTimestamp } = metadata;
    const isEnding = deletionTimestamp !== undefined;
    const refusal = view.whyNotOffloadable(namespaceOf(offloading));
    const clusters = entries.slice(0, MAX_NAMESPACES);
    const stricter = policiesStricter(namespaceOf(offloading), view.selectedBy(offloading));
    const ready = readyCondition({
      clusters,
      hasVirtualNodes: view.hasVirtualNodes(),
      isSelective: expressionsOf(spec.clusterSelector ?? {}).length > 0,
      refusal,
      isEnding,
      generation,
      held: held.map(heldText),
      keptAway: keptAwayText(keptAway),
      atHome: spec.podStrategy === 'Remote' && home?.count ? home.condition.message : undefined,
    });
    const wanted = {
      ...(generation !== undefined && { observedGeneration: generation }),
      clusters,
      ...(home && { podsAtHome: home.count }),
      conditions: withUnusual(
        withCondition(status.conditions ?? [], ready, clock.now()),
        { podsAtHome: home?.condition, policiesStricter: stricter },
        clock.now(),
      ),
    };
    const { observedGeneration, clusters: shown, podsAtHome, conditions: told } = status;
    if (deepEqual(present({ observedGeneration, clusters: shown, podsAtHome, conditions: told }), wanted))
      return;
    // A merge patch, since the release of pods writes heldOff.
    const body = { metadata: { uid }, status: { podsAtHome: null, ...wanted } };
    const patch = { type: 'merge', body } as const;
    await client.patch(namespaceOffloadings, metadata, patch, { subresource: 'status', signal });
    this.#tell(offloading, ready, clusters);
  }

  #tellKept(offloading: NamespaceOffloading, keptAway: readonly Pod[]): void {
    const message = keptAwayText(keptAway);
    if (message === undefined) return;
    this.#options.events.event(subjectOf(offloading), 'Warning', 'KeptAwayByTemplate', message);
  }

  #tell(
    offloading: NamespaceOffloading,
    ready: ReturnType<typeof readyCondition>,
    clusters: OffloadedCluster[],
  ): void {
    const { conditions, clusters: before } = offloading.status ?? {};
    const reason = conditions?.find(({ type }) => type === NAMESPACE_OFFLOADING_CONDITIONS.ready)?.reason;
    const news = eventsFor({ ready: reason, ...(before && { clusters: before }) }, { ready, clusters });
    for (const { type, reason: why, message } of news) {
      this.#options.events.event(subjectOf(offloading), type, why, message);
    }
  }
}

/** Those of these kinds as they are now. Those that speak of what is unusual go where it is not so. */
const withUnusual = (
  before: readonly Condition[],
  unusual: Readonly<Record<'podsAtHome' | 'policiesStricter', WantedCondition | undefined>>,
  now: number,
): readonly Condition[] =>
  (['podsAtHome', 'policiesStricter'] as const).reduce((conditions, name) => {
    const wanted = unusual[name];
    return wanted === undefined
      ? withoutCondition(conditions, NAMESPACE_OFFLOADING_CONDITIONS[name])
      : withCondition(conditions, wanted, now);
  }, before);

const NAMED = 5;

const someNames = (pods: readonly Pod[]): string =>
  pods
    .slice(0, NAMED)
    .map(({ metadata }) => metadata.name)
    .join(', ') + (pods.length > NAMED ? ', ...' : '');

function keptAwayText([first, ...others]: readonly Pod[]): string | undefined {
  if (first === undefined) return undefined;
  const more = others.length === 0 ? '' : `; ${others.length} more wait like it`;
  return `pod ${first.metadata.name} waits for a virtual node and does not run, since its template sends it there. To run it at home, ${homeAdvice(first)}${more}`;
}

/** Whether any of these pods is on those nodes. A pod without a node may still get to any of them. */
function isIn({ peers, byHand }: DrainedNodes, remaining: readonly Pod[]): boolean {
  return remaining.some(
    ({ spec }) => spec?.nodeName === undefined || peers.has(spec.nodeName) || byHand.has(spec.nodeName),
  );
}

function graceMs(remaining: readonly Pod[]): number {
  const asked = remaining.map(({ metadata }) => (metadata.deletionGracePeriodSeconds ?? 0) * 1000);
  return Math.min(MAX_GRACE_MS, Math.max(0, ...asked));
}
