/** Counts what is open and says no beyond a limit, so that no caller can exhaust the agent's sockets. */
export class StreamGate {
  readonly #limit: number;
  #open = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get open(): number {
    return this.#open;
  }

  /** The returned function gives the place back, once; undefined when all are taken. */
  enter(): (() => void) | undefined {
    if (this.#open >= this.#limit) return undefined;
    this.#open += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#open -= 1;
    };
  }
}
