import type { Pod } from '../api/wire.ts';
import { type Random, fullJitterMs } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { eachAtOnce } from '../lib/each-at-once.ts';
import { errorMessage } from '../lib/errors.ts';
import { remember } from '../lib/remember.ts';
import type { KubeClient } from './client.ts';
import { evict } from './evict.ts';

export interface EvictionsOptions {
  client: KubeClient;
  clock: Clock;
  random?: Random;
}

/** Why a pod is not evicted yet. */
export interface Held {
  pod: Pick<Pod, 'metadata'>;
  /** `namespace/name`; absent if a budget is not the reason. */
  budget?: string;
  message: string;
}

interface Attempt {
  held: Held;
  count: number;
  /** We do not ask again before this time; monotonic milliseconds. */
  nextMs: number;
}

/** A budget is looked at soon after the first refusal, then ever more rarely. */
const PATIENCE = { baseMs: 1000, capMs: 15_000 };
const AT_ONCE = 16;
/** If there are more, the oldest are forgotten; then we only ask too early for those. */
const MAX_REMEMBERED = 20_000;

/** Reason of the event on a pod that a budget held for too long. */
export const BUDGET_OVERRIDDEN = 'DisruptionBudgetOverridden';

/** The text of that event. `why`: the thing that could not wait any longer. */
export const overriddenText = (
  held: Pick<Held, 'budget' | 'message'>,
  afterMs: number,
  why: string,
): string =>
  `deleted though it was ${heldText(held)}: that has held it for ${Math.round(afterMs / 1000)} s, and ${why}`;

/** One phrase for people. */
export const heldText = ({ budget, message }: Pick<Held, 'budget' | 'message'>): string =>
  budget === undefined
    ? `cannot be evicted: ${message}`
    : `held by PodDisruptionBudget ${budget} (${message})`;

/**
 * Evicts pods, and tries again with those that a budget holds. It remembers only when to ask next; without that memory it
 * asks at once. It never waits: the caller calls it again.
 */
export class Evictions {
  readonly #options: EvictionsOptions;
  /** By UID. */
  readonly #attempts = new Map<string, Attempt>();

  constructor(options: EvictionsOptions) {
    this.#options = options;
  }

  /** Tries to evict the pods that are due. Returns those that stay for now, each with the reason. */
  async run(pods: readonly Pod[], signal: AbortSignal): Promise<Held[]> {
    const answers = await eachAtOnce(pods, AT_ONCE, async (pod) => this.one(pod, signal));
    return answers.filter((answer) => answer !== undefined);
  }

  /**
   * Undefined: the pod ends, or has ended; with `dryRun`: it could. A failure with one pod is a reason to wait for that pod
   * only, not for others.
   */
  async one(
    pod: Pod,
    signal: AbortSignal,
    { dryRun = false }: { dryRun?: boolean } = {},
  ): Promise<Held | undefined> {
    const { client, clock } = this.#options;
    const { uid } = pod.metadata;
    const before = this.#attempts.get(uid);
    if (before !== undefined && clock.monotonic() < before.nextMs) return before.held;
    try {
      const answer = await evict(client, pod, { dryRun, signal });
      if (answer.kind === 'Held') {
        const { budget, message, retryAfterMs = 0 } = answer;
        return this.#holds({ pod, budget, message }, retryAfterMs);
      }
      if (answer.kind === 'Misconfigured')
        return this.#holds({ pod, message: answer.message }, PATIENCE.capMs);
    } catch (error) {
      if (signal.aborted) throw error;
      return this.#holds({ pod, message: errorMessage(error) }, 0);
    }
    this.#attempts.delete(uid);
    return undefined;
  }

  #holds({ pod, ...why }: Held, atLeastMs: number): Held {
    const { clock, random } = this.#options;
    const { uid } = pod.metadata;
    const { count = 0 } = this.#attempts.get(uid) ?? {};
    const waitMs = PATIENCE.baseMs + fullJitterMs(count, { ...PATIENCE, random });
    // We do not wait for an hour, even if the server says so.
    const nextMs = clock.monotonic() + Math.max(waitMs, Math.min(atLeastMs, PATIENCE.capMs));
    // We do not keep the whole pod, since it may be large.
    const held: Held = { pod: { metadata: pod.metadata }, ...why };
    remember(this.#attempts, uid, { held, count: count + 1, nextMs }, MAX_REMEMBERED);
    return held;
  }
}
