import type { PeerView, Tunnel } from '../../api/tunnel.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { Logger } from '../../lib/log.ts';
import { formatPrefix, mergePrefixes, overlaps, parsePrefix, tryPrefix, without } from '../../lib/prefix.ts';
import { type Assignment, Ipam } from '../ipam/ipam.ts';
import { areAsPermitted, type OwnAddresses, UNSAID } from '../ipam/own-addresses.ts';
import type { RefusedPrefix, WantedPrefix } from '../ipam/wanted-prefixes.ts';

export interface AddressBookOptions {
  pools: readonly string[];
  /** Ranges as which no peer may be seen now. */
  reserved: () => readonly string[];
  /** Ranges in which no peer gets a new view, while a view that lies there already stays. */
  avoided: () => readonly string[];
  log: Logger;
}

interface Ranges {
  reserved: readonly string[];
  avoided: readonly string[];
}
type Views = readonly (readonly [owner: string, views: readonly PeerView[]])[];

/**
 * The views of all peers. It is filled from what is stored before anything is assigned, and made anew with the same views when the
 * reserved ranges or those to avoid change.
 */
export class AddressBook {
  readonly #options: AddressBookOptions;
  #ipam: Ipam | undefined;
  #ranges: Ranges = { reserved: [], avoided: [] };
  /** Owners of views in ranges to avoid. A view that one of them gives back is to be avoided from then on. */
  #within: ReadonlySet<string> = new Set();
  #isStale = false;

  constructor(options: AddressBookOptions) {
    this.#options = options;
  }

  /** Must come before anything else: what is assigned earlier could belong to somebody else. */
  restore(stored: Iterable<Tunnel>): void {
    // The oldest comes first: if two are stored with the same addresses, it keeps them.
    const byAge = [...stored].toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
    const views = byAge.map(({ metadata, status }) => [metadata.name, status?.views ?? []] as const);
    const { ipam, refused } = this.#make(views, this.#now());
    this.#ipam = ipam;
    for (const [tunnel, { prefix, message }] of refused) {
      this.#options.log.warn('a stored view cannot stay', { tunnel, prefix, why: message });
    }
  }

  assign(clusterID: string, wanted: readonly WantedPrefix[], may?: OwnAddresses): Assignment {
    const assignment = this.#current().assign(clusterID, wanted, may);
    this.#isStale ||= this.#within.has(clusterID);
    return assignment;
  }

  /** What a peer has been assigned, whether it still says so or not. */
  views(clusterID: string): PeerView[] {
    return this.#current().allocations().get(clusterID) ?? [];
  }

  release(clusterID: string): void {
    this.#ipam?.release(clusterID);
    this.#isStale ||= this.#within.has(clusterID);
  }

  /**
   * The peer's Tunnel is gone, and will be made again. What it has been assigned stays, as nobody may have meant to change it, unless it
   * lies within a range to avoid, or is not what the peer may have by now: then everything is chosen anew.
   */
  renew(clusterID: string, may: OwnAddresses = UNSAID): void {
    const views = this.#current().allocations().get(clusterID) ?? [];
    if (this.#within.has(clusterID) || !areAsPermitted(views, may)) this.release(clusterID);
  }

  #now(): Ranges {
    return { reserved: this.#options.reserved(), avoided: this.#options.avoided() };
  }

  #current(): Ipam {
    if (this.#ipam === undefined)
      throw new Error('addresses asked for before those that are stored were read');
    const now = this.#now();
    if (!this.#isStale && deepEqual(now, this.#ranges)) return this.#ipam;
    this.#ipam = this.#make([...this.#ipam.allocations()], now).ipam;
    return this.#ipam;
  }

  #make(views: Views, ranges: Ranges): { ipam: Ipam; refused: [owner: string, RefusedPrefix][] } {
    const { pools } = this.#options;
    const avoided = mergePrefixes(ranges.avoided.map(parsePrefix));
    const within = views.flatMap(([owner, list]) =>
      list.flatMap(({ as }) => {
        const view = tryPrefix(as);
        return view !== undefined && avoided.some((range) => overlaps(range, view)) ? [{ owner, view }] : [];
      }),
    );
    const rest = without(avoided, mergePrefixes(within.map(({ view }) => view)));
    const reserved = [...ranges.reserved, ...rest.map(formatPrefix)];
    const ipam = new Ipam({ pools, reserved });
    const refused = views.flatMap(([owner, list]) =>
      ipam.restore(owner, list).map((each): [string, RefusedPrefix] => [owner, each]),
    );
    this.#ranges = ranges;
    this.#within = new Set(within.map(({ owner }) => owner));
    this.#isStale = false;
    return { ipam, refused };
  }
}

const age = ({ metadata }: Tunnel): string => `${metadata.creationTimestamp} ${metadata.name}`;
