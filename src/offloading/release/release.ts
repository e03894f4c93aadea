import type { NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { controllerOf } from '../../api/pod.ts';
import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ControllerMetrics, ReconcileResult } from '../../kube/controller.ts';
import { Controller } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { LossBudget } from '../../lib/loss-budget.ts';
import type { BoundPod } from './bound-pods.ts';
import { BoundPods } from './bound-pods.ts';
import { decideRelease, refusalOf } from './decide.ts';
import { Remake } from './remake.ts';
import { ReleaseWrites } from './writes.ts';

/** Which namespaces are offloaded; from caches. */
export interface Offloadings {
  offloadingOf(namespace: string): NamespaceOffloading | undefined;
  all(): readonly NamespaceOffloading[];
  onChange(listener: () => void): () => void;
}

export interface ReleaseOptions {
  client: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
  events: EventRecorder;
  offloadings: Offloadings;
  /** Where manifests of pods that are being made anew are kept. */
  systemNamespace: string;
  /** Of its own where absent. Whoever hands one in, starts it. */
  remake?: Remake;
}

/** A refused pod, as this process has seen it. */
interface Watched {
  uid: string;
  /** Monotonic. */
  since: number;
  /** Its turn has come. */
  mayGo: boolean;
  /** Monotonic; the last write has been made, and the cache may not show it yet. */
  releasedAt?: number;
}

/** So long after its release it is looked whether a pod is really gone, or on its way. */
const LOOK_AGAIN_MS = 30_000;
/**
 * Pods of one namespace that may be on their way to be made anew: each keeps its manifest in our own namespace, and where
 * the API server takes none of them, by a quota for example, there would be no end of it.
 */
const MOST_REMADE = 32;
const FULL_WAIT_MS = 30_000;

/**
 * Brings pods back that their virtual node cannot place, slowly where they are many: a provider that refuses everything
 * is given the time in which a person can look.
 */
export class Release {
  readonly remake: Remake;
  readonly #options: ReleaseOptions;
  readonly #pods: BoundPods;
  readonly #writes: ReleaseWrites;
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
    this.#writes = new ReleaseWrites({ client, remake: this.remake });
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
    const action = decideRelease({ ...situation, watchedMs, nowMs: clock.now() });
    if (action.do === 'nothing') return {};
    if (action.do === 'wait') return { requeueAfterMs: action.ms };
    if (action.do === 'stay') {
      events.event(asPod(pod), 'Warning', 'NotReleased', action.message);
      return { requeueAfterMs: action.ms };
    }
    if (controllerOf(pod) === undefined && this.remake.count(pod.metadata.namespace ?? '') >= MOST_REMADE) {
      return { requeueAfterMs: FULL_WAIT_MS };
    }
    // A write that did not last is not repeated at once.
    if (action.do === situation.written) return { requeueAfterMs: 1000 };
    const waitMs = this.#waitForTurn(virtualNode, watched);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    // Each write returns the object as it is now, and what follows is decided anew from that.
    if (action.do === 'holdOff') {
      const offloading = await this.#writes.holdOff(situation.offloading, action.heldOff, signal);
      return this.#act({ ...situation, offloading, written: action.do }, signal);
    }
    if (action.do === 'mark') {
      const marked = await this.#writes.mark(pod, action.condition, signal);
      return this.#act({ ...situation, pod: marked, written: action.do }, signal);
    }
    const { clusterSelector } = situation.offloading.spec;
    const isGone =
      action.do === 'remake'
        ? await this.#writes.remakeElsewhere(pod, { virtualNode, clusterSelector, signal })
        : await this.#writes.delete(pod, signal);
    watched.releasedAt = clock.monotonic();
    if (!isGone) return {};
    events.event(asPod(pod), 'Warning', 'Released', action.message);
    log.info('released', { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, virtualNode });
    return {};
  }

  /** Taken once for each pod, before the first write for it; what fails then is repeated without another. */
  #waitForTurn(virtualNode: string, watched: Watched): number {
    if (watched.mayGo) return 0;
    let budget = this.#budgets.get(virtualNode);
    if (budget === undefined) this.#budgets.set(virtualNode, (budget = new LossBudget(this.#options.clock)));
    const waitMs = budget.take(watched.uid);
    watched.mayGo = waitMs === 0;
    return waitMs;
  }

  #watch(key: string, bound: BoundPod | undefined): Watched | undefined {
    if (bound === undefined || refusalOf(bound.pod) === undefined) {
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

const asPod = ({ metadata }: BoundPod['pod']): Parameters<EventRecorder['event']>[0] => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
});
