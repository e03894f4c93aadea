import { createHash } from 'node:crypto';

/**
 * A seed for one of many things that come from one: what one of them takes changes nothing for the others, and those of two neighbouring
 * seeds have nothing in common. From 0 to below 2^32.
 */
export const seedOf = (seed: number, name: string, number = 0): number =>
  createHash('sha256')
    .update(JSON.stringify([seed, name, number]))
    .digest()
    .readUInt32BE();

/** Numbers from a seed, always the same ones. */
export interface Chance {
  /** A whole number from 0 to below this. */
  below(limit: number): number;
  between(least: number, most: number): number;
  bytes(length: number): Buffer;
}

/** mulberry32. */
export function chanceOf(seed: number): Chance {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (limit: number): number => next() % limit;
  return {
    below,
    between: (least, most) => least + below(most - least),
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}

/** One of them. */
export function oneOf<T>(chance: Chance, items: readonly [T, ...T[]]): T {
  return items[chance.below(items.length)] as T;
}
