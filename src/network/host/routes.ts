import {
  addressBytes,
  addressText,
  familyOf,
  KERNEL_FAMILY,
  parsePrefix,
  prefixText,
  unspecified,
} from './addresses.ts';
import { PROTOCOLS } from './host-config.ts';
import type { KernelLink } from './links.ts';
import {
  type Attribute,
  decodeAttributes,
  DELETE_ROUTE,
  encodeAttributes,
  GET_ROUTE,
  NEW_ROUTE,
  optionalU32,
  readU32,
  ROUTE_BYTES,
  routeHeader,
  u32,
} from './messages.ts';
import { CREATE, EXCLUSIVE, REPLACE, type Rtnetlink } from './rtnetlink.ts';

/** RT_TABLE_MAIN. */
export const MAIN_TABLE = 254;

export interface Route {
  /** `address/length`, canonical. */
  destination: string;
  table: number;
  metric: number;
  /** `other`: blackholes, several next hops, encapsulations. We never make such a route. */
  type: 'unicast' | 'unreachable' | 'throw' | 'other';
  link?: string;
  gateway?: string;
  source?: string;
  mtu?: number;
}

export interface KernelRoute extends Route {
  protocol: number;
}

/** Finds names of links by their index, and indexes by name. */
export interface LinkIndex {
  nameOf(index: number): string | undefined;
  indexOf(name: string): number | undefined;
}

export function linkIndex(links: readonly KernelLink[]): LinkIndex {
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const indexes = new Map(links.map(({ index, name }) => [name, index]));
  return { nameOf: (index) => names.get(index), indexOf: (name) => indexes.get(name) };
}

/** The route as `ip route` writes it. */
export function describeRoute(route: Route): string {
  const { destination, table, metric, type, link, gateway } = route;
  const parts = ['route', type === 'unicast' ? destination : `${type} ${destination}`];
  if (gateway !== undefined) parts.push('via', gateway);
  if (link !== undefined) parts.push('dev', link);
  if (table !== MAIN_TABLE) parts.push('table', String(table));
  return [...parts, 'metric', String(metric)].join(' ');
}

/** Destinations in the main table of routes that others have made, without default routes. */
export function foreignDestinations(routes: readonly KernelRoute[]): string[] {
  const ours = new Set(Object.values(PROTOCOLS));
  return routes
    .filter(({ table, protocol }) => table === MAIN_TABLE && !ours.has(protocol))
    .map(({ destination }) => destination)
    .filter((destination) => !destination.endsWith('/0'));
}

/** RTA_* of linux/rtnetlink.h. */
const RTA = {
  destination: 1,
  link: 4,
  gateway: 5,
  metric: 6,
  source: 7,
  metrics: 8,
  multipath: 9,
  table: 15,
  via: 18,
  encapsulation: 22,
  nexthop: 30,
} as const;
const RTAX_MTU = 2;
const TYPES: Readonly<Record<number, Route['type']>> = { 1: 'unicast', 7: 'unreachable', 9: 'throw' };
/** We make none of `other`, and 0 matches any type in a deletion. */
const TYPE_NUMBERS = { unicast: 1, unreachable: 7, throw: 9, other: 0 } as const;
const LEADS_NOWHERE: ReadonlySet<Route['type']> = new Set(['unreachable', 'throw']);
const SCOPE_UNIVERSE = 0;
const SCOPE_LINK = 253;
/** The gateway need not lie in a prefix of the link. */
const RTNH_F_ONLINK = 4;
/** An IPv6 route that the kernel has learnt. */
const RTM_F_CLONED = 0x200;

/** Routes of every table and of both families. */
export async function dumpRoutes(kernel: Rtnetlink, links: LinkIndex): Promise<KernelRoute[]> {
  const messages = await kernel.dump(GET_ROUTE, routeHeader({ family: 0, destinationLength: 0 }));
  return messages.flatMap((message) => parseRoute(message, links) ?? []);
}

export function parseRoute(message: Buffer, links: LinkIndex): KernelRoute | undefined {
  const [kernelFamily = 0, length = 0, , , shortTable = 0, protocol = 0, , typeNumber = 0] = message;
  const family = familyOf(kernelFamily);
  if (family === undefined || readU32(message, 8) & RTM_F_CLONED) return undefined;
  const attributes = decodeAttributes(message.subarray(ROUTE_BYTES));
  const type = isPlain(attributes) ? (TYPES[typeNumber] ?? 'other') : 'other';
  return {
    destination: prefixText(attributes.get(RTA.destination) ?? unspecified(family), length),
    table: optionalU32(attributes.get(RTA.table)) ?? shortTable,
    metric: optionalU32(attributes.get(RTA.metric)) ?? 0,
    protocol,
    type,
    // IPv6 names the loopback link in routes that lead nowhere.
    ...(!LEADS_NOWHERE.has(type) && linkOf(attributes, links)),
    ...detailsOf(attributes),
  };
}

function linkOf(attributes: Map<number, Buffer>, links: LinkIndex): Pick<Route, 'link'> {
  const index = optionalU32(attributes.get(RTA.link));
  const link = index === undefined ? undefined : links.nameOf(index);
  return link === undefined ? {} : { link };
}

function detailsOf(attributes: Map<number, Buffer>): Pick<Route, 'gateway' | 'source' | 'mtu'> {
  const [gateway, source] = [attributes.get(RTA.gateway), attributes.get(RTA.source)];
  const mtu = mtuOf(attributes);
  return {
    ...(gateway && { gateway: addressText(gateway) }),
    ...(source && { source: addressText(source) }),
    ...(mtu !== undefined && { mtu }),
  };
}

const isPlain = (attributes: Map<number, Buffer>): boolean =>
  ![RTA.multipath, RTA.via, RTA.encapsulation, RTA.nexthop].some((type) => attributes.has(type));

function mtuOf(attributes: Map<number, Buffer>): number | undefined {
  const metrics = attributes.get(RTA.metrics);
  return metrics && optionalU32(decodeAttributes(metrics).get(RTAX_MTU));
}

/** Throws EEXIST where somebody has such a route, rather than taking it from them. */
export async function addRoute(kernel: Rtnetlink, route: KernelRoute, links: LinkIndex): Promise<void> {
  await kernel.write(NEW_ROUTE, CREATE | EXCLUSIVE, routeMessage(route, links));
}

/** Leaves no gap where the kernel can replace a route in one step. */
export async function replaceRoute(
  kernel: Rtnetlink,
  from: KernelRoute,
  to: KernelRoute,
  links: LinkIndex,
): Promise<void> {
  const isIPv6 = parsePrefix(to.destination).family === 6;
  // For IPv6 the kernel replaces a route only where both have a gateway or neither has. Otherwise it adds a second one.
  const isReplaceable = !isIPv6 || (from.gateway === undefined) === (to.gateway === undefined);
  if (isReplaceable && from.type !== 'other') {
    await kernel.write(NEW_ROUTE, CREATE | REPLACE, routeMessage(to, links));
  } else {
    await deleteRoute(kernel, from);
    await addRoute(kernel, to, links);
  }
}

/** Names the protocol, too, so that the kernel never removes a route of somebody else. */
export async function deleteRoute(kernel: Rtnetlink, route: KernelRoute, links?: LinkIndex): Promise<void> {
  await kernel.write(DELETE_ROUTE, 0, deletionMessage(route, links));
}

function head(route: KernelRoute): { header: Parameters<typeof routeHeader>[0]; attributes: Attribute[] } {
  const { family, bytes, length } = parsePrefix(route.destination);
  const { protocol } = route;
  return {
    header: { family: KERNEL_FAMILY[family], destinationLength: length, protocol },
    attributes: [
      [RTA.destination, bytes],
      [RTA.table, u32(route.table)],
      [RTA.metric, u32(route.metric)],
    ],
  };
}

function routeMessage(route: KernelRoute, links: LinkIndex): Buffer {
  const { header, attributes } = head(route);
  const index = route.link === undefined ? undefined : links.indexOf(route.link);
  const isIPv4Link = header.family === KERNEL_FAMILY[4] && route.type === 'unicast';
  if (index !== undefined) attributes.push([RTA.link, u32(index)]);
  if (route.gateway !== undefined) attributes.push([RTA.gateway, addressBytes(route.gateway)]);
  if (route.source !== undefined) attributes.push([RTA.source, addressBytes(route.source)]);
  if (route.mtu !== undefined) attributes.push([RTA.metrics, [[RTAX_MTU, u32(route.mtu)]]]);
  const whole = routeHeader({
    ...header,
    type: TYPE_NUMBERS[route.type],
    scope: isIPv4Link && route.gateway === undefined ? SCOPE_LINK : SCOPE_UNIVERSE,
    flags: route.gateway === undefined ? 0 : RTNH_F_ONLINK,
  });
  return Buffer.concat([whole, encodeAttributes(attributes)]);
}

/** RT_SCOPE_NOWHERE, which matches any scope in a deletion. */
const SCOPE_ANY = 255;

function deletionMessage(route: KernelRoute, links: LinkIndex | undefined): Buffer {
  const { header, attributes } = head(route);
  const index = route.link === undefined ? undefined : links?.indexOf(route.link);
  if (index !== undefined) attributes.push([RTA.link, u32(index)]);
  if (route.gateway !== undefined) attributes.push([RTA.gateway, addressBytes(route.gateway)]);
  const type = TYPE_NUMBERS[route.type];
  return Buffer.concat([routeHeader({ ...header, scope: SCOPE_ANY, type }), encodeAttributes(attributes)]);
}

/** RTM_GETROUTE: where the kernel sends packets to that address now. Throws KernelError. */
export async function lookUpRoute(
  kernel: Rtnetlink,
  address: Buffer,
): Promise<{ mtu?: number; index?: number }> {
  const family = KERNEL_FAMILY[address.length === 4 ? 4 : 6];
  const header = routeHeader({ family, destinationLength: address.length * 8 });
  const question = Buffer.concat([header, encodeAttributes([[RTA.destination, address]])]);
  const answer = await kernel.get(GET_ROUTE, question);
  const attributes = decodeAttributes(answer?.subarray(ROUTE_BYTES) ?? Buffer.alloc(0));
  const [mtu, index] = [mtuOf(attributes), optionalU32(attributes.get(RTA.link))];
  return { ...(mtu !== undefined && { mtu }), ...(index !== undefined && { index }) };
}
