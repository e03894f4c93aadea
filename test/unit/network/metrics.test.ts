import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { silentLogger } from '../../../src/lib/log.ts';
import {
  refusedMetrics,
  silentNodesMetric,
  tunnelMetrics,
  tunnelRefusedMetric,
} from '../../../src/network/metrics.ts';
import { TableCounters } from '../../../src/network/table-counters.ts';
import { FakeClock } from '../../support/fake-clock.ts';

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
      ['rome', { up: true, receivedBytes: 7, loss: 0 }],
      ['bern', { up: false }],
    ]),
  );
  expect(await series(registry)).toEqual([
    'tributary_tunnel_loss_ratio{peer="rome"} 0',
    'tributary_tunnel_received_bytes_total{peer="rome"} 7',
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
  const counters = (of: Record<string, number>): Map<string, { packets: number }> =>
    new Map(Object.entries(of).map(([name, packets]) => [name, { packets }]));
  const gateway = counters({
    refused_source: 1,
    refused_input: 2,
    refused_transit: 3,
    refused_tenant: 4,
    refused_departure: 5,
    refused_rome: 6,
  });
  let node = counters({ refused_node: 7, refused_vxlan: 8 });
  refusedMetrics(registry, 'gateway', async () => Promise.resolve(gateway));
  refusedMetrics(registry, 'node', async () => Promise.resolve(node));
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
  node = counters({});
  expect(await series(registry)).toEqual(all.filter((line) => !/node|vxlan/.test(line)));
});

test('what a peer is refused for is counted when it is asked for, at most every 10 s, and no other peer is shown', async () => {
  const registry = new Registry();
  const clock = new FakeClock();
  let packets = 3;
  let listed = 0;
  const list = async (): Promise<Map<string, { packets: number }>> => {
    listed += 1;
    if (packets < 0) throw new Error('no nft');
    return Promise.resolve(new Map([['refused_rome', { packets }]]));
  };
  const { read } = new TableCounters({ clock, log: silentLogger, list });
  tunnelRefusedMetric(registry, { peers: () => ['rome', 'bern'], read });
  const shown = (count: number): string[] => [`tributary_tunnel_refused_packets_total{peer="rome"} ${count}`];
  expect(listed).toBe(0);
  expect(await series(registry)).toEqual(shown(3));
  packets = 4;
  expect(await series(registry)).toEqual(shown(3));
  expect(listed).toBe(1);
  await clock.advance(10_000);
  expect(await series(registry)).toEqual(shown(4));
  packets = -1;
  await clock.advance(10_000);
  expect(await series(registry)).toEqual([]);
});

test('how many nodes are silent is shown once it is known', async () => {
  const registry = new Registry();
  const show = silentNodesMetric(registry);
  expect(await series(registry)).toEqual([]);
  show(0);
  expect(await series(registry)).toEqual(['tributary_network_silent_nodes 0']);
});
