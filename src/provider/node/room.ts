import { addTo, amountOf, type Amounts, MILLI, type Sums } from '../../api/amounts.ts';
import { podRequests, readableAmounts } from '../../api/pod-requests.ts';
import type { Pod, ResourceList } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { Shortage } from '../pods/shortage.ts';

/** How much of one resource the Node shows, less than was agreed on, since the provider has refused more. */
interface Bound {
  amount: bigint;
  /** By how much it grows next. */
  step: bigint;
  hasGrown: boolean;
  /** Between two steps. */
  intervalMs: number;
  /** Monotonic. */
  growsAt: number;
}

/** A pod that was refused for room. */
export interface Refused {
  pod: Pod;
  shortages: readonly Shortage[];
  /** What those pods of the Node ask for that have their place over there, or wait for one and stay. */
  used: Amounts;
}

const FIRST_INTERVAL_MS = 5_000;
const LONGEST_INTERVAL_MS = 600_000;

/**
 * The room that a refusal takes off the Node, and gives back. What was agreed on may not be there for a while: the provider
 * has cut its share and the new offer is on its way, or the agreement was made by hand and is wrong. Then the Node shows what
 * it has placed and what the provider says is left, so that the scheduler sends pods elsewhere. The rest comes back as room
 * for one pod like the refused one, for two, four and so on. If it was too early, the steps are twice as far apart next time.
 *
 * Forgotten at a restart, which costs one refusal.
 */
export class Room {
  readonly #clock: Clock;
  readonly #bounds = new Map<string, Bound>();
  readonly #listeners = new Listeners();
  /** Calls back when a bound is another one; not when it grows by itself, see `waitMs`. */
  readonly onChange: Listeners['add'] = this.#listeners.add;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the resources that the Node shows less of from now on. */
  refused({ pod, shortages, used }: Refused): string[] {
    const cost = podRequests(pod);
    const fresh: string[] = [];
    for (const { resource: short, left } of shortages) {
      // What home does not count, such as overhead, is bounded by the number of pods.
      const isCounted = amountOf(cost, short) > 0n;
      const resource = isCounted ? short : 'pods';
      const before = this.#bounds.get(resource);
      if (before === undefined) fresh.push(resource);
      const { intervalMs = FIRST_INTERVAL_MS, hasGrown = false } = before ?? {};
      const next = hasGrown ? Math.min(intervalMs * 2, LONGEST_INTERVAL_MS) : intervalMs;
      this.#bounds.set(resource, {
        amount: amountOf(used, resource) + (isCounted ? left : 0n),
        step: resource === 'pods' ? MILLI : amountOf(cost, resource),
        hasGrown: false,
        intervalMs: next,
        growsAt: this.#clock.monotonic() + next,
      });
    }
    this.#listeners.tell();
    return fresh;
  }

  /**
   * A pod that was refused before has found room: there is as much again as is in use, and the rest comes back soon.
   * @param beside what the other ones ask for; only asked if that matters
   */
  admitted(pod: Pod, beside: () => Amounts): void {
    if (this.#bounds.size === 0) return;
    const used: Sums = new Map(beside());
    addTo(used, podRequests(pod));
    for (const [resource, bound] of this.#bounds) {
      const amount = amountOf(used, resource);
      if (amount > bound.amount) bound.amount = amount;
      bound.intervalMs = FIRST_INTERVAL_MS;
      bound.growsAt = this.#clock.monotonic() + FIRST_INTERVAL_MS;
    }
    this.#listeners.tell();
  }

  /** The most that is to be shown now, of the resources of which that is less than was agreed on. */
  bounds(agreed: ResourceList): Amounts {
    const amounts = readableAmounts(agreed);
    const nowMs = this.#clock.monotonic();
    for (const [resource, bound] of this.#bounds) {
      while (bound.growsAt <= nowMs && bound.amount < amountOf(amounts, resource)) grow(bound);
      if (bound.amount >= amountOf(amounts, resource)) this.#bounds.delete(resource);
    }
    return new Map([...this.#bounds].map(([resource, { amount }]) => [resource, amount]));
  }

  /** After how many milliseconds a bound grows. */
  waitMs(): number {
    const next = Math.min(...[...this.#bounds.values()].map(({ growsAt }) => growsAt));
    return Math.max(1, Math.ceil(next - this.#clock.monotonic()));
  }
}

function grow(bound: Bound): void {
  bound.amount += bound.step;
  bound.step *= 2n;
  bound.hasGrown = true;
  bound.growsAt += bound.intervalMs;
}
