import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { refusedMetrics, silentNodesMetric, tunnelMetrics } from '../../../src/network/metrics.ts';

/** Series with a label, as a scraper reads them. */
const series = async (registry: Registry): Promise<string[]> =>
  (await registry.metrics())
    .split('\n')
    .filter((line) => !line.startsWith('#') && line !== '')
    .toSorted();

test('a peer has the series that are known of it, and none when it has gone', async () => {
  const registry = new Registry();
  const metrics = tunnelMetrics(registry);
  metrics.show(
    new Map([
      ['rome', { up: true, receivedBytes: 7, loss: 0, refusedPackets: 3 }],
      ['bern', { up: false }],
    ]),
  );
  expect(await series(registry)).toEqual([
    'tributary_tunnel_loss_ratio{peer="rome"} 0',
    'tributary_tunnel_received_bytes_total{peer="rome"} 7',
    'tributary_tunnel_refused_packets_total{peer="rome"} 3',
    'tributary_tunnel_up{peer="bern"} 0',
    'tributary_tunnel_up{peer="rome"} 1',
  ]);
  metrics.show(new Map([['bern', { up: true }]]), 'Kernel');
  expect(await series(registry)).toEqual([
    'tributary_network_wireguard{by="kernel"} 1',
    'tributary_tunnel_up{peer="bern"} 1',
  ]);
});

test('what no one peer is refused for is shown by the reason, of both tables side by side', async () => {
  const registry = new Registry();
  const [gateway, node] = [refusedMetrics(registry, 'gateway'), refusedMetrics(registry, 'node')];
  const counters = (of: Record<string, number>): Map<string, { packets: number }> =>
    new Map(Object.entries(of).map(([name, packets]) => [name, { packets }]));
  gateway(
    counters({
      refused_source: 1,
      refused_input: 2,
      refused_transit: 3,
      refused_tenant: 4,
      refused_departure: 5,
      refused_rome: 6,
    }),
  );
  node(counters({ refused_node: 7, refused_vxlan: 8 }));
  const of = (reason: string, packets: number): string =>
    `tributary_network_refused_packets_total{reason="${reason}"} ${packets}`;
  const all = [
    of('departure', 5),
    of('input', 2),
    of('node', 7),
    of('source', 1),
    of('tenant', 4),
    of('transit', 3),
    of('vxlan', 8),
  ];
  expect(await series(registry)).toEqual(all);
  // A table that has gone counts nothing.
  node(counters({}));
  expect(await series(registry)).toEqual(all.filter((line) => !/node|vxlan/.test(line)));
});

test('how many nodes are silent is shown once it is known', async () => {
  const registry = new Registry();
  const show = silentNodesMetric(registry);
  expect(await series(registry)).toEqual([]);
  show(0);
  expect(await series(registry)).toEqual(['tributary_network_silent_nodes 0']);
});
