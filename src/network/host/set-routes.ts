/** The routes and rules of a HostConfig. */
import { describeRoute, diffRoutes, type KernelRoute, type Route, routeOf } from './diff-routes.ts';
import type { KernelLink } from './diff-links.ts';
import { type HostConfig, PROTOCOLS } from './host-config.ts';
import { addRoute, deleteRoute, dumpRoutes, type LinkIndex, replaceRoute } from './routes.ts';
import { addRule, deleteRule, describeRule, diffRules, dumpRules } from './rules.ts';
import type { Host } from './set-links.ts';

export function linkIndex(links: readonly KernelLink[]): LinkIndex {
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const indexes = new Map(links.map(({ index, name }) => [name, index]));
  return { nameOf: (index) => names.get(index), indexOf: (name) => indexes.get(name) };
}

const isUnreachable = ({ type }: Route): boolean => type === 'unreachable';

/** Before anything else: from here on nothing for the other side leaves by another way. */
export async function setFallbacks(host: Host, config: HostConfig): Promise<void> {
  const wanted = wantedRoutes(host, config).filter(isUnreachable);
  const actual = await dumpRoutes(host.kernel, linkIndex([]));
  const { add } = diffRoutes(PROTOCOLS[config.owner], wanted, actual);
  await addAll(host, config, add, linkIndex([]));
}

export interface RouteLinks {
  all: LinkIndex;
  /** Names of links that are not there (as wanted): what has been said of each already. */
  missing: ReadonlySet<string>;
}

/** What is added and replaced first, then what is removed: nothing is without a route in between. */
export async function setRoutes(host: Host, config: HostConfig, links: RouteLinks): Promise<void> {
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

/** Those that lead somewhere first. */
export async function removeRoutes(
  { kernel, work }: Host,
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
  { kernel, work }: Host,
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

function wantedRoutes({ work }: Host, { routes }: HostConfig): Route[] {
  return routes.flatMap((config) => {
    try {
      return [routeOf(config)];
    } catch (error) {
      work.refuse(`route ${config.destination}: ${(error as Error).message}`, config.destination);
      return [];
    }
  });
}

/** Routes of links that are not there wait, in one line for each link. */
function withLinks({ work }: Host, routes: readonly Route[], links: RouteLinks): Route[] {
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

export async function setRules({ kernel, work }: Host, { owner, rules }: HostConfig): Promise<void> {
  const { add, remove } = diffRules(PROTOCOLS[owner], rules, await dumpRules(kernel));
  for (const rule of add) {
    await work.change(describeRule(rule), async () => addRule(kernel, rule));
  }
  for (const rule of remove) {
    await work.remove(describeRule(rule), async () => deleteRule(kernel, rule));
  }
}
