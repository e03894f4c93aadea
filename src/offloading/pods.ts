import type { EventReason } from '../api/reasons/events.ts';
import type { LabelSelector } from '../api/label-selector.ts';
import { pods } from '../api/resources.ts';
import { isKeptAway } from '../api/sent-abroad.ts';
import type { Pod } from '../api/wire.ts';
import { aboutPod } from '../kube/events.ts';
import { BUDGET_OVERRIDDEN, Evictions, type Held, heldText, overriddenText } from '../kube/evictions.ts';
import type { MakeAnew } from '../kube/drain.ts';
import { deleteByUid } from '../kube/write.ts';
import { Ages } from '../lib/ages.ts';
import { eachAtOnce } from '../lib/each-at-once.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { drainAction, type DrainContext } from './drain.ts';
import type { RemakeOptions } from './release/journal.ts';
import type { OffloadingParts, Remake } from './release/remake.ts';

interface NamespacePodsOptions extends Pick<OffloadingParts, 'client' | 'clock' | 'events'> {
  remake: Pick<Remake, 'begin' | 'count'>;
}

interface DrainOptions extends DrainContext {
  namespace: string;
  /** Of the NamespaceOffloading, as the webhook has put it into pods. */
  clusterSelector: LabelSelector | undefined;
  /** Name of the VirtualNode that a Node comes from. */
  virtualNodeOf: (nodeName: string) => string;
  /** Others are deleting its pods, and no new pod can be made. */
  isTerminating: boolean;
  /** PodDisruptionBudgets are honoured for so long after `since`, milliseconds. */
  budgetsForMs: number;
  signal: AbortSignal;
}

type EndOptions = Pick<RemakeOptions, 'from' | 'clusterSelector'> & Parameters<MakeAnew>[1];

/** Pods that have to go and are still there. */
export interface DrainResult {
  pods: Pod[];
  /** Those that a PodDisruptionBudget holds up. */
  held: readonly Held[];
  /** Those that stay, and do not run: their own templates send them to virtual nodes. */
  keptAway: readonly Pod[];
}

const PAGE = 500;
const AT_ONCE = 8;

/** Pods of a namespace. They are read when needed: that is seldom, and a cache of all pods of a cluster is large. */
export class NamespacePods {
  readonly #options: NamespacePodsOptions;
  readonly #evictions: Evictions;
  readonly #ages: Ages;

  constructor(options: NamespacePodsOptions) {
    this.#options = options;
    this.#ages = new Ages(options.clock);
    this.#evictions = new Evictions(options);
  }

  /** Ends the pods that have to go, as their budgets allow: one pass, which does not wait. */
  async drain({ namespace, signal, ...options }: DrainOptions): Promise<DrainResult> {
    const isGoing = (pod: Pod): boolean => drainAction(pod, options) !== 'Stay';
    const isStuck = (pod: Pod): boolean =>
      options.isRemoved && !isGoing(pod) && isStuckAway(pod, options.nodes);
    const found = await this.#select(namespace, signal, (pod) => isGoing(pod) || isStuck(pod));
    const going = found.filter(isGoing);
    if (options.isTerminating) return { pods: going, held: [], keptAway: [] };
    const fresh = going.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const answers = await eachAtOnce(fresh, AT_ONCE, async (pod) =>
      this.#tryDrainOne(pod, { ...options, signal }),
    );
    const held = answers.filter((answer) => answer !== undefined);
    return { pods: going, held, keptAway: found.filter((pod) => !isGoing(pod)) };
  }

  /** Stores that a pod is made anew at home, once its budget lets it end. What is in the way is told on it. */
  async endWithPeering(pod: Pod, how: EndOptions): ReturnType<MakeAnew> {
    const { remake } = this.#options;
    const { budgetsUntil, signal } = how;
    try {
      // A budget that holds it now is asked first: the peering may be wanted again before it lets go.
      const isAsked = this.#ages.leftMs(pod.metadata.uid, budgetsUntil) > 0;
      const held = isAsked ? await this.#evictions.one(pod, signal, { dryRun: true }) : undefined;
      if (held !== undefined) return { mayEnd: false, held };
      await remake.begin(pod, { ...how, unlessStarted: false });
      return { mayEnd: true };
    } catch (error) {
      if (signal.aborted) throw error;
      this.#tellNotYet(pod, error);
      return { mayEnd: false };
    }
  }

  /** Whether drained pods are still to be made anew. */
  isRemaking(namespace: string): boolean {
    return this.#options.remake.count(namespace) > 0;
  }

  /** A pod that cannot be ended (its owner may have made it so) must hold up neither the other pods nor the whole drain. */
  async #tryDrainOne(pod: Pod, options: Omit<DrainOptions, 'namespace'>): Promise<Held | undefined> {
    try {
      return await this.#drainOne(pod, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      this.#tellNotYet(pod, error);
      return undefined;
    }
  }

  async #drainOne(pod: Pod, options: Omit<DrainOptions, 'namespace'>): Promise<Held | undefined> {
    const { client, remake } = this.#options;
    const { signal, clusterSelector, since, budgetsForMs, onRemoval } = options;
    const isRemade = drainAction(pod, options) === 'Remake';
    const budgetsUntil = since + budgetsForMs;
    // With onRemoval End nobody wants a replacement, so no budget could be waited for.
    if (onRemoval !== 'End') {
      // A pod that is made anew is evicted by its journal: evicted here, it would be lost if this process were killed next.
      const held = await this.#evictions.one(pod, signal, { dryRun: isRemade });
      if (held === undefined && !isRemade) return undefined;
      if (held !== undefined && this.#ages.ageMs('drain', since) < budgetsForMs)
        return this.#tellHeld(held, budgetsUntil);
      if (held?.budget !== undefined)
        this.#tell(pod, BUDGET_OVERRIDDEN, overriddenText(held, budgetsForMs, WHY));
    }
    if (isRemade) {
      const from = options.virtualNodeOf(pod.spec?.nodeName ?? '');
      const taken = clusterSelector === undefined ? {} : { clusterSelector };
      await remake.begin(pod, { from, unlessStarted: false, ...taken, budgetsUntil, signal });
      return undefined;
    }
    // Another pod of that name is judged when it is listed.
    await deleteByUid(client, pods, pod, { signal });
    return undefined;
  }

  #tellHeld(held: Held, budgetsUntil: number): Held {
    const until = new Date(budgetsUntil).toISOString();
    const message = `is to come home, but ${heldText(held)}; not regarded any more from ${until} on`;
    this.#tell(held.pod, HELD_BY_BUDGET, message);
    return held;
  }

  /** Of a conflict nobody needs to know: it is over at one of the next looks. */
  #tellNotYet(pod: Pod, error: unknown): void {
    if (!hasCode(error, 'Conflict')) this.#tell(pod, NOT_BROUGHT_HOME, notYet(error));
  }

  #tell(pod: Pick<Pod, 'metadata'>, reason: EventReason, message: string): void {
    this.#options.events.event(aboutPod(pod), 'Warning', reason, message);
  }

  async #select(namespace: string, signal: AbortSignal, wanted: (pod: Pod) => boolean): Promise<Pod[]> {
    const found: Pod[] = [];
    for await (const { items } of this.#options.client.pages(pods, { namespace, limit: PAGE, signal })) {
      found.push(...items.filter(wanted));
    }
    return found;
  }
}

/** Without the webhook, on a node from which the namespace goes, or still on the way there. */
const isStuckAway = (pod: Pod, { peers }: DrainContext['nodes']): boolean =>
  isKeptAway(pod) && peers.has(pod.spec?.nodeName ?? [...peers][0] ?? '');

const notYet = (error: unknown): string =>
  `cannot be brought home, and is tried again: ${errorMessage(error)}`;

const HELD_BY_BUDGET = 'HeldByBudget';
const WHY = 'its namespace leaves the cluster that it runs in';

/** Reason of the event on a pod that had to go and could be neither deleted nor recorded to be made anew. */
const NOT_BROUGHT_HOME = 'NotBroughtHome';
