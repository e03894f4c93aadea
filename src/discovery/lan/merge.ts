import type { Candidate } from '../source.ts';
import type { Sighting } from './cache.ts';

const MAX_ENDPOINTS = 8;

/**
 * One candidate from all that is said of a cluster, on all interfaces. Anyone may announce anybody's ID, so the
 * endpoints are taken from each sender in turn, the one known the longest first: an impostor adds endpoints, where TLS
 * will refuse it, but cannot crowd out those of the cluster itself.
 */
export function mergeSightings(sightings: readonly Sighting[]): Candidate | undefined {
  const sorted = sightings.toSorted((a, b) => a.firstSeen - b.firstSeen);
  const [first] = sorted;
  if (first === undefined) return undefined;
  const bySource = new Map<string, Set<string>>();
  for (const { source, endpoints } of sorted) {
    const said = bySource.get(source) ?? new Set();
    bySource.set(source, said);
    for (const endpoint of endpoints) if (said.size < MAX_ENDPOINTS) said.add(endpoint);
  }
  const endpoints = new Set<string>();
  for (let turn = 0; turn < MAX_ENDPOINTS; turn++) {
    for (const said of bySource.values()) {
      const endpoint = [...said][turn];
      if (endpoint !== undefined && endpoints.size < MAX_ENDPOINTS) endpoints.add(endpoint);
    }
  }
  return {
    clusterID: first.clusterID,
    ...(first.clusterName !== undefined && { clusterName: first.clusterName }),
    endpoints: [...endpoints],
    protocols: first.protocols,
    expiresAt: sorted.reduce((latest, { expiresAt }) => Math.max(latest, expiresAt), -Infinity),
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
