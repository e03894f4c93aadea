/** What of our Services one peer is offered, from the caches. Pure. */
import { matchesSelector } from '../../api/label-selector.ts';
import { MAX_POLICY_ENTRIES, SERVICES_LIMITS, TUNNEL_LIMITS } from '../../api/limits.ts';
import { LABEL_MANAGED_BY, LABEL_OFFERED_SERVICE } from '../../api/names.ts';
import type { OfferedServices } from '../../api/sharing-policy.ts';
import type { AddressPort } from '../../api/tunnel.ts';
import type { EndpointSlice, Service } from '../../api/wire.ts';
import { contains, formatAddress, parseAddress, type Prefix, tryPrefix } from '../../lib/prefix.ts';
import type { OfferedPort, OfferedService } from '../protocol/documents.ts';

export interface OfferingFacts {
  entries: readonly OfferedServices[];
  /** CIDRs of our pods that the peer is told of. */
  pods: readonly string[];
  /** Whether nothing of that namespace is offered, whatever a policy says. */
  isClosed: (namespace: string) => boolean;
  services: (namespace: string) => Iterable<Service>;
  slices: (namespace: string, service: string) => readonly EndpointSlice[];
}

export interface Offering {
  /** Sorted, so that what is equal has the same text. */
  services: OfferedService[];
  /** What the gateway lets that peer reach. */
  open: AddressPort[];
  /** What a policy selects and cannot be offered: one line each, with the reason. */
  leftOut: string[];
}

export function offeringOf(facts: OfferingFacts): Offering {
  const pods = facts.pods.flatMap((text) => tryPrefix(text) ?? []);
  const leftOut: string[] = [];
  const offered: OfferedService[] = [];
  let room: number = TUNNEL_LIMITS.offered;
  for (const service of selected(facts, leftOut)) {
    const { namespace = '', name } = service.metadata;
    const found = offerOf(service, facts.slices(namespace, name), pods);
    if (typeof found === 'string') {
      leftOut.push(`${namespace}/${name}: ${found}`);
    } else if (offered.length === SERVICES_LIMITS.services) {
      leftOut.push(`${namespace}/${name}: more than ${SERVICES_LIMITS.services} Services`);
    } else {
      const ways = found.ports.length;
      const most = Math.min(SERVICES_LIMITS.endpoints, Math.floor(room / ways));
      const endpoints = found.endpoints.slice(0, most);
      if (endpoints.length < found.endpoints.length) {
        leftOut.push(`${namespace}/${name}: ${found.endpoints.length - most} endpoints too many`);
      }
      room -= endpoints.length * ways;
      offered.push({ ...found, endpoints });
    }
  }
  return { services: offered, open: sortedPlaces(placesOf(offered)), leftOut };
}

/** The Services that policies select, each once, in the order of their names. */
function selected({ entries, isClosed, services }: OfferingFacts, leftOut: string[]): Service[] {
  const found = new Map<string, Service>();
  for (const { namespace, selector } of entries.slice(0, MAX_POLICY_ENTRIES)) {
    if (isClosed(namespace)) {
      leftOut.push(`${namespace}: the cluster's own namespaces and those of peers are not offered`);
      continue;
    }
    for (const service of services(namespace)) {
      const { labels = {}, name } = service.metadata;
      if (matchesSelector(selector, labels)) found.set(`${namespace}/${name}`, service);
    }
  }
  return [...found].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, service]) => service);
}

/**
 * Why a Service cannot be offered. The endpoints of one without a selector were written by hand and may be anywhere; one
 * that stands for another cluster's Service is not ours to offer.
 */
function obstacleOf({ spec, metadata: { labels = {} } }: Service): string | undefined {
  if (labels[LABEL_MANAGED_BY] !== undefined || labels[LABEL_OFFERED_SERVICE] !== undefined)
    return 'it stands for one of another cluster';
  if (spec?.type === 'ExternalName') return 'it is a name only (ExternalName)';
  if (Object.keys(spec?.selector ?? {}).length === 0) return 'it has no selector';
  const count = spec?.ports?.length ?? 0;
  if (count === 0) return 'it has no ports';
  return count > SERVICES_LIMITS.ports ? `it has more than ${SERVICES_LIMITS.ports} ports` : undefined;
}

/** A peer refuses all Services because of one name that src/peering/protocol/forms.ts does not take. */
const nameObstacleOf = (name: string): string | undefined =>
  /^\d/.test(name)
    ? 'it has a name that begins with a digit, which peers refuse; give it another name'
    : undefined;

function offerOf(
  service: Service,
  slices: readonly EndpointSlice[],
  pods: readonly Prefix[],
): OfferedService | string {
  const { metadata, spec } = service;
  const obstacle = obstacleOf(service) ?? nameObstacleOf(metadata.name);
  if (obstacle !== undefined) return obstacle;
  const live = slices.filter((slice) => slice.metadata.deletionTimestamp === undefined);
  const targets = commonTargets(live);
  const ports = (spec?.ports ?? []).map((port): OfferedPort => {
    const { name, protocol = 'TCP', port: number, appProtocol, targetPort } = port;
    const target = targets.get(name ?? '') ?? (typeof targetPort === 'number' ? targetPort : number);
    return {
      ...(name !== undefined && { name }),
      protocol: protocol as OfferedPort['protocol'],
      port: number,
      targetPort: target,
      ...(appProtocol !== undefined && { appProtocol }),
    };
  });
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    ports,
    endpoints: endpointsOf(live, ports, pods),
  };
}

/**
 * By name of the port, the number on which most endpoints listen: a named port may have different numbers in different
 * pods, but the peer is told one number for all.
 */
function commonTargets(slices: readonly EndpointSlice[]): Map<string, number> {
  const counts = new Map<string, Map<number, number>>();
  for (const { ports, endpoints } of slices) {
    for (const { name, port } of ports ?? []) {
      if (port === undefined) continue;
      const byNumber = counts.get(name ?? '') ?? new Map<number, number>();
      byNumber.set(port, (byNumber.get(port) ?? 0) + (endpoints?.length ?? 0));
      counts.set(name ?? '', byNumber);
    }
  }
  return new Map(
    [...counts].map(([name, byNumber]) => {
      const [first = [0, 0]] = [...byNumber].toSorted(([a, m], [b, n]) => n - m || a - b);
      return [name, first[0]];
    }),
  );
}

/** The endpoints that listen on all ports that the peer is told of: each address once, in order. */
function endpointsOf(
  slices: readonly EndpointSlice[],
  ports: readonly OfferedPort[],
  pods: readonly Prefix[],
): OfferedService['endpoints'] {
  const found = new Map<string, boolean>();
  for (const slice of slices.filter((one) => listensOnAll(one, ports))) {
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      const address = parseAddress(addresses[0] ?? '');
      if (address === undefined || !pods.some((prefix) => contains(prefix, address))) continue;
      const text = formatAddress(address);
      // While a slice is being replaced, a pod may be in two slices.
      found.set(text, (found.get(text) ?? false) || (conditions?.ready ?? true));
    }
  }
  return [...found]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([address, ready]) => ({ address, ready }));
}

const listensOnAll = (slice: EndpointSlice, ports: readonly OfferedPort[]): boolean =>
  ports.every(({ name = '', protocol, targetPort }) =>
    slice.ports?.some(
      (port) =>
        (port.name ?? '') === name && (port.protocol ?? 'TCP') === protocol && port.port === targetPort,
    ),
  );

const placesOf = (services: readonly OfferedService[]): AddressPort[] =>
  services.flatMap(({ ports, endpoints }) =>
    endpoints.flatMap(({ address }) =>
      ports.map(({ protocol, targetPort: port }) => ({ address, protocol, port })),
    ),
  );

/** Each place once, in one order. */
export function sortedPlaces(all: readonly AddressPort[]): AddressPort[] {
  const places = new Map(all.map((place) => [`${place.address} ${place.protocol} ${place.port}`, place]));
  return [...places].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, place]) => place);
}
