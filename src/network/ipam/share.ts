import { contains, sizeOf } from '../../lib/prefix.ts';
import type { IpFamily, Prefix } from '../../lib/prefix.ts';
import type { RangeTree } from './range-tree.ts';

/** Addresses of a /16, and of a /48. */
const SINGLE: Readonly<Record<IpFamily, bigint>> = { 4: 1n << 16n, 6: 1n << 80n };

/**
 * How much of the pools one peer has: a peer that names ever more prefixes must not take the last address from the
 * others. Out of pools that are no larger than the pods of one cluster its first range is given in any case: they may be
 * made for a single peer.
 */
export class Share {
  readonly #pools: readonly RangeTree[];
  readonly #has = { 4: 0n, 6: 0n };

  constructor(pools: readonly RangeTree[]) {
    this.#pools = pools;
  }

  /** A view of the peer; counts where it is out of a pool. */
  add(as: Prefix): void {
    if (this.#pools.some(({ range }) => contains(range, as))) this.#has[as.family] += sizeOf(as);
  }

  /** Whether it would still have at most three quarters of the pools of that family. */
  allows(prefix: Prefix): boolean {
    const has = this.#has[prefix.family];
    const all = this.#pools
      .filter(({ range }) => range.family === prefix.family)
      .reduce((sum, { range }) => sum + sizeOf(range), 0n);
    if (has === 0n && all <= SINGLE[prefix.family]) return true;
    return (has + sizeOf(prefix)) * 4n <= all * 3n;
  }
}
