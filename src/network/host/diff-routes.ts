/** What has to happen to the routes of a host, from what is wanted and what there is. Pure. */
import { canonicalAddress, canonicalPrefix } from './address.ts';
import { PROTOCOLS, type RouteConfig } from './host-config.ts';

/** RT_TABLE_MAIN. */
export const MAIN_TABLE = 254;

export interface Route {
  /** `address/length`, canonical. */
  destination: string;
  table: number;
  metric: number;
  /** `other`: blackholes, several next hops, encapsulations: never what we make. */
  type: 'unicast' | 'unreachable' | 'other';
  link?: string;
  gateway?: string;
  source?: string;
  mtu?: number;
}

export interface KernelRoute extends Route {
  protocol: number;
}

export interface RouteDiff {
  add: Route[];
  replace: { from: KernelRoute; to: Route }[];
  remove: KernelRoute[];
  /** The message is one line, for people. */
  refused: { destination: string; message: string }[];
}

/** Throws Invalid. */
export function routeOf(config: RouteConfig): Route {
  const { destination, table = MAIN_TABLE, metric, to, source, mtu } = config;
  return {
    destination: canonicalPrefix(destination),
    table,
    metric,
    type: to === 'unreachable' ? 'unreachable' : 'unicast',
    ...(to !== 'unreachable' && { link: to.link }),
    ...(to !== 'unreachable' && to.gateway !== undefined && { gateway: canonicalAddress(to.gateway) }),
    ...(source !== undefined && { source: canonicalAddress(source) }),
    ...(mtu !== undefined && { mtu }),
  };
}

/** The kernel has one route for each, as far as we are concerned. */
const keyOf = ({ destination, table, metric }: Route): string => `${destination} ${table} ${metric}`;

/**
 * Ours are known by their protocol. One of others' that does the same is as good as ours; one that does not is in the
 * way, since to replace it would take it from its owner.
 */
export function diffRoutes(
  protocol: number,
  wanted: readonly Route[],
  actual: readonly KernelRoute[],
): RouteDiff {
  const diff: RouteDiff = { add: [], replace: [], remove: [], refused: [] };
  const there = new Map<string, KernelRoute[]>();
  for (const route of actual) {
    const key = keyOf(route);
    const same = there.get(key);
    if (same === undefined) there.set(key, [route]);
    else same.push(route);
  }
  const kept = new Set<KernelRoute>();
  const wantedByKey = new Map(wanted.map((route) => [keyOf(route), route]));
  for (const [key, route] of wantedByKey) {
    const same = there.get(key) ?? [];
    const ours = same.find((other) => other.protocol === protocol);
    const match = same.find((other) => isSame(route, other));
    if (match !== undefined) kept.add(match);
    else if (ours !== undefined) {
      diff.replace.push({ from: ours, to: route });
      kept.add(ours);
    } else if (same[0] === undefined) diff.add.push(route);
    else {
      const message = `${describeRoute(route)}: there is ${describeRoute(same[0])} of others already`;
      diff.refused.push({ destination: route.destination, message });
    }
  }
  diff.remove.push(...actual.filter((route) => route.protocol === protocol && !kept.has(route)));
  return diff;
}

function isSame(wanted: Route, there: Route): boolean {
  return (
    wanted.type === there.type &&
    wanted.link === there.link &&
    wanted.gateway === there.gateway &&
    wanted.source === there.source &&
    wanted.mtu === there.mtu
  );
}

/** What others have routes to, of the main table, but for default routes. */
export function foreignDestinations(routes: readonly KernelRoute[]): string[] {
  const ours = new Set(Object.values(PROTOCOLS));
  return routes
    .filter(({ table, protocol }) => table === MAIN_TABLE && !ours.has(protocol))
    .map(({ destination }) => destination)
    .filter((destination) => !destination.endsWith('/0'));
}

/** As `ip route` has it. */
export function describeRoute(route: Route): string {
  const { destination, table, metric, type, link, gateway } = route;
  const parts = ['route', type === 'unicast' ? destination : `${type} ${destination}`];
  if (gateway !== undefined) parts.push('via', gateway);
  if (link !== undefined) parts.push('dev', link);
  if (table !== MAIN_TABLE) parts.push('table', String(table));
  return [...parts, 'metric', String(metric)].join(' ');
}
