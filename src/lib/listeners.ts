/** Those who are called back after a change, in the order in which they came. */
export class Listeners<Args extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...args: Args) => void>();

  /** Calls back after each change; the returned function ends that. Bound, so that it can be handed on as `onChange`. */
  readonly add = (listener: (...args: Args) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  tell(...args: Args): void {
    for (const listener of this.#listeners) listener(...args);
  }
}

/** What was subscribed to, and ends together. */
export class Subscriptions {
  #ends: (() => void)[] = [];

  add(...ends: readonly (() => void)[]): void {
    this.#ends.push(...ends);
  }

  /** Ends each once; others may be added afterwards. */
  end(): void {
    const ends = this.#ends;
    this.#ends = [];
    for (const end of ends) end();
  }
}

/** Ends several subscriptions by one call. */
export const together =
  (...ends: readonly (() => void)[]): (() => void) =>
  () => {
    for (const end of ends) end();
  };
