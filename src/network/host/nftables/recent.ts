/**
 * What was computed of texts that come again each time, as long as they do: rules and elements of a table are asked for with every
 * change, and all but a few are those of the last time. What two rounds did not ask for is forgotten.
 */
export class Recent<Value> {
  #now = new Map<string, Value>();
  #before = new Map<string, Value>();

  /** `make` is called where neither this round nor the last one has asked for the text. What it throws is not kept. */
  of(text: string, make: () => Value): Value {
    const known = this.#now.get(text);
    if (known !== undefined) return known;
    const value = this.#before.get(text) ?? make();
    this.#now.set(text, value);
    return value;
  }

  /** Begins the next round. */
  turn(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }

  /** Of both rounds; for tests. */
  get size(): number {
    return new Set([...this.#now.keys(), ...this.#before.keys()]).size;
  }
}
