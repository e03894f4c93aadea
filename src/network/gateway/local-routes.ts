import type { OwnNetwork } from '../../api/own-network.ts';
import type { PeerView, Tunnel } from '../../api/tunnel.ts';
import type { EventRecorder } from '../../kube/events.ts';
import {
  compare,
  contains,
  formatPrefix,
  type IpFamily,
  mergePrefixes,
  overlaps,
  prefixesOf,
  tryPrefix,
} from '../../lib/prefix.ts';
import type { HostNetwork } from '../host/host-config.ts';
import { whySpecial } from '../ipam/special-ranges.ts';

/** How many routes are told, in an object that every role `cluster` reads. */
const MOST_ROUTES = 256;
/** A wider prefix is part of a default route (0.0.0.0/1 and 128.0.0.0/1, 2000::/3), which says nothing about a network. */
const WIDEST: Readonly<Record<IpFamily, number>> = { 4: 8, 6: 7 };

/**
 * The networks beside our own to which a host has routes, in the fewest prefixes, in order. Of too many, the widest are taken: the
 * others are more often single hosts than networks.
 */
export function localRoutes(
  destinations: readonly string[],
  network: Pick<OwnNetwork, 'pods' | 'external'> | undefined,
): string[] {
  const own = prefixesOf(network === undefined ? [] : [...network.pods, network.external]);
  const foreign = prefixesOf(destinations).filter(
    (prefix) =>
      prefix.length >= WIDEST[prefix.family] &&
      whySpecial(prefix) === undefined &&
      !own.some((range) => contains(range, prefix)),
  );
  return mergePrefixes(foreign)
    .toSorted((one, other) => one.length - other.length)
    .slice(0, MOST_ROUTES)
    .toSorted(compare)
    .map(formatPrefix);
}

/** Views that overlap a route of the host, each with that route. */
export function collisions(
  views: readonly PeerView[],
  routes: readonly string[],
): { view: string; route: string }[] {
  const parsed = prefixesOf(routes);
  return views.flatMap(({ as }) => {
    const view = tryPrefix(as);
    const route = view && parsed.find((each) => overlaps(each, view));
    return route === undefined ? [] : [{ view: as, route: formatPrefix(route) }];
  });
}

/** Routes change with a CNI's pods. Networks do not, so the routes are read rarely. */
export const ROUTES_MS = 30_000;

export interface LocalRoutesOptions {
  host: Pick<HostNetwork, 'localRoutes'>;
  events: EventRecorder;
}

/** The routes of the host, and a warning for each view that overlaps one. */
export class LocalRoutes {
  readonly #options: LocalRoutesOptions;
  #destinations: readonly string[] | undefined;
  /** Overlaps for which an event was made. */
  #told = new Set<string>();

  constructor(options: LocalRoutesOptions) {
    this.#options = options;
  }

  /** Undefined while they are not known yet. */
  get destinations(): readonly string[] | undefined {
    return this.#destinations;
  }

  async read(): Promise<void> {
    this.#destinations = await this.#options.host.localRoutes();
  }

  /** A view that was given before there was such a route stays. People are told once of each. */
  warn(tunnels: readonly Tunnel[], routes: readonly string[]): void {
    const told = new Set<string>();
    for (const tunnel of tunnels) {
      for (const { view, route } of collisions(tunnel.status?.views ?? [], routes)) {
        const key = `${tunnel.metadata.uid} ${view} ${route}`;
        told.add(key);
        if (this.#told.has(key)) continue;
        const message = `${view}, as which the peer is seen, is where the route ${route} of the gateway's host leads: one hides the other. Delete this Tunnel: it is made again, with another range`;
        this.#options.events.event(tunnel, 'Warning', 'ViewOverlapsRoute', message);
      }
    }
    this.#told = told;
  }
}
