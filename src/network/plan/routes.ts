import type { OwnNetwork } from '../../api/own-network.ts';
import { formatPrefix, mergePrefixes, tryPrefix, without } from '../../lib/prefix.ts';
import type { RouteConfig } from '../host/host-config.ts';
import { METRICS } from './names.ts';
import { single } from './peer.ts';

/**
 * What is left for views and for the pools they are taken from when no other route is there: an answer at once, and
 * nothing in clear on the way to some router. What is in use here stays out of it even where a pool covers it: services
 * and the underlay may have no route of their own, and an address without one goes by the default route.
 */
export function fallbacks(network: OwnNetwork, views: readonly string[]): RouteConfig[] {
  const own = [
    ...network.pods,
    network.external,
    ...(network.reserved ?? []),
    ...network.nodes.map(({ address }) => single(address)),
  ].flatMap((text) => tryPrefix(text) ?? []);
  const pools = network.pools.flatMap((text) => tryPrefix(text) ?? []);
  const free = without(mergePrefixes(pools), mergePrefixes(own)).map(formatPrefix);
  return [...new Set([...views, ...free])].map((destination) => ({
    destination,
    metric: METRICS.unreachable,
    to: 'unreachable',
  }));
}
