/** Decisions of the SightingWriter. Pure. */
import { timestamp } from '../api/conditions.ts';
import type { ForeignCluster, Sighting } from '../api/foreign-cluster.ts';
import { isClusterName, isEndpoint } from '../api/forms.ts';
import { MAX_ENDPOINTS, MAX_PROTOCOLS } from '../api/limits.ts';
import { LABEL_DISCOVERED } from '../api/names.ts';
import type { DiscoverySource } from '../api/peer-selector.ts';
import { deepEqual } from '../lib/equality.ts';
import type { Candidate } from './candidates.ts';

/** A sighting without its times. */
type Said = Omit<Sighting, 'firstSeen' | 'expires'>;

/**
 * ForeignClusters that are about a cluster. The first one bears its sightings. The order is the one in which peering takes them
 * (src/peering/clusters/foreign-cluster.ts): rather one that stays, rather a person's, then the oldest.
 */
export function inOrder(clusterID: string, objects: readonly ForeignCluster[]): ForeignCluster[] {
  return objects
    .filter((object) => (object.spec?.clusterID ?? clusterID) === clusterID)
    .toSorted((a, b) => rank(a) - rank(b) || compareText(agedName(a), agedName(b)));
}

/**
 * Whether discovery made the object, as far as can be told. Clusters that have only come in by themselves bear the label, too, but
 * strangers who make identities at will must not take the room of clusters that are announced.
 */
export function isDiscovered({ metadata, status }: ForeignCluster): boolean {
  const sources = Object.keys(status?.sightings ?? {});
  const cameIn = sources.length > 0 && sources.every((source) => source === 'Incoming');
  return metadata.labels?.[LABEL_DISCOVERED] === 'true' && !cameIn;
}

function rank({ metadata, spec }: ForeignCluster): number {
  const isPersons = metadata.labels?.[LABEL_DISCOVERED] !== 'true' || spec?.endpoint !== undefined;
  return (metadata.deletionTimestamp === undefined ? 0 : 2) + (isPersons ? 0 : 1);
}

const agedName = ({ metadata: { creationTimestamp, name } }: ForeignCluster): string =>
  `${creationTimestamp} ${name}`;
const compareText = (a: string, b: string): number => (a < b ? -1 : 1);

/** For the index of an informer: the ClusterID to which an object is bound, or else its name, which may be one. */
export const clusterIDsOf = ({ metadata: { name }, spec }: ForeignCluster): string[] => [
  spec?.clusterID ?? name,
];

/**
 * The sighting to write. Undefined where the known one says the same and still lives for more than half of `validityMs`. So a
 * living source writes seldom, and what a dead one wrote expires by itself.
 */
export function nextSighting(
  candidate: Candidate,
  known: Sighting | undefined,
  { now, validityMs }: { now: number; validityMs: number },
): Sighting | undefined {
  const said = saidOf(candidate);
  const leftMs = Date.parse(known?.expires ?? '') - now;
  const isAlive = leftMs > 0 && leftMs <= validityMs * 2;
  if (known !== undefined && isAlive && leftMs > validityMs / 2) {
    const { firstSeen: _, expires: __, ...before } = known;
    if (deepEqual(before, said)) return undefined;
  }
  const firstSeen = isAlive && known !== undefined ? known.firstSeen : timestamp(now);
  return { ...said, firstSeen, expires: timestamp(now + validityMs) };
}

/** Keeps only what the API server accepts: one odd name must not cost us the sighting. */
function saidOf({ endpoints, clusterName, protocols, searchDomain }: Candidate): Said {
  const isNameTaken = clusterName !== undefined && isClusterName(clusterName);
  return {
    endpoints: endpoints.filter(isEndpoint).slice(0, MAX_ENDPOINTS),
    protocols: protocols.slice(0, MAX_PROTOCOLS),
    ...(isNameTaken && { clusterName }),
    ...(searchDomain !== undefined && { searchDomain }),
  };
}

/** A merge patch of one source's key and nothing else. It removes fields that the new sighting lacks. */
export function sightingPatch(source: DiscoverySource, sighting: Sighting | null): object {
  const gone = { clusterName: null, searchDomain: null };
  return { status: { sightings: { [source]: sighting === null ? null : { ...gone, ...sighting } } } };
}
