import { abortError } from '../../lib/deadline.ts';

/** Lets so many in at once; the others wait their turn. */
export class Gate {
  readonly #places: number;
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(places: number) {
    this.#places = places;
  }

  get empty(): boolean {
    return this.#inside === 0 && this.#waiting.size === 0;
  }

  /** Resolves inside, with the way out; rejects when the signal fires first. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortError(signal);
    if (this.#inside >= this.#places) await this.#turn(signal);
    else this.#inside += 1;
    return () => this.#leave();
  }

  /** The place of one who leaves passes on, so nobody can slip in between. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#inside -= 1;
    else next();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const next = (): void => {
      this.#waiting.delete(next);
      resolve();
    };
    const onAbort = (): void => {
      this.#waiting.delete(next);
      reject(abortError(signal));
    };
    this.#waiting.add(next);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
