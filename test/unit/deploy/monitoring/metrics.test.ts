import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { controllerMetrics } from '../../../../src/agent/parts.ts';
import { type MeasuredRole, METRICS, metricsOf } from '../../../../src/deploy/monitoring/metrics.ts';
import { noLines } from '../../../../src/lib/log.ts';
import { nameMistake } from '../../../../src/lib/metric.ts';
import { showProcess } from '../../../../src/lib/process-metrics.ts';
import {
  networkExchangeMetrics,
  refusedMetrics,
  silentNodesMetric,
  tunnelMetrics,
  tunnelRefusedMetric,
} from '../../../../src/network/metrics.ts';
import { peeringMetrics } from '../../../../src/peering/metrics.ts';
import { virtualNodeMetrics } from '../../../../src/provider/metrics.ts';
import { PodTally } from '../../../../src/provider/pod-tally.ts';
import { ServerMetrics } from '../../../../src/server/kubelet/metrics.ts';
import { WebhookMetrics } from '../../../../src/server/webhook/metrics.ts';

const read = async (): Promise<Map<string, never>> => Promise.resolve(new Map<string, never>());

function fillPeer(registry: Registry): void {
  new ServerMetrics(registry);
  const facts = { node: () => undefined, pods: new PodTally(), isReachable: () => false };
  virtualNodeMetrics(registry, { nodeName: 'milan', ...facts });
}

/** What a role fills its registry with; test/integration/monitoring.test.ts asks the roles themselves. */
const FILLED: Readonly<Record<MeasuredRole, (registry: Registry) => void>> = {
  cluster: (registry) => {
    networkExchangeMetrics(registry);
    peeringMetrics(registry, () => []);
    new WebhookMetrics(registry);
  },
  gateway: (registry) => {
    tunnelMetrics(registry);
    silentNodesMetric(registry);
    refusedMetrics(registry, 'gateway', read);
    tunnelRefusedMetric(registry, { peers: () => [], read });
  },
  node: (registry) => refusedMetrics(registry, 'node', read),
  peer: fillPeer,
  peers: fillPeer,
};

test.each(Object.keys(FILLED) as MeasuredRole[])(
  'role %s shows what is listed, and nothing else',
  async (role) => {
    const registry = new Registry();
    showProcess(registry, { version: '1', role, lines: noLines(), startedAt: 0 });
    controllerMetrics(registry);
    FILLED[role](registry);
    const shown = (await registry.getMetricsAsJSON()).map(({ name, type, help }) => ({
      name,
      type: String(type),
      help,
    }));
    const listed = metricsOf(role).map(({ name, type, help }) => ({ name, type: String(type), help }));
    const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
    expect(shown.toSorted(byName)).toEqual(listed.toSorted(byName));
  },
);

test('each metric has one definition, and a name by the conventions of Prometheus', () => {
  const names = METRICS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  // The convention of all clients of Prometheus is older than its rule for timestamps.
  const mistakes = METRICS.map((metric) => [metric.name, nameMistake(metric)]).filter(
    ([, mistake]) => mistake,
  );
  expect(mistakes).toEqual([]);
  expect(METRICS.filter(({ help }) => !/^[A-Z0-9].*\.$/u.test(help))).toEqual([]);
});

test.each([
  [{ name: 'tributary_tunnel_bytes' }, 'ends in _total if and only if it is a counter'],
  [{ name: 'tributary_tunnel_sent_total' }, 'does not end as its unit, bytes'],
  [{ name: 'tunnel_sent_bytes_total' }, 'is not tributary_... in snake_case'],
  [{ type: 'gauge' as const }, 'ends in _total if and only if it is a counter'],
  [{ labels: { Peer: [] } }, 'has a label Peer'],
  [{}, undefined],
])('of a metric with %j is said: %s', (wrong, said) => {
  const good = {
    name: 'tributary_tunnel_sent_bytes_total',
    type: 'counter',
    unit: 'bytes',
    help: 'A.',
    labels: {},
  } as const;
  expect(nameMistake({ ...good, ...wrong })).toBe(said);
});

test('what has no labels shows nothing before it was measured', async () => {
  const registry = new Registry();
  const metrics = new WebhookMetrics(registry);
  const shown = async (): Promise<string> =>
    registry.getSingleMetricAsString('tributary_webhook_certificate_expiry_timestamp_seconds');
  // A certificate that ended in 1970 would be an alarm.
  expect(await shown()).not.toMatch(/^tributary/mu);
  metrics.certificateExpires(7000);
  expect(await shown()).toMatch(/^tributary_webhook_certificate_expiry_timestamp_seconds 7$/mu);
});

test('no other file makes metrics of its own', () => {
  const src = join(import.meta.dirname, '../../../../src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  const makers = files.filter((path) =>
    /\bnew (Counter|Gauge|Histogram|Summary)\b/u.test(readFileSync(join(src, path), 'utf8')),
  );
  expect(makers).toEqual(['lib/instruments.ts']);
});
