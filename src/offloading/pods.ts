import type { LabelSelector } from '../api/label-selector.ts';
import { pods } from '../api/resources.ts';
import type { Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import { BUDGET_OVERRIDDEN, Evictions, type Held, heldText, overriddenText } from '../kube/evictions.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage, ignoring } from '../lib/errors.ts';
import { earlyMessage, isTooEarly } from './early.ts';
import { farewellOf, type LeavingContext } from './leaving.ts';

/** Makes pods anew that nobody would replace, whatever becomes of this process (release/remake.ts). */
export interface Remaker {
  /** Resolves when it is certain that the pod will be deleted and made anew, as it was before admission. */
  begin(
    pod: Pod,
    options: {
      from: string;
      unlessStarted: boolean;
      clusterSelector?: LabelSelector;
      budgetsUntil?: number;
      signal: AbortSignal;
    },
  ): Promise<unknown>;
  /** Whether pods of that namespace are still to be made anew. */
  pending(namespace: string): boolean;
}

export interface NamespacePodsOptions {
  client: KubeClient;
  clock: Clock;
  events: EventRecorder;
  remaker: Remaker;
}

export interface FarewellOptions extends LeavingContext {
  namespace: string;
  /** Of the NamespaceOffloading; what the webhook has put into pods. */
  clusterSelector: LabelSelector | undefined;
  /** Name of the VirtualNode of a Node. */
  virtualNodeOf: (nodeName: string) => string;
  /** Its pods are being deleted by others, and none can be made. */
  isTerminating: boolean;
  /** For so long after `since`, PodDisruptionBudgets are honoured. */
  budgetsForMs: number;
  signal: AbortSignal;
}

/** Pods that have to leave and are still there: on their way, or held. */
export interface Leaving {
  pods: Pod[];
  held: readonly Held[];
}

const PAGE = 500;
const AT_ONCE = 8;
/** Each event is a write; whoever has more pods than this knows after so many. */
const MAX_NOTICES = 100;

/**
 * Pods of one namespace, read when they are needed: that is seldom, and a cache of all pods of a cluster is large.
 */
export class NamespacePods {
  readonly #options: NamespacePodsOptions;
  readonly #evictions: Evictions;

  constructor(options: NamespacePodsOptions) {
    this.#options = options;
    this.#evictions = new Evictions(options);
  }

  /** Ends the pods that have to leave, as their budgets allow; one look, which waits for nobody. */
  async sendHome({ namespace, signal, ...options }: FarewellOptions): Promise<Leaving> {
    const leaving = await this.#select(namespace, signal, (pod) => farewellOf(pod, options) !== 'Stay');
    if (options.isTerminating) return { pods: leaving, held: [] };
    const held: Held[] = [];
    const fresh = leaving.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    for (let at = 0; at < fresh.length; at += AT_ONCE) {
      const some = fresh.slice(at, at + AT_ONCE);
      const answers = await Promise.all(
        some.map(async (pod) => this.#trySendOne(pod, { ...options, signal })),
      );
      held.push(...answers.filter((answer) => answer !== undefined));
    }
    return { pods: leaving, held };
  }

  /** Whether pods that were sent home are still on their way. */
  isReturning(namespace: string): boolean {
    return this.#options.remaker.pending(namespace);
  }

  /** A pod that cannot be ended, which its maker may have seen to, must keep neither the others nor the whole. */
  async #trySendOne(pod: Pod, options: Omit<FarewellOptions, 'namespace'>): Promise<Held | undefined> {
    try {
      return await this.#sendOne(pod, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      const subject = { ...pod, apiVersion: 'v1', kind: 'Pod' };
      const message = `cannot be brought home, and is tried again: ${errorMessage(error)}`;
      this.#options.events.event(subject, 'Warning', NOT_BROUGHT_HOME, message);
      return undefined;
    }
  }

  async #sendOne(pod: Pod, options: Omit<FarewellOptions, 'namespace'>): Promise<Held | undefined> {
    const { remaker, clock } = this.#options;
    const { signal, clusterSelector, since, budgetsForMs, onRemoval } = options;
    const isRemade = farewellOf(pod, options) === 'Remake';
    const budgetsUntil = since + budgetsForMs;
    // Who asks for the end of the pods asks for no replacement that could be waited for.
    if (onRemoval !== 'End') {
      // Of a pod that is made anew, the eviction itself is the journal's: else a kill between the two would lose it.
      const held = await this.#evictions.one(pod, signal, { dryRun: isRemade });
      if (held === undefined && !isRemade) return undefined;
      if (held !== undefined && clock.now() < budgetsUntil) return this.#tellHeld(held, budgetsUntil);
      if (held?.budget !== undefined)
        this.#tell(pod, BUDGET_OVERRIDDEN, overriddenText(held, budgetsForMs, WHY));
    }
    if (isRemade) {
      const from = options.virtualNodeOf(pod.spec?.nodeName ?? '');
      const taken = clusterSelector === undefined ? {} : { clusterSelector };
      await remaker.begin(pod, { from, unlessStarted: false, ...taken, budgetsUntil, signal });
      return undefined;
    }
    await this.#delete(pod, signal);
    return undefined;
  }

  #tellHeld(held: Held, budgetsUntil: number): Held {
    const until = new Date(budgetsUntil).toISOString();
    const message = `is to come home, but ${heldText(held)}; not regarded any more from ${until} on`;
    this.#tell(held.pod, HELD_BY_BUDGET, message);
    return held;
  }

  #tell({ metadata }: Pick<Pod, 'metadata'>, reason: string, message: string): void {
    this.#options.events.event({ apiVersion: 'v1', kind: 'Pod', metadata }, 'Warning', reason, message);
  }

  async #delete(pod: Pod, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    // Another one under its name is looked at when it is listed.
    await this.#options.client
      .delete(pods, pod.metadata, { uid, signal })
      .catch(ignoring('NotFound', 'Conflict'));
  }

  /** Tells those that were made too early, but not the ones in `told`. Returns how many there are; adds them to `told`. */
  async tellEarly(namespace: string, told: Set<string>, signal: AbortSignal): Promise<number> {
    const early = await this.#select(
      namespace,
      signal,
      (pod) => isTooEarly(pod) && !told.has(pod.metadata.uid),
    );
    for (const [index, pod] of early.entries()) {
      told.add(pod.metadata.uid);
      if (index >= MAX_NOTICES) continue;
      const subject = { ...pod, apiVersion: 'v1', kind: 'Pod' };
      this.#options.events.event(subject, 'Warning', NOT_OFFLOADED, earlyMessage(pod));
    }
    return early.length;
  }

  async #select(namespace: string, signal: AbortSignal, wanted: (pod: Pod) => boolean): Promise<Pod[]> {
    const found: Pod[] = [];
    for await (const { items } of this.#options.client.pages(pods, { namespace, limit: PAGE, signal })) {
      found.push(...items.filter(wanted));
    }
    return found;
  }
}

/** Reason of the event on a pod that was made before its namespace was offloaded. */
export const NOT_OFFLOADED = 'NotOffloaded';

const HELD_BY_BUDGET = 'HeldByBudget';
const WHY = 'its namespace leaves the cluster that it runs in';

/** Reason of the event on a pod that had to leave and could not be deleted, or not be kept to be made anew. */
const NOT_BROUGHT_HOME = 'NotBroughtHome';
