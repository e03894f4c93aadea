import { TributaryError } from '../lib/errors.ts';

/** Numbers from `first` to `last`, of which each name has one for itself: the lowest that no other has. */
export class LowestFree {
  readonly #first: number;
  readonly #last: number;
  readonly #taken = new Map<string, number>();

  constructor(first: number, last: number) {
    this.#first = first;
    this.#last = last;
  }

  /** The same again for who has one. Throws Invalid where none is left. */
  take(name: string): number {
    const known = this.#taken.get(name);
    if (known !== undefined) return known;
    const taken = new Set(this.#taken.values());
    let number = this.#first;
    while (taken.has(number)) number++;
    if (number > this.#last) {
      throw new TributaryError('Invalid', `there is no port left from ${this.#first} on for ${name}`);
    }
    this.#taken.set(name, number);
    return number;
  }

  give(name: string): void {
    this.#taken.delete(name);
  }
}
