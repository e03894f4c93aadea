/** A value that changes now and then, such as a certificate that is renewed. */
export interface Source<Value> {
  current(): Value;
  /** Calls back after each change; the returned function ends that. */
  subscribe(listener: () => void): () => void;
}

/** A source that is told its value. */
export class Variable<Value> implements Source<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(initial: Value) {
    this.#value = initial;
  }

  current(): Value {
    return this.#value;
  }

  set(value: Value): void {
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** A certificate chain and its key, both PEM. */
export interface KeyPair {
  certificate: string;
  key: string;
}
