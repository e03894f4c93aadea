import { type PeerView, TUNNEL_REASONS } from '../../api/tunnel.ts';
import { TributaryError } from '../../lib/errors.ts';
import {
  contains,
  formatPrefix,
  type IpFamily,
  mergePrefixes,
  overlaps,
  parsePrefix,
  type Prefix,
  sizeOf,
  tryPrefix,
  without,
} from '../../lib/prefix.ts';
import { type OwnAddresses, OwnShare, type Permission, permissionFor, UNSAID } from './own-addresses.ts';
import { RangeTree, wholeSpaces } from './range-tree.ts';
import { NEVER_SEEN, SPECIAL_RANGES, whySpecial } from './special-ranges.ts';
import { checkWanted, refusal, type RefusedPrefix, type WantedPrefix } from './wanted-prefixes.ts';

interface IpamOptions {
  /** Ranges of either family from which views are taken. */
  pools: readonly string[];
  /** Ranges as which no peer is ever seen; see reservedRanges. */
  reserved: readonly string[];
}

export interface Assignment {
  /** In the order wanted, prefixes in canonical text. */
  views: PeerView[];
  refused: RefusedPrefix[];
}

interface Allotment {
  view: PeerView;
  as: Prefix;
}
/** By the peer's prefix. */
type Allotments = Map<string, Allotment>;

/**
 * Chooses as which prefixes we see the prefixes of our peers: their views. No two views overlap, also of different peers; no view
 * overlaps a reserved range; and a peer that has a view keeps it. Nothing is read or written here: views are stored in
 * Tunnel.status.views and come back by `restore` before the first `assign`. When pools or reserved ranges change, make a new Ipam
 * and restore.
 *
 * What a prefix of a peer becomes:
 * - Refused (PrefixRefused), however it would be seen: no CIDR; wider than /8 (IPv6: /16); with unspecified, loopback,
 *   link-local, multicast, broadcast or class E addresses; overlapping an earlier one of the same peer; one too many.
 * - Itself, if a person has allowed that (own-addresses.ts), and no reserved range, pool or other view overlaps it. A peer that could
 *   choose it alone would draw traffic of ours into its tunnel: to a network that we reach by the default route, say.
 * - Else a range of a pool, of the same length. Our own pods, Services or nodes under the peer's name are such a case,
 *   and a normal one: clusters look alike, and the peer's own spelling never appears here. What is refused is to
 *   *use* a reserved range as a view.
 * - Else refused (PoolExhausted); also where the peer would have more than its share of the pools, see Share.
 *
 * A view of before becomes another one only where a person has said so since: by naming the prefix, or by a list that leaves it out.
 *
 * An operation on one prefix costs at most some steps per bit of an address, whatever is allotted; see RangeTree.
 */
export class Ipam {
  /** All addresses outside the pools. Pools and reserved ranges are taken in it from the start. */
  readonly #spaces = wholeSpaces();
  readonly #pools: readonly RangeTree[];
  readonly #poolNames: readonly Prefix[];
  readonly #owners = new Map<string, Allotments>();

  /** Throws Invalid for what is no CIDR, and for a pool that can never be used. */
  constructor({ pools, reserved }: IpamOptions) {
    const own = mergePrefixes([...reserved.map(parsePrefix), ...SPECIAL_RANGES, ...NEVER_SEEN]);
    const ranges = mergePrefixes(pools.map(poolOf));
    for (const range of mergePrefixes([...own, ...ranges])) this.#spaces[range.family].take(range);
    this.#poolNames = ranges;
    // In pieces, so that a hole in a pool is not the first place where room is looked for.
    this.#pools = without(ranges, NEVER_SEEN).map((range) => poolWithout(range, own));
  }

  /** Tree nodes visited so far, by which tests measure the cost. */
  get steps(): number {
    return [this.#spaces[4], this.#spaces[6], ...this.#pools].reduce((sum, { steps }) => sum + steps, 0);
  }

  /**
   * Takes up the views that an owner had. A view that now overlaps a reserved range, or a view of an owner that was restored earlier
   * (restore in a fixed order), is returned and forgotten: the next `assign` chooses anew.
   */
  restore(owner: string, views: readonly PeerView[]): RefusedPrefix[] {
    const allotments: Allotments = this.#owners.get(owner) ?? new Map();
    const refused: RefusedPrefix[] = [];
    for (const view of views) {
      const why = this.#restoreOne(allotments, view);
      if (why !== undefined) refused.push(refusal(view.prefix, TUNNEL_REASONS.prefixRefused, why));
    }
    if (allotments.size > 0) this.#owners.set(owner, allotments);
    return refused;
  }

  /** Returns why the view cannot be restored; undefined when it is. */
  #restoreOne(allotments: Allotments, view: PeerView): string | undefined {
    const prefix = tryPrefix(view.prefix);
    const as = tryPrefix(view.as);
    if (prefix === undefined || as?.family !== prefix.family || as.length !== prefix.length) {
      return `${view.as} is no view of ${view.prefix}`;
    }
    const text = formatPrefix(prefix);
    const known = allotments.get(text);
    if (known !== undefined)
      return known.view.as === formatPrefix(as) ? undefined : `${text} has a view already`;
    if (!this.#treeOf(as).take(as)) return `its view ${view.as} is reserved or another's by now`;
    allotments.set(text, { as, view: { prefix: text, as: formatPrefix(as), use: view.use } });
    return undefined;
  }

  /**
   * Gives the owner views of exactly these prefixes: those that it has stay as they are, those that it does not want any more become
   * free, and the others are chosen.
   */
  assign(owner: string, wanted: readonly WantedPrefix[], may: OwnAddresses = UNSAID): Assignment {
    const { sound, refused } = checkWanted(wanted);
    const before = this.#owners.get(owner) ?? new Map<string, Allotment>();
    const kept = new Map(
      sound.flatMap(({ prefix, text }): [string, Prefix][] => {
        const as = before.get(text)?.as;
        return as !== undefined && this.#stays(as, prefix, may) ? [[text, as]] : [];
      }),
    );
    for (const [text, { as }] of before) if (!kept.has(text)) this.#treeOf(as).release(as);
    const shares = { pools: new Share(this.#pools), own: new OwnShare() };
    for (const [text, as] of kept) {
      shares.pools.add(as);
      if (text === formatPrefix(as)) shares.own.add(as);
    }
    const after: Allotments = new Map();
    for (const { prefix, text, use } of sound) {
      const as = kept.get(text) ?? this.#choose(prefix, permissionFor(prefix, may), shares);
      if (typeof as === 'string') refused.push(refusal(text, TUNNEL_REASONS.poolExhausted, as));
      else after.set(text, { as, view: { prefix: text, as: formatPrefix(as), use } });
    }
    if (after.size > 0) this.#owners.set(owner, after);
    else this.#owners.delete(owner);
    return { views: viewsOf(after), refused };
  }

  /** A prefix that a person has named becomes its own view as soon as nothing is in its way. */
  #stays(as: Prefix, prefix: Prefix, may: OwnAddresses): boolean {
    const permission = permissionFor(prefix, may);
    if (formatPrefix(as) === formatPrefix(prefix)) return permission !== 'No' || !may.said;
    return permission !== 'Named' || !this.#spaces[prefix.family].isFree(prefix);
  }

  /** Takes a view for the prefix, or says why there is none. */
  #choose(prefix: Prefix, permission: Permission, shares: Shares): Prefix | string {
    const mayBeItself = permission === 'Named' || (permission === 'Any' && shares.own.allows(prefix));
    if (mayBeItself && this.#spaces[prefix.family].take(prefix)) {
      shares.own.add(prefix);
      return prefix;
    }
    const text = formatPrefix(prefix);
    const pools = this.#pools.filter(({ range }) => range.family === prefix.family);
    const names = this.#poolNames.filter(({ family }) => family === prefix.family).map(formatPrefix);
    if (pools.length === 0)
      return `${text} cannot be used as it is, and there is no pool of IPv${prefix.family}`;
    if (!shares.pools.allows(prefix))
      return `${text} would leave too little of the pools (${names.join(', ')}) for other peers`;
    for (const pool of pools) {
      const found = pool.allocate(prefix.length);
      if (found === undefined) continue;
      shares.pools.add(found);
      return found;
    }
    return `no /${prefix.length} is left for ${text} in the pools (${names.join(', ')})`;
  }

  /** Frees all that the owner has. */
  release(owner: string): void {
    for (const { as } of this.#owners.get(owner)?.values() ?? []) this.#treeOf(as).release(as);
    this.#owners.delete(owner);
  }

  /** Copies of all views, by owner. */
  allocations(): Map<string, PeerView[]> {
    return new Map(Array.from(this.#owners, ([owner, allotments]) => [owner, viewsOf(allotments)]));
  }

  #treeOf(as: Prefix): RangeTree {
    return this.#pools.find(({ range }) => contains(range, as)) ?? this.#spaces[as.family];
  }
}

interface Shares {
  pools: Share;
  own: OwnShare;
}

const viewsOf = (allotments: Allotments): PeerView[] =>
  Array.from(allotments.values(), ({ view }) => ({ ...view }));

function poolOf(text: string): Prefix {
  const pool = parsePrefix(text);
  const why = whySpecial(pool);
  if (why !== undefined) throw new TributaryError('Invalid', `no views can be taken from the pool: ${why}`);
  return pool;
}

function poolWithout(range: Prefix, own: readonly Prefix[]): RangeTree {
  const pool = new RangeTree(range);
  for (const each of own) if (overlaps(range, each)) pool.take(contains(each, range) ? range : each);
  return pool;
}

/** How many addresses a /16 has, and a /48. */
const SINGLE: Readonly<Record<IpFamily, bigint>> = { 4: 1n << 16n, 6: 1n << 80n };

/**
 * How much of the pools one peer has. A peer that names more and more prefixes must not take the last address from the others. From
 * pools that are no larger than the pods of one cluster, a peer gets its first range in any case: they may be meant for one peer.
 */
class Share {
  readonly #pools: readonly RangeTree[];
  readonly #has = { 4: 0n, 6: 0n };

  constructor(pools: readonly RangeTree[]) {
    this.#pools = pools;
  }

  /** Counts a view of the peer, where it is taken from a pool. */
  add(as: Prefix): void {
    if (this.#pools.some(({ range }) => contains(range, as))) this.#has[as.family] += sizeOf(as);
  }

  /** Whether the peer would then still have at most three quarters of the pools of that family. */
  allows(prefix: Prefix): boolean {
    const has = this.#has[prefix.family];
    const all = this.#pools
      .filter(({ range }) => range.family === prefix.family)
      .reduce((sum, { range }) => sum + sizeOf(range), 0n);
    if (has === 0n && all <= SINGLE[prefix.family]) return true;
    return (has + sizeOf(prefix)) * 4n <= all * 3n;
  }
}
