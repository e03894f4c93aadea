import { amountOf, type Amounts, raiseTo, type Sums } from '../../api/amounts.ts';
import type { StockPod } from '../../api/pod-requests.ts';

/** So long something admitted counts though nobody has seen it: creations may still fail after we let them in. */
export const RESERVED_MS = 15_000;

export interface Reservation {
  namespace: string;
  /** Of the pod that was let in last under this name. */
  uid: string;
  amounts: Amounts;
  untilMs: number;
}

/**
 * What was let in and is not seen yet. By name and not by UID: of two pods of one name only one can be there, so a creation
 * that is tried again counts once.
 */
export class Reservations {
  readonly #byKey = new Map<string, Reservation>();

  get(key: string): Reservation | undefined {
    return this.#byKey.get(key);
  }

  all(): Iterable<[string, Reservation]> {
    return this.#byKey;
  }

  /** The larger of what was reserved for that name and this: either may be what is stored in the end. */
  reserve(key: string, reservation: Reservation): void {
    const amounts: Sums = new Map(reservation.amounts);
    raiseTo(amounts, this.#byKey.get(key)?.amounts ?? new Map());
    this.#byKey.set(key, { ...reservation, amounts });
  }

  /** A pod has changed; `current` undefined: it is gone or has finished. */
  seen(key: string, current: StockPod | undefined, previous: StockPod | undefined): void {
    const reservation = this.#byKey.get(key);
    if (reservation?.uid !== (current ?? previous)?.metadata.uid) return;
    if (current === undefined || covers(new Map(current.requests), reservation?.amounts))
      this.#byKey.delete(key);
  }

  /** `isBlind`: changes do not reach us, so that nothing can be told from not having been seen. */
  sweep(nowMs: number, isBlind: boolean): void {
    for (const [key, reservation] of this.#byKey) {
      if (isBlind) reservation.untilMs = nowMs + RESERVED_MS;
      else if (nowMs >= reservation.untilMs) this.#byKey.delete(key);
    }
  }
}

const covers = (held: Amounts, amounts: Amounts = new Map()): boolean =>
  [...amounts].every(([resource, milli]) => amountOf(held, resource) >= milli);
