import { Gauge, type Registry } from 'prom-client';

import type { ExchangeMetrics } from './exchange/tunnels.ts';
import type { TunnelMetrics, TunnelSample } from './gateway/reports.ts';
import type { Owner } from './host/host-config.ts';
import { REFUSED } from './plan/names.ts';

/** Field of a sample, name of the metric, help. Bytes are gauges: WireGuard counts anew when it is started again. */
const SERIES: readonly [Exclude<keyof TunnelSample, 'up'>, string, string][] = [
  ['receivedBytes', 'tributary_tunnel_received_bytes', 'Bytes received through the tunnel.'],
  ['sentBytes', 'tributary_tunnel_sent_bytes', 'Bytes sent through the tunnel.'],
  ['handshake', 'tributary_tunnel_last_handshake_seconds', 'Last handshake, in seconds since the epoch.'],
  ['rttSeconds', 'tributary_tunnel_rtt_seconds', 'Median round-trip time of the last probes.'],
  ['loss', 'tributary_tunnel_loss_ratio', 'Share of the last probes that were lost.'],
  ['mtu', 'tributary_tunnel_mtu_bytes', 'Largest packet that goes through the tunnel.'],
  ['refusedPackets', 'tributary_tunnel_refused_packets', 'Packets of the peer that were dropped.'],
];

/** One series a peer and metric; what is not known has none. */
export function tunnelMetrics(registry: Registry): TunnelMetrics {
  const gauge = (name: string, help: string): Gauge<'peer'> =>
    new Gauge({ name, help, labelNames: ['peer'], registers: [registry] });
  const up = gauge('tributary_tunnel_up', '1 where probes come back, else 0.');
  const gauges = SERIES.map(([key, name, help]) => ({ key, gauge: gauge(name, help) }));
  return {
    show(samples) {
      up.reset();
      for (const { gauge: each } of gauges) each.reset();
      for (const [peer, sample] of samples) {
        up.set({ peer }, sample.up ? 1 : 0);
        for (const { key, gauge: each } of gauges) {
          const value = sample[key];
          if (value !== undefined) each.set({ peer }, value);
        }
      }
    },
  };
}

const REFUSED_PACKETS = 'tributary_network_refused_packets';

/**
 * What was dropped without being any one peer's, by the reason (`transit` of the counter `refused_transit`). Both roles
 * may run in one process: each shows what its own table counts.
 */
export function refusedMetrics(
  registry: Registry,
  owner: Owner,
): (counters: ReadonlyMap<string, { packets: number }>) => void {
  const gauge =
    (registry.getSingleMetric(REFUSED_PACKETS) as Gauge<'reason'> | undefined) ??
    new Gauge({
      name: REFUSED_PACKETS,
      help: 'Packets that were dropped and belong to no one peer, since the rules of this host changed last.',
      labelNames: ['reason'],
      registers: [registry],
    });
  return (counters) => {
    for (const name of REFUSED[owner]) {
      const labels = { reason: name.replace('refused_', '') };
      const counter = counters.get(name);
      if (counter === undefined) gauge.remove(labels);
      else gauge.set(labels, counter.packets);
    }
  };
}

/** One series for each peer, gone with it. */
export function networkExchangeMetrics(registry: Registry): ExchangeMetrics {
  const [seen, refused] = [
    ['tributary_network_prefixes', 'Prefixes of a peer that are seen here.'],
    ['tributary_network_prefixes_refused', 'Prefixes of a peer that are not seen here.'],
  ].map(
    ([name = '', help = '']) => new Gauge({ name, help, labelNames: ['peer'], registers: [registry] }),
  ) as [Gauge<'peer'>, Gauge<'peer'>];
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
