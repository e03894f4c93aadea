import { Listeners } from './listeners.ts';

/** A value that changes now and then, such as a certificate that is renewed. */
export interface Source<Value> {
  current(): Value;
  /** Calls back after each change; the returned function ends that. */
  subscribe(listener: () => void): () => void;
}

/** A source that is told its value. */
export class Variable<Value> implements Source<Value> {
  #value: Value;
  readonly #changed = new Listeners();
  readonly subscribe: Listeners['add'] = this.#changed.add;

  constructor(initial: Value) {
    this.#value = initial;
  }

  current(): Value {
    return this.#value;
  }

  set(value: Value): void {
    this.#value = value;
    this.#changed.tell();
  }
}

/** A certificate chain and its key, both PEM. */
export interface KeyPair {
  certificate: string;
  key: string;
}
