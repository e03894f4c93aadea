import type { LabelSelector } from '../../api/label-selector.ts';
import type { NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { isControlled } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { Pod, PodCondition } from '../../api/wire.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { aboutPod } from '../../kube/events.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { LossBudget } from '../../lib/loss-budget.ts';
import { type BoundPod, BoundPods } from './bound-pods.ts';
import type { Offloading } from '../offloading.ts';
import { writeHeldOff } from '../write-held-off.ts';
import { decideRelease, placingRefusal } from './decide.ts';
import { MOST_REMADE, type OffloadingParts, Remake } from './remake.ts';

interface ReleaseOptions extends OffloadingParts {
  caches: Caches;
  offloadings: Pick<Offloading, 'offloadingOf' | 'onChange'>;
  /** Holds the journals of pods that are being made anew. */
  systemNamespace: string;
  /** Default: one of its own. Whoever hands one in starts it. */
  remake?: Remake;
}

/** A refused pod, as this process has watched it. */
interface Watched {
  uid: string;
  /** Since when, monotonic. */
  since: number;
  /** The budget has let it go. */
  mayGo: boolean;
  /** When the last write was made, monotonic; the cache may not show it yet. */
  releasedAt?: number;
}

/** So long after its release, a pod that is still there is looked at again. */
const LOOK_AGAIN_MS = 30_000;
const FULL_WAIT_MS = 30_000;

/**
 * Brings pods back that their virtual node cannot place; slowly where they are many, so that a person has time to look when
 * a provider refuses everything.
 */
export class Release {
  readonly remake: Remake;
  readonly #options: ReleaseOptions;
  readonly #pods: BoundPods;
  readonly #controller: Controller;
  /** By virtual node. */
  readonly #budgets = new Map<string, LossBudget>();
  /** By key. */
  readonly #watched = new Map<string, Watched>();

  constructor(options: ReleaseOptions) {
    const { client, caches, clock, log, metrics, offloadings } = options;
    this.#options = { ...options, log: log.named('release') };
    this.remake = options.remake ?? new Remake(options);
    this.#pods = new BoundPods({ client, caches, clock, log: this.#options.log });
    this.#controller = new Controller({
      name: 'release',
      concurrency: 2,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      clock,
      log: this.#options.log,
      ...(metrics && { metrics }),
    });
    this.#pods.onChange((key) => this.#controller.add(key));
    offloadings.onChange(() => {
      for (const key of this.#pods.keys()) this.#controller.addSlow(key);
    });
  }

  components(): Component[] {
    const remake = this.#options.remake === undefined ? this.remake.components() : [];
    return [this.#pods, ...remake, this.#controller];
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const bound = this.#pods.get(key);
    const watched = this.#watch(key, bound);
    const namespace = bound?.pod.metadata.namespace ?? '';
    const offloading = this.#options.offloadings.offloadingOf(namespace);
    if (bound === undefined || watched === undefined || offloading === undefined) return {};
    const sinceRelease = this.#options.clock.monotonic() - (watched.releasedAt ?? -Infinity);
    if (sinceRelease < LOOK_AGAIN_MS) return { requeueAfterMs: LOOK_AGAIN_MS - sinceRelease };
    return this.#act({ ...bound, offloading, watched }, signal);
  }

  async #act(
    situation: BoundPod & { offloading: NamespaceOffloading; watched: Watched; written?: string },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, events, log } = this.#options;
    const { pod, virtualNode, watched } = situation;
    const watchedMs = clock.monotonic() - watched.since;
    const action = decideRelease({
      ...situation,
      watchedMs,
      nowMs: clock.now(),
      labelsOf: (name) => this.#pods.labelsOf(name),
    });
    if (action.do === 'nothing') return {};
    if (action.do === 'wait') return { requeueAfterMs: action.ms };
    if (action.do === 'stay') {
      events.event(aboutPod(pod), 'Warning', 'NotReleased', action.message);
      return { requeueAfterMs: action.ms };
    }
    if (!isControlled(pod) && this.remake.count(pod.metadata.namespace ?? '') >= MOST_REMADE) {
      return { requeueAfterMs: FULL_WAIT_MS };
    }
    // The write has not changed the decision: it is not repeated at once.
    if (action.do === situation.written) return { requeueAfterMs: 1000 };
    const waitMs = this.#waitForTurn(virtualNode, watched);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    // Each write returns the object as it is now; the next step is decided anew from that.
    if (action.do === 'holdOff') {
      const { client } = this.#options;
      const offloading = await writeHeldOff(client, situation.offloading, action.heldOff, signal);
      return this.#act({ ...situation, offloading, written: action.do }, signal);
    }
    if (action.do === 'mark') {
      const marked = await this.#mark(pod, action.condition, signal);
      return this.#act({ ...situation, pod: marked, written: action.do }, signal);
    }
    const { clusterSelector } = situation.offloading.spec;
    const isGone =
      action.do === 'remake'
        ? await this.#remakeElsewhere(pod, { virtualNode, clusterSelector, signal })
        : await this.#delete(pod, signal);
    watched.releasedAt = clock.monotonic();
    if (!isGone) return {};
    events.event(aboutPod(pod), 'Warning', 'Released', action.message);
    log.info('released', { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, virtualNode });
    return {};
  }

  // Each write names the UID and the version that it was decided for; otherwise it fails with Conflict.

  /** Conditions are merged by type. */
  async #mark({ metadata }: BoundPod['pod'], condition: PodCondition, signal: AbortSignal): Promise<Pod> {
    const { uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
    const options = { subresource: 'status', signal };
    return this.#options.client.patch(pods, metadata, { type: 'strategic', body }, options);
  }

  /**
   * By version: a pod whose start has been reported is not deleted. Between the start in the foreign cluster and that
   * report lies one write of the agent; a pod that starts in that time is ended, with its grace. False: it was gone before.
   */
  async #delete({ metadata }: BoundPod['pod'], signal: AbortSignal): Promise<boolean> {
    const { uid, resourceVersion } = metadata;
    const deleting = this.#options.client.delete(pods, metadata, { uid, resourceVersion, signal });
    return (await deleting.then(() => true).catch(ignoring('NotFound'))) ?? false;
  }

  /** The journal does the rest; see Remake. False: that had begun before, or is not needed any more. */
  async #remakeElsewhere(
    { metadata }: BoundPod['pod'],
    where: { virtualNode: string; clusterSelector: LabelSelector | undefined; signal: AbortSignal },
  ): Promise<boolean> {
    const { virtualNode: from, clusterSelector, signal } = where;
    // The cache holds no specs.
    const pod = await this.#options.client.get(pods, metadata, { signal }).catch(ignoring('NotFound'));
    if (pod?.metadata.uid !== metadata.uid || placingRefusal(pod) === undefined) return false;
    const selector = clusterSelector && { clusterSelector };
    return this.remake.begin(pod, { from, unlessStarted: true, ...selector, signal });
  }

  /** One turn for each pod, before the first write for it; a failed write is repeated without another turn. */
  #waitForTurn(virtualNode: string, watched: Watched): number {
    if (watched.mayGo) return 0;
    let budget = this.#budgets.get(virtualNode);
    if (budget === undefined) this.#budgets.set(virtualNode, (budget = new LossBudget(this.#options.clock)));
    const waitMs = budget.take(watched.uid);
    watched.mayGo = waitMs === 0;
    return waitMs;
  }

  #watch(key: string, bound: BoundPod | undefined): Watched | undefined {
    if (bound === undefined || placingRefusal(bound.pod) === undefined) {
      this.#watched.delete(key);
      return undefined;
    }
    const { uid } = bound.pod.metadata;
    const known = this.#watched.get(key);
    if (known?.uid === uid) return known;
    const watched = { uid, since: this.#options.clock.monotonic(), mayGo: false };
    this.#watched.set(key, watched);
    return watched;
  }
}
