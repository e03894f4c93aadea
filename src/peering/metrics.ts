import type { Registry } from 'prom-client';

import { DIRECTIONS, type ForeignCluster, PEERING_PHASES } from '../api/foreign-cluster.ts';
import { readGauge, type Sample } from '../lib/instruments.ts';
import { EACH_PEER, type Metric } from '../lib/metric.ts';

/** What is known of peers; one series of each for each cluster that has proved its identity. */
export const PEERING_METRICS: {
  readonly connected: Metric<'gauge', 'peer'>;
  readonly phase: Metric<'gauge', 'peer' | 'direction' | 'phase'>;
} = {
  connected: {
    name: 'tributary_peering_connected',
    type: 'gauge',
    unit: 'state',
    help: '1 while there is a link to the peer, else 0.',
    labels: { peer: EACH_PEER },
  },
  phase: {
    name: 'tributary_peering_phase',
    type: 'gauge',
    unit: 'state',
    help: 'The phase of each direction of a peering: 1 for the phase that it is in; the others have no series.',
    labels: { peer: EACH_PEER, direction: DIRECTIONS, phase: PEERING_PHASES },
  },
};

/** Asks at each scrape. Where two objects stand for one cluster, the first one counts. */
export function peeringMetrics(registry: Registry, clusters: () => Iterable<ForeignCluster>): void {
  const byID = (): Map<string, ForeignCluster> => {
    const known = new Map<string, ForeignCluster>();
    for (const cluster of clusters()) {
      const id = cluster.status?.clusterID;
      if (id !== undefined && !known.has(id)) known.set(id, cluster);
    }
    return known;
  };
  readGauge(registry, PEERING_METRICS.connected, () =>
    [...byID()].map(([peer, { status }]) => [{ peer }, status?.link?.connected === true ? 1 : 0] as const),
  );
  readGauge(registry, PEERING_METRICS.phase, () => [...byID()].flatMap(phasesOf));
}

const phasesOf = ([peer, { status }]: [string, ForeignCluster]): Sample<'peer' | 'direction' | 'phase'>[] =>
  DIRECTIONS.map((direction) => [{ peer, direction, phase: status?.[direction]?.phase ?? 'None' }, 1]);
