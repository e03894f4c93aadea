import type { Counter, Gauge, Registry } from 'prom-client';

import { WIREGUARDS } from '../api/tunnel.ts';
import { counterOf, gaugeOf, setCounter } from '../lib/instruments.ts';
import { EACH_PEER, type Metric } from '../lib/metric.ts';
import type { ExchangeMetrics } from './exchange/tunnels.ts';
import type { TunnelMetrics, TunnelSample } from './gateway/reports.ts';
import type { Owner } from './host/host-config.ts';
import { REFUSED } from './plan/names.ts';

const labels = { peer: EACH_PEER } as const;

/** One series a peer and metric; what is not known of a tunnel has none. */
export const TUNNEL_METRICS: Readonly<
  Record<keyof TunnelSample, Metric<'counter', 'peer'> | Metric<'gauge', 'peer'>>
> & { readonly up: Metric<'gauge', 'peer'> } = {
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
  const { up: upMetric, ...others } = TUNNEL_METRICS;
  const up = gaugeOf(registry, upMetric);
  const wireguard = gaugeOf(registry, WIREGUARD);
  const series = (Object.keys(others) as (keyof typeof others)[]).map((key) => ({
    key,
    ...writerOf(registry, others[key]),
  }));
  return {
    show(samples, by) {
      wireguard.reset();
      if (by !== undefined) wireguard.set({ by: by.toLowerCase() }, 1);
      up.reset();
      for (const { reset } of series) reset();
      for (const [peer, sample] of samples) {
        up.set({ peer }, sample.up ? 1 : 0);
        for (const { key, write } of series) {
          const value = sample[key];
          if (value !== undefined) write(peer, value);
        }
      }
    },
  };
}

function writerOf(
  registry: Registry,
  metric: Metric<'counter', 'peer'> | Metric<'gauge', 'peer'>,
): { reset: () => void; write: (peer: string, value: number) => void } {
  if (metric.type === 'counter') {
    const counter = counterOf(registry, metric);
    return { reset: () => counter.reset(), write: (peer, value) => setCounter(counter, { peer }, value) };
  }
  const gauge = gaugeOf(registry, metric);
  return { reset: () => gauge.reset(), write: (peer, value) => gauge.set({ peer }, value) };
}

/**
 * What was dropped without being any one peer's, by the reason (`transit` of the counter `refused_transit`). Both roles
 * may run in one process: each shows what its own table counts.
 */
export function refusedMetrics(
  registry: Registry,
  owner: Owner,
): (counters: ReadonlyMap<string, { packets: number }>) => void {
  const metric =
    (registry.getSingleMetric(REFUSED_PACKETS.name) as Counter<'reason'> | undefined) ??
    counterOf(registry, REFUSED_PACKETS);
  return (counters) => {
    for (const name of REFUSED[owner]) {
      const reason = { reason: reasonOf(name) };
      const counter = counters.get(name);
      if (counter === undefined) metric.remove(reason);
      else setCounter(metric, reason, counter.packets);
    }
  };
}

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
