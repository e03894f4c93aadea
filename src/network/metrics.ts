import type { Gauge, Registry } from 'prom-client';

import { WIREGUARDS } from '../api/tunnel.ts';
import { gaugeOf, readCounter, readGauge, type Sample } from '../lib/instruments.ts';
import { EACH_PEER, type Metric } from '../lib/metric.ts';
import type { ExchangeMetrics } from './exchange/tunnels.ts';
import type { TunnelMetrics, TunnelSample } from './gateway/reports.ts';
import type { Owner } from './host/host-config.ts';
import { REFUSED, refusedName } from './plan/names.ts';
import type { Counters } from './table-counters.ts';

const labels = { peer: EACH_PEER } as const;

/** One series a peer and metric; what is not known of a tunnel has none. */
export const TUNNEL_METRICS: Readonly<
  Record<keyof TunnelSample, Metric<'counter', 'peer'> | Metric<'gauge', 'peer'>>
> & { readonly refusedPackets: Metric<'counter', 'peer'> } = {
  up: {
    name: 'tributary_tunnel_up',
    type: 'gauge',
    unit: 'state',
    help: '1 where probes come back through the tunnel, else 0.',
    labels,
  },
  receivedBytes: {
    name: 'tributary_tunnel_received_bytes_total',
    type: 'counter',
    unit: 'bytes',
    help: 'Bytes received through the tunnel; counts anew when WireGuard starts again.',
    labels,
  },
  sentBytes: {
    name: 'tributary_tunnel_sent_bytes_total',
    type: 'counter',
    unit: 'bytes',
    help: 'Bytes sent through the tunnel; counts anew when WireGuard starts again.',
    labels,
  },
  handshake: {
    name: 'tributary_tunnel_last_handshake_timestamp_seconds',
    type: 'gauge',
    unit: 'timestamp',
    help: 'Last handshake of WireGuard with the peer.',
    labels,
  },
  rttSeconds: {
    name: 'tributary_tunnel_rtt_seconds',
    type: 'gauge',
    unit: 'seconds',
    help: 'Median round-trip time of the last probes.',
    labels,
  },
  loss: {
    name: 'tributary_tunnel_loss_ratio',
    type: 'gauge',
    unit: 'ratio',
    help: 'Share of the last probes that were lost, from 0 to 1.',
    labels,
  },
  mtu: {
    name: 'tributary_tunnel_mtu_bytes',
    type: 'gauge',
    unit: 'bytes',
    help: 'Largest packet that goes through the tunnel.',
    labels,
  },
  refusedPackets: {
    name: 'tributary_tunnel_refused_packets_total',
    type: 'counter',
    unit: 'count',
    help: 'Packets of the peer that were dropped; counts anew when the host’s rules for the peer change.',
    labels,
  },
};

const reasonOf = (counter: string): string => counter.replace('refused_', '');

export const REFUSED_PACKETS: Metric<'counter', 'reason'> = {
  name: 'tributary_network_refused_packets_total',
  type: 'counter',
  unit: 'count',
  help: 'Packets that were dropped and belong to no one peer; counts anew when the rules of the host change.',
  labels: { reason: Object.values(REFUSED).flat().map(reasonOf) },
};

/** Not by node, of which there may be thousands: the ConfigMap tributary-gateway has their names. */
export const SILENT_NODES: Metric<'gauge'> = {
  name: 'tributary_network_silent_nodes',
  type: 'gauge',
  unit: 'count',
  help: 'Nodes of this cluster from which no answer comes through VXLAN; pods there reach no peer.',
  labels: {},
};

/** 1 for whose it is; none of the two while there is no link. */
export const WIREGUARD: Metric<'gauge', 'by'> = {
  name: 'tributary_network_wireguard',
  type: 'gauge',
  unit: 'state',
  help: 'Whose WireGuard the tunnels of this gateway use: 1 for the kernel’s or for wireguard-go’s.',
  labels: { by: WIREGUARDS.map((by) => by.toLowerCase()) },
};

export const EXCHANGE_METRICS: Readonly<Record<'seen' | 'refused', Metric<'gauge', 'peer'>>> = {
  seen: {
    name: 'tributary_network_prefixes',
    type: 'gauge',
    unit: 'count',
    help: 'Prefixes of a peer that are seen here.',
    labels,
  },
  refused: {
    name: 'tributary_network_refused_prefixes',
    type: 'gauge',
    unit: 'count',
    help: 'Prefixes of a peer that are not seen here, because they were refused.',
    labels,
  },
};

export function tunnelMetrics(registry: Registry): TunnelMetrics {
  let by: string | undefined;
  let known: ReadonlyMap<string, TunnelSample> = new Map();
  const { refusedPackets: _refused, ...metrics } = TUNNEL_METRICS;
  for (const key of Object.keys(metrics) as (keyof TunnelSample)[]) {
    const metric = metrics[key];
    const read = (): Sample<'peer'>[] =>
      [...known].flatMap(([peer, { [key]: value }]): Sample<'peer'>[] =>
        value === undefined ? [] : [[{ peer }, Number(value)]],
      );
    if (metric.type === 'counter') readCounter(registry, metric, read);
    else readGauge(registry, metric, read);
  }
  readGauge(registry, WIREGUARD, () => (by === undefined ? [] : [[{ by: by.toLowerCase() }, 1]]));
  return {
    show(samples, wireguard) {
      known = samples;
      by = wireguard;
    },
  };
}

type ReadCounters = () => Promise<Counters>;

/** Packets of single peers that the gateway's table has counted; asked for at each scrape. */
export function tunnelRefusedMetric(
  registry: Registry,
  { peers, read }: { peers: () => Iterable<string>; read: ReadCounters },
): void {
  readCounter(registry, TUNNEL_METRICS.refusedPackets, async () => {
    const counters = await read();
    return [...peers()].flatMap((peer): Sample<'peer'>[] => {
      const counter = counters.get(refusedName(peer));
      return counter === undefined ? [] : [[{ peer }, counter.packets]];
    });
  });
}

/** By the registry where they are shown. */
const tables = new WeakMap<Registry, Map<Owner, ReadCounters>>();

/**
 * What was dropped without being any one peer's, by the reason (`transit` of the counter `refused_transit`); asked for at each
 * scrape. Both roles may run in one process: each shows what its own table counts.
 */
export function refusedMetrics(registry: Registry, owner: Owner, read: ReadCounters): void {
  const known = tables.get(registry);
  const readers = known ?? new Map<Owner, ReadCounters>();
  readers.set(owner, read);
  if (known !== undefined) return;
  tables.set(registry, readers);
  readCounter(registry, REFUSED_PACKETS, async () => {
    const all = await Promise.all([...readers].map(async ([of, reader]) => samplesOf(of, await reader())));
    return all.flat();
  });
}

/** A table that has gone counts nothing. */
const samplesOf = (owner: Owner, counters: Counters): Sample<'reason'>[] =>
  REFUSED[owner].flatMap((name): Sample<'reason'>[] => {
    const counter = counters.get(name);
    return counter === undefined ? [] : [[{ reason: reasonOf(name) }, counter.packets]];
  });

export function silentNodesMetric(registry: Registry): (count: number) => void {
  const gauge = gaugeOf(registry, SILENT_NODES);
  return (count) => gauge.set(count);
}

/** One series for each peer, gone with it. */
export function networkExchangeMetrics(registry: Registry): ExchangeMetrics {
  const seen: Gauge<'peer'> = gaugeOf(registry, EXCHANGE_METRICS.seen);
  const refused: Gauge<'peer'> = gaugeOf(registry, EXCHANGE_METRICS.refused);
  return {
    prefixes: (peer, counts) => {
      if (counts === undefined) {
        seen.remove({ peer });
        refused.remove({ peer });
        return;
      }
      seen.set({ peer }, counts.seen);
      refused.set({ peer }, counts.refused);
    },
  };
}
