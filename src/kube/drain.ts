import { isGuest, isOfDaemonSet } from '../api/pod.ts';
import { pods } from '../api/resources.ts';
import type { Node, Pod } from '../api/wire.ts';
import type { Random } from '../lib/backoff.ts';
import { eachAtOnce } from '../lib/each-at-once.ts';
import { errorMessage } from '../lib/errors.ts';
import { Ages } from '../lib/ages.ts';
import type { ClusterBasics } from './client.ts';
import { type DrainLimits, type DrainState, type Stage, awayForMs, stageOf } from './drain-stage.ts';
import { aboutPod, type EventRecorder } from './events.ts';
import { BUDGET_OVERRIDDEN, Evictions, type Held, overriddenText } from './evictions.ts';
import { deleteByUid } from './write.ts';

export interface NodeDrainOptions extends ClusterBasics {
  /** For events on pods whose budget was overridden. */
  events: EventRecorder;
  limits: DrainLimits;
  random?: Random;
}

export interface Drained {
  nodeName: string;
  /** The Node as just read; undefined if it does not exist. */
  node: Node | undefined;
  /** When the drain began, milliseconds since the epoch. */
  sinceMs: number;
  hasty: boolean;
  /** Why, for the event on a pod whose budget does not count any more: "the peering ends". */
  why: string;
  /** When somebody else ends them by force, milliseconds since 1970: budgets then count no longer than lets them end before. */
  untilMs?: number;
  /** Pods that others end, to make them anew: left alone until they do, as long as the stages can last. */
  spares?: ((pod: Pod) => boolean) | undefined;
  /** Asked about each pod before it is ended. Default: none is made anew. */
  makeAnew?: MakeAnew | undefined;
}

/**
 * Makes sure that the pod is made anew once it has ended, where somebody wants that and nobody else does it. `mayEnd` false: that
 * is not stored, so the pod is left alone until pods are ended by force; `held`: because a budget holds it.
 */
export type MakeAnew = (
  pod: Pod,
  terms: { budgetsUntil: number; signal: AbortSignal },
) => Promise<{ mayEnd: boolean; held?: Held }>;

/** Clocks differ, and a deletion has to arrive over there. */
const SLACK_MS = 5000;
const POLL_MS = 500;
const AT_ONCE = 16;

/**
 * Ends the pods of nodes, in stages (drain-stage.ts). Each call is one look, which never waits for a pod: so the drain
 * of one node holds up no other. Pods of DaemonSets are not waited for: they would come back at once.
 */
export class NodeDrain {
  readonly #options: NodeDrainOptions;
  readonly #evictions: Evictions;
  readonly #ages: Ages;

  constructor(options: NodeDrainOptions) {
    this.#options = options;
    this.#ages = new Ages(options.clock);
    this.#evictions = new Evictions(options);
  }

  /** Undefined: nothing is left to wait for. */
  async look(drained: Drained, signal: AbortSignal): Promise<DrainState | undefined> {
    const { client, log } = this.#options;
    const limits = limitsBefore(this.#options.limits, drained);
    const { nodeName, node, sinceMs, hasty, spares } = drained;
    const { items } = await client.list(pods, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
    const ending = items.filter((pod) => !isOfDaemonSet(pod));
    if (ending.length === 0) return undefined;
    const elapsedMs = this.#ages.ageMs(nodeName, sinceMs);
    const now = sinceMs + elapsedMs;
    const awayMs = awayForMs(node, now, elapsedMs);
    const lastMs = sinceMs + limits.evictMs + limits.endMs;
    const isLast = elapsedMs >= limits.evictMs + limits.endMs;
    const isSpared = (pod: Pod): boolean =>
      pod.metadata.deletionTimestamp === undefined && !isLast && spares?.(pod) === true;
    const stage = stageOf({ elapsedMs, hasty, ...(awayMs !== undefined && { awayMs }) }, limits);
    const going = ending.filter((pod) => pod.metadata.deletionTimestamp === undefined && !isSpared(pod));
    const budgetsUntil = hasty || stage.kind === 'Force' ? now : sinceMs + limits.evictMs;
    const { fresh, waiting } = await recorded(going, drained.makeAnew, { budgetsUntil, signal });
    if (stage.kind === 'Force') {
      const overdue = items.filter((pod) => !isSpared(pod));
      const left = items.length - overdue.length;
      if (overdue.length > 0) log.warn('pods did not end in time', { node: nodeName, pods: overdue.length });
      await this.force(nodeName, overdue, signal);
      if (left === 0) return undefined;
      return { stage: stage.kind, left, held: [], untilMs: lastMs, waitMs: POLL_MS };
    }
    const held = [...waiting, ...(await this.#end(fresh, stage.kind, drained, signal))];
    return {
      stage: stage.kind,
      left: ending.length,
      held,
      untilMs: now + stage.endsInMs,
      waitMs: Math.max(1, Math.min(POLL_MS, stage.endsInMs)),
    };
  }

  async #end(
    fresh: readonly Pod[],
    stage: Stage['kind'],
    { hasty, ...drained }: Drained,
    signal: AbortSignal,
  ): Promise<Held[]> {
    if (hasty) return this.#delete(fresh, signal);
    // Budgets here are not about them, and the fence of role cluster permits no eviction of them.
    const refused = await this.#delete(fresh.filter(isGuest), signal);
    const own = fresh.filter((pod) => !isGuest(pod));
    // Also when time is up: no event is needed for a pod that its budget permits to go.
    const held = await this.#evictions.run(own, signal);
    if (stage === 'Evict') return [...refused, ...held];
    for (const { pod, budget, message } of held) {
      this.#tellOverridden(pod, { budget, message, ...drained });
    }
    const deleted = await this.#delete(
      held.map(({ pod }) => pod),
      signal,
    );
    return [...refused, ...deleted];
  }

  #tellOverridden(
    { metadata }: Pick<Pod, 'metadata'>,
    about: Pick<Drained, 'why' | 'sinceMs' | 'untilMs'> & { budget: string | undefined; message: string },
  ): void {
    const { events, limits } = this.#options;
    const { budget, message, why } = about;
    if (budget === undefined) return;
    const text = overriddenText({ budget, message }, limitsBefore(limits, about).evictMs, why);
    events.event(aboutPod({ metadata }), 'Warning', BUDGET_OVERRIDDEN, text);
  }

  /**
   * Ends pods of a node at once. One that the API server refuses to delete is told of and left behind: it may hold up neither the
   * others nor who takes the node down.
   */
  async force(node: string, items: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { log, events } = this.#options;
    const refused = await this.#delete(items, signal, { gracePeriodSeconds: 0 });
    const [first] = refused;
    if (first === undefined) return;
    log.warn('pods cannot be ended and are left behind', {
      node,
      pods: refused.length,
      error: first.message,
    });
    for (const { pod, message } of refused) {
      const text = `cannot be ended by force, and is left behind where node ${node} was: ${message}`;
      events.event(aboutPod(pod), 'Warning', 'NotBroughtHome', text);
    }
  }

  /**
   * An object that is gone, or that another one has replaced, counts as deleted. Returns those that the API server refuses to
   * delete, each with the reason.
   */
  async #delete(
    items: readonly Pick<Pod, 'metadata'>[],
    signal: AbortSignal,
    how: { gracePeriodSeconds?: number } = {},
  ): Promise<Held[]> {
    const answers = await eachAtOnce(items, AT_ONCE, async (pod): Promise<Held | undefined> => {
      try {
        await deleteByUid(this.#options.client, pods, pod, { ...how, signal });
        return undefined;
      } catch (error) {
        if (signal.aborted) throw error;
        return { pod, message: errorMessage(error) };
      }
    });
    return answers.filter((answer) => answer !== undefined);
  }
}

/** Which of them may be ended now. */
async function recorded(
  going: readonly Pod[],
  makeAnew: MakeAnew | undefined,
  terms: Parameters<MakeAnew>[1],
): Promise<{ fresh: readonly Pod[]; waiting: Held[] }> {
  if (makeAnew === undefined) return { fresh: going, waiting: [] };
  const answers = await eachAtOnce(going, AT_ONCE, async (pod) => makeAnew(pod, terms));
  return {
    fresh: going.filter((_, index) => answers[index]?.mayEnd),
    waiting: answers.flatMap(({ held }) => held ?? []),
  };
}

function limitsBefore(
  limits: DrainLimits,
  { sinceMs, untilMs = Infinity }: Pick<Drained, 'sinceMs' | 'untilMs'>,
): DrainLimits {
  const leftMs = Math.max(0, untilMs - limits.endMs - SLACK_MS - sinceMs);
  return { ...limits, evictMs: Math.min(limits.evictMs, leftMs) };
}
