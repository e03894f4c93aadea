import { canonicalAddress, canonicalPrefix } from './addresses.ts';
import { type HostConfig, PROTOCOLS, type RouteConfig } from './host-config.ts';
import {
  addRoute,
  deleteRoute,
  describeRoute,
  dumpRoutes,
  type KernelRoute,
  linkIndex,
  type LinkIndex,
  MAIN_TABLE,
  replaceRoute,
  type Route,
} from './routes.ts';
import type { HostContext } from './work.ts';

const isUnreachable = ({ type }: Route): boolean => type === 'unreachable';

/** Comes before anything else. From here on no packet for a peer leaves by another way than its tunnel. */
export async function setFallbacks(host: HostContext, config: HostConfig): Promise<void> {
  const wanted = wantedRoutes(host, config).filter(isUnreachable);
  // A gateway has none, and may have to read thousands of routes below.
  if (wanted.length === 0) return;
  const actual = await dumpRoutes(host.kernel, linkIndex([]));
  const { add } = diffRoutes(PROTOCOLS[config.owner], wanted, actual);
  await addAll(host, config, add, linkIndex([]));
}

interface RouteLinks {
  all: LinkIndex;
  /** Names of links that are not there as wanted. The reason has already been told for each. */
  missing: ReadonlySet<string>;
}

/** Adds and replaces before it removes, so that no destination is without a route in between. */
export async function setRoutes(host: HostContext, config: HostConfig, links: RouteLinks): Promise<void> {
  const { kernel, work } = host;
  const wanted = withLinks(host, wantedRoutes(host, config), links);
  const protocol = PROTOCOLS[config.owner];
  const diff = diffRoutes(protocol, wanted, await dumpRoutes(kernel, links.all));
  for (const { destination, message } of diff.refused) work.refuse(message, destination);
  await addAll(host, config, diff.add.filter(isUnreachable), links.all);
  await addAll(
    host,
    config,
    diff.add.filter((route) => !isUnreachable(route)),
    links.all,
  );
  for (const { from, to } of diff.replace) {
    const write = async (): Promise<void> => replaceRoute(kernel, from, { ...to, protocol }, links.all);
    await work.change(describeRoute(to), write, to.destination);
  }
  await removeRoutes(host, diff.remove, links.all);
}

/** Removes routes that lead somewhere before unreachable ones. */
export async function removeRoutes(
  { kernel, work }: HostContext,
  routes: readonly KernelRoute[],
  links: LinkIndex,
): Promise<void> {
  const last = routes.filter(isUnreachable);
  for (const route of [...routes.filter((route) => !isUnreachable(route)), ...last]) {
    const write = async (): Promise<void> => deleteRoute(kernel, route, links);
    await work.remove(describeRoute(route), write, route.destination);
  }
}

async function addAll(
  { kernel, work }: HostContext,
  { owner }: HostConfig,
  routes: readonly Route[],
  links: LinkIndex,
): Promise<void> {
  const protocol = PROTOCOLS[owner];
  for (const route of routes) {
    const write = async (): Promise<void> => addRoute(kernel, { ...route, protocol }, links);
    await work.change(describeRoute(route), write, route.destination);
  }
}

function wantedRoutes({ work }: HostContext, { routes }: HostConfig): Route[] {
  return routes.flatMap((config) => {
    try {
      return [routeOf(config)];
    } catch (error) {
      work.refuse(`route ${config.destination}: ${(error as Error).message}`, config.destination);
      return [];
    }
  });
}

/** A wanted route in the form in which the kernel tells routes. Throws Invalid. */
export function routeOf(config: RouteConfig): Route {
  const { destination, table = MAIN_TABLE, metric, to, source, mtu } = config;
  const way = typeof to === 'string' ? undefined : to;
  return {
    destination: canonicalPrefix(destination),
    table,
    metric,
    type: typeof to === 'string' ? to : 'unicast',
    ...(way && { link: way.link }),
    ...(way?.gateway !== undefined && { gateway: canonicalAddress(way.gateway) }),
    ...(source !== undefined && { source: canonicalAddress(source) }),
    ...(mtu !== undefined && { mtu }),
  };
}

/** Leaves out routes of links that are not there, and reports one line for each such link. */
function withLinks({ work }: HostContext, routes: readonly Route[], links: RouteLinks): Route[] {
  const waiting = new Map<string, number>();
  const possible = routes.filter(({ link }) => {
    if (link === undefined || (links.all.indexOf(link) !== undefined && !links.missing.has(link)))
      return true;
    waiting.set(link, (waiting.get(link) ?? 0) + 1);
    return false;
  });
  for (const [link, count] of waiting) {
    if (!links.missing.has(link)) work.refuse(`link ${link} is not there: ${count} routes wait for it`);
  }
  return possible;
}

interface RouteDiff {
  add: Route[];
  replace: { from: KernelRoute; to: Route }[];
  remove: KernelRoute[];
  /** The message is one line, for people. */
  refused: { destination: string; message: string }[];
}

/** What a route is known by. The kernel may have more than one route for a key, but we make only one. */
const keyOf = ({ destination, table, metric }: Route): string => `${destination} ${table} ${metric}`;

/**
 * What has to happen to the routes, from what is wanted and what there is. Pure. Our routes are known by their protocol. A route
 * of others that does the same is as good as ours. One that does something else is in the way: we do not take it from its owner.
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
