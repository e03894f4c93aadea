import { timestamp } from '../../api/conditions.ts';
import type { ForeignCluster, Sighting } from '../../api/foreign-cluster.ts';
import { isClusterName, isEndpoint } from '../../api/forms.ts';
import { MAX_ENDPOINTS } from '../../api/limits.ts';
import { DISCOVERY_SOURCES, type DiscoverySource } from '../../api/peer-selector.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { LinkView } from '../ports.ts';
import { isDiscovered } from './foreign-cluster.ts';

/** The name, or undefined where it is not fit to be stored or shown on a terminal. */
const shownName = (name: string | undefined): string | undefined =>
  name !== undefined && isClusterName(name) ? name : undefined;

/** When it expires, in milliseconds. A time that cannot be read has always been over. */
const expiryOf = ({ expires }: Sighting): number => {
  const at = Date.parse(expires);
  return Number.isNaN(at) ? -Infinity : at;
};

function* sightingsOf(cluster: ForeignCluster): Generator<[DiscoverySource, Sighting]> {
  for (const source of DISCOVERY_SOURCES) {
    const sighting = cluster.status?.sightings?.[source];
    if (sighting !== undefined) yield [source, sighting];
  }
}

/** Those that have not expired at `now`. */
export const currentSightings = (cluster: ForeignCluster, now: number): [DiscoverySource, Sighting][] =>
  [...sightingsOf(cluster)].filter(([, sighting]) => expiryOf(sighting) > now);

/** When the next of them expires; undefined: there is none. */
export function nextExpiryOf(cluster: ForeignCluster, now: number): number | undefined {
  const ends = currentSightings(cluster, now).map(([, sighting]) => expiryOf(sighting));
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** How the cluster is known now, from all objects about it. A link that it has opened counts as Incoming. */
export function foundBy(
  clusters: readonly ForeignCluster[],
  view: LinkView | undefined,
  now: number,
): DiscoverySource[] {
  const found = new Set<DiscoverySource>(
    clusters.flatMap((cluster) => currentSightings(cluster, now).map(([source]) => source)),
  );
  if (clusters.some((cluster) => !isDiscovered(cluster))) found.add('Manual');
  if (view?.dialledBy === 'Them') found.add('Incoming');
  return DISCOVERY_SOURCES.filter((source) => found.has(source));
}

/**
 * Where it may be dialled, the most promising first: what people say, what is seen, and, where `keep` is set because a
 * peering or a link is to be kept, what was seen before or has worked before.
 */
export function endpointsOf(
  clusters: readonly ForeignCluster[],
  { view, now, keep }: { view: LinkView | undefined; now: number; keep: boolean },
): string[] {
  const said = clusters.flatMap(({ spec }) => spec?.endpoint ?? []);
  const seen = clusters.flatMap((cluster) =>
    currentSightings(cluster, now).flatMap(([, sighting]) => sighting.endpoints),
  );
  const before = keep ? [...worked(clusters, view), ...clusters.flatMap(everSeen)] : [];
  return [...new Set([...said, ...seen, ...before])].filter(isEndpoint).slice(0, MAX_ENDPOINTS);
}

/**
 * Those that people have named, and those that were heard on the LAN: discovery has checked these, and only it knows whether a
 * link-local address is one of a neighbour.
 */
export function chosenHere(clusters: readonly ForeignCluster[], now: number): string[] {
  const said = clusters.flatMap(({ spec }) => spec?.endpoint ?? []);
  const near = clusters.flatMap((cluster) =>
    currentSightings(cluster, now).flatMap(([source, { endpoints }]) => (source === 'LAN' ? endpoints : [])),
  );
  return [...new Set([...said, ...near])].filter(isEndpoint);
}

function worked(clusters: readonly ForeignCluster[], view: LinkView | undefined): string[] {
  const links = [view, ...clusters.map(({ status }) => status?.link)];
  const dialled = links.flatMap((link) => (link?.dialledBy === 'Us' ? (link.endpoint ?? []) : []));
  return [...dialled, ...(view?.peerEndpoints ?? [])];
}

const everSeen = (cluster: ForeignCluster): string[] =>
  [...sightingsOf(cluster)].flatMap(([, { endpoints }]) => endpoints);

/**
 * What a link that the peer has opened tells of where it is. A new one is made only when something differs or half of
 * its time is over. Undefined once it has expired.
 */
export function incomingSighting(
  previous: Sighting | undefined,
  { view, now, ttlMs }: { view: LinkView | undefined; now: number; ttlMs: number },
): Sighting | undefined {
  const left = previous === undefined ? 0 : expiryOf(previous) - now;
  if (view?.dialledBy !== 'Them') return left > 0 ? previous : undefined;
  const clusterName = shownName(view.clusterName);
  const fresh: Sighting = {
    endpoints: view.peerEndpoints.filter(isEndpoint).slice(0, MAX_ENDPOINTS),
    ...(clusterName !== undefined && { clusterName }),
    firstSeen: left > 0 && previous !== undefined ? previous.firstSeen : timestamp(now),
    expires: timestamp(now + ttlMs),
  };
  const isSame = deepEqual({ ...previous, expires: fresh.expires }, fresh);
  return isSame && left > ttlMs / 2 ? previous : fresh;
}

/** The name that the cluster gives itself: a name from a link counts more than one from an announcement. */
export function clusterNameOf(
  clusters: readonly ForeignCluster[],
  { view, now }: { view: LinkView | undefined; now: number },
): string | undefined {
  const seen = clusters.flatMap((cluster) =>
    currentSightings(cluster, now).map(([, { clusterName }]) => clusterName),
  );
  const proved = clusters.filter(({ status }) => status?.clusterID !== undefined);
  const [said, known] = [proved, clusters].map((list) => list.map(({ status }) => status?.clusterName));
  const names = [view?.clusterName, ...(said ?? []), ...seen, ...(known ?? [])];
  return names.map(shownName).find((name) => name !== undefined);
}
