import { contains, type IpFamily, type Prefix, sizeOf, WIDTHS } from '../../lib/prefix.ts';

const TAKEN = 'taken';
/** Undefined: all of it is free. Below a branch something is taken. */
type Node = Branch | typeof TAKEN | undefined;

interface Branch {
  readonly zero: Node;
  readonly one: Node;
  /** Bit `l` is set where a free block of length `l`, which is not part of a larger one, is below. */
  readonly free: bigint;
}

/**
 * Which parts of one prefix are taken: a binary tree by the bits of the address, as in a buddy allocator. Every
 * operation walks from the root to one place, so it costs at most as many steps as an address has bits, however much
 * is taken. Nodes are immutable: an operation that does not succeed leaves no trace.
 */
export class RangeTree {
  readonly range: Prefix;
  #root: Node;
  #steps = 0;

  constructor(range: Prefix) {
    this.range = range;
  }

  /** Nodes visited so far, by which tests measure the cost. */
  get steps(): number {
    return this.#steps;
  }

  /** Whether the prefix lies in the range and nothing of it is taken. */
  isFree(prefix: Prefix): boolean {
    return contains(this.range, prefix) && this.#reach(prefix).node === undefined;
  }

  /** Takes the prefix. Returns false, and changes nothing, where it is not free. */
  take(prefix: Prefix): boolean {
    if (!this.isFree(prefix)) return false;
    this.#root = this.#replaced(this.#root, prefix, this.range.length, TAKEN);
    return true;
  }

  /** Gives back exactly what was taken. Returns false, and changes nothing, for anything else. */
  release(prefix: Prefix): boolean {
    if (!contains(this.range, prefix)) return false;
    const { node, depth } = this.#reach(prefix);
    if (node !== TAKEN || depth !== prefix.length) return false;
    this.#root = this.#replaced(this.#root, prefix, this.range.length, undefined);
    return true;
  }

  /** Takes a block of that length out of the smallest free one it fits in, the lowest of these. */
  allocate(length: number): Prefix | undefined {
    const free = freeIn(this.#root, this.range.length);
    let block = length;
    while (block >= this.range.length && !has(free, block)) block -= 1;
    if (block < this.range.length) return undefined;
    const prefix = { family: this.range.family, base: this.#lowest(block), length };
    this.take(prefix);
    return prefix;
  }

  /** Base of the lowest free block of exactly that length. There must be one. */
  #lowest(length: number): bigint {
    let { base } = this.range;
    let node = this.#root;
    for (let depth = this.range.length + 1; typeof node === 'object'; depth += 1) {
      this.#steps += 1;
      if (has(freeIn(node.zero, depth), length)) {
        node = node.zero;
        continue;
      }
      base += sizeOf({ family: this.range.family, base, length: depth });
      node = node.one;
    }
    return base;
  }

  /** What is at the place of the prefix, or the leaf above that place, and how many bits lead there. */
  #reach(prefix: Prefix): { node: Node; depth: number } {
    let node = this.#root;
    let depth = this.range.length;
    for (; typeof node === 'object' && depth < prefix.length; depth += 1) {
      this.#steps += 1;
      node = bitOf(prefix, depth) ? node.one : node.zero;
    }
    return { node, depth };
  }

  /** The tree with another leaf at the place of the prefix; `node` stands after `depth` bits. */
  #replaced(node: Node, prefix: Prefix, depth: number, leaf: typeof TAKEN | undefined): Node {
    this.#steps += 1;
    if (depth === prefix.length) return leaf;
    let { zero, one } = typeof node === 'object' ? node : { zero: undefined, one: undefined };
    if (bitOf(prefix, depth)) one = this.#replaced(one, prefix, depth + 1, leaf);
    else zero = this.#replaced(zero, prefix, depth + 1, leaf);
    if (zero === undefined && one === undefined) return undefined;
    return { zero, one, free: freeIn(zero, depth + 1) | freeIn(one, depth + 1) };
  }
}

function freeIn(node: Node, length: number): bigint {
  if (node === TAKEN) return 0n;
  return node === undefined ? 1n << BigInt(length) : node.free;
}

const has = (free: bigint, length: number): boolean => ((free >> BigInt(length)) & 1n) === 1n;

const bitOf = ({ family, base }: Prefix, depth: number): boolean =>
  ((base >> BigInt(WIDTHS[family] - 1 - depth)) & 1n) === 1n;

/** All addresses of each family. */
export const wholeSpaces = (): Record<IpFamily, RangeTree> => ({
  4: new RangeTree({ family: 4, base: 0n, length: 0 }),
  6: new RangeTree({ family: 6, base: 0n, length: 0 }),
});
