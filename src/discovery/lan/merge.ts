import type { Candidate } from '../source.ts';
import type { Sighting } from './cache.ts';

const MAX_ENDPOINTS = 8;

/**
 * One candidate from all that is said of a cluster, on all interfaces. Anyone may announce anybody's ID, so the
 * endpoints are taken in turn, the one known the longest first: an impostor adds endpoints, where TLS will refuse it,
 * but cannot crowd out those of the cluster itself.
 */
export function mergeSightings(sightings: readonly Sighting[]): Candidate | undefined {
  const sorted = sightings.toSorted((a, b) => a.firstSeen - b.firstSeen);
  const [first] = sorted;
  if (first === undefined) return undefined;
  const endpoints = new Set<string>();
  for (let turn = 0; turn < MAX_ENDPOINTS; turn++) {
    for (const sighting of sorted) {
      const endpoint = sighting.endpoints[turn];
      if (endpoint !== undefined) endpoints.add(endpoint);
    }
  }
  return {
    clusterID: first.clusterID,
    ...(first.clusterName !== undefined && { clusterName: first.clusterName }),
    endpoints: [...endpoints].slice(0, MAX_ENDPOINTS),
    protocols: first.protocols,
    expiresAt: Math.max(...sorted.map(({ expiresAt }) => expiresAt)),
  };
}

/** Whether a listener needs to hear of it. That it lives longer than it would have is no news. */
export function differs(before: Candidate | undefined, after: Candidate | undefined): boolean {
  const said = (candidate: Candidate | undefined): string =>
    candidate === undefined
      ? ''
      : JSON.stringify([candidate.clusterName, candidate.endpoints, candidate.protocols]);
  return said(before) !== said(after);
}
