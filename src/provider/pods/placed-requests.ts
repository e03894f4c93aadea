import { addTo, type Amounts, type Sums } from '../../api/amounts.ts';
import { podRequests } from '../../api/pod-requests.ts';
import type { Pod } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';

/** A sum is kept for so many times what it took to make it. */
const KEPT_TIMES = 10;

/**
 * What the placed pods of a Node ask for together. A provider that is full refuses thousands of pods in a row, and the sum over
 * thousands of others for each of them would take all of the event loop. So the sum may be a moment old, the longer the more there
 * are: then it takes a tenth of the time, however many are refused.
 */
export class PlacedRequests {
  readonly #placed: () => Iterable<Pod>;
  readonly #clock: Clock;
  #sums: Sums = new Map();
  #counted = new Set<string>();
  /** Monotonic. */
  #freshUntil = -Infinity;

  constructor(placed: () => Iterable<Pod>, clock: Clock) {
    this.#placed = placed;
    this.#clock = clock;
  }

  /** Without that pod. */
  beside(pod: Pod): Amounts {
    this.#refresh();
    const beside = new Map(this.#sums);
    if (this.#counted.has(pod.metadata.uid)) addTo(beside, podRequests(pod), -1n);
    return beside;
  }

  #refresh(): void {
    const began = this.#clock.monotonic();
    if (began < this.#freshUntil) return;
    this.#sums = new Map();
    this.#counted = new Set();
    for (const pod of this.#placed()) {
      addTo(this.#sums, podRequests(pod));
      this.#counted.add(pod.metadata.uid);
    }
    const now = this.#clock.monotonic();
    this.#freshUntil = now + (now - began) * KEPT_TIMES;
  }
}
