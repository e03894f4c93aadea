/** A source of numbers in [0, 1), handed in so that tests can own it. */
export type Random = () => number;

export const systemRandom: Random = () => Math.random();

export interface BackoffOptions {
  /** Ceiling of the first delay. */
  baseMs: number;
  /** Ceiling of every delay. */
  capMs: number;
  /** The part of each ceiling that is always waited for. Default 0. */
  floor?: number;
  random?: Random | undefined;
}

/**
 * Full jitter: uniform in [0, min(cap, base * 2^attempt)). Clients that failed together spread out at once,
 * at the price that a single delay may be short; a floor takes that back, and some of the spread.
 */
export function fullJitterMs(
  attempt: number,
  { baseMs, capMs, floor = 0, random = systemRandom }: BackoffOptions,
): number {
  // Beyond 2^30 the power is larger than any cap; it must not become Infinity * 0.
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30));
  return ceiling * (floor + (1 - floor) * random());
}

/** Between half and the whole of `ms`: for intervals that must stay near their length but not in step. */
export function spreadMs(ms: number, random: Random = systemRandom): number {
  return ms / 2 + random() * (ms / 2);
}

/** Counts consecutive failures and says how long to wait after each. */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  get failures(): number {
    return this.#failures;
  }

  next(): number {
    return fullJitterMs(this.#failures++, this.#options);
  }

  reset(): void {
    this.#failures = 0;
  }
}
