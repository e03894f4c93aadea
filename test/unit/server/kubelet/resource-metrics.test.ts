import { expect, test } from '@jest/globals';

import type { ContainerSample, PodSample } from '../../../../src/api/pod-usage.ts';
import { ResourceMetrics } from '../../../../src/server/kubelet/resource-metrics.ts';

const T0 = Date.UTC(2026, 0, 1);
const S = 1000;

const own = { cpuSeconds: 2, memoryBytes: 50_000_000 };
const create = (): ResourceMetrics =>
  new ResourceMetrics({ nodeName: 'milan', startTimeMs: T0, own: () => ({ ...own }) });

const container = (cpu: string, memory: string, startTimeMs = T0, name = 'main'): ContainerSample => ({
  name,
  cpu,
  memory,
  startTimeMs,
});

const pod = (at: number, containers: ContainerSample[], name = 'web'): PodSample => ({
  namespace: 'shop',
  name,
  uid: `uid-${name}`,
  startTimeMs: T0,
  timestampMs: at,
  windowMs: 15 * S,
  containers,
});

/** Value and timestamp of a series, as a scraper reads it. */
function series(text: string, start: string): [number, number] | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(start));
  const match = line === undefined ? null : / (\S+)(?: (\d+))?$/.exec(line);
  return match === null ? undefined : [Number(match[1]), Number(match[2])];
}
const CPU = 'container_cpu_usage_seconds_total{container="main"';
const MEMORY = 'container_memory_working_set_bytes{container="main"';

test('the exposition reads as that of kubelet 1.36', () => {
  const metrics = create();
  metrics.record([pod(T0 + 60 * S, [container('500m', '64Mi')])], T0 + 61 * S);
  const at = T0 + 60 * S;
  expect(metrics.exposition(T0 + 62 * S)).toBe(
    `# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="main",namespace="shop",pod="web"} 7.500001 ${at}
# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="main",namespace="shop",pod="web"} 67108864 ${at}
# HELP container_start_time_seconds [STABLE] Start time of the container since unix epoch in seconds
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="main",namespace="shop",pod="web"} ${T0 / 1000}
# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 9.500001 ${at}
# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 117108864 ${at}
# HELP pod_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the pod in core-seconds
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 7.500001 ${at}
# HELP pod_memory_working_set_bytes [STABLE] Current working set of the pod in bytes
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="shop",pod="web"} 67108864 ${at}
# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise
# TYPE resource_scrape_error gauge
resource_scrape_error 0
# HELP scrape_error [ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise
# TYPE scrape_error gauge
scrape_error 0
`,
  );
});

test('the rate a scraper computes is the rate that was reported, whatever the distance of samples', () => {
  const metrics = create();
  const reported = [0.25, 1.5, 0.1, 2];
  let at = T0;
  let before: [number, number] | undefined;
  for (const [index, cores] of reported.entries()) {
    at += (15 + index * 20) * S;
    metrics.record([pod(at, [container(`${cores * 1e9}n`, '1Mi')])], at + S);
    const now = series(metrics.exposition(at + S), CPU);
    if (before !== undefined && now !== undefined) {
      expect((now[0] - before[0]) / ((now[1] - before[1]) / 1000)).toBeCloseTo(cores, 6);
    }
    before = now;
  }
});

test('a sample that did not change changes nothing, at whatever time it is scraped or recorded', () => {
  const metrics = create();
  const sample = pod(T0 + 60 * S, [container('1', '1Mi')]);
  metrics.record([sample], T0 + 61 * S);
  const first = metrics.exposition(T0 + 61 * S);
  metrics.record([{ ...sample, containers: [container('9', '9Mi')] }], T0 + 90 * S);
  own.cpuSeconds += 1;
  expect(metrics.exposition(T0 + 90 * S)).toBe(first);
  own.cpuSeconds -= 1;
});

test('a restarted container starts anew; those of pod and node go on', () => {
  const metrics = create();
  metrics.record([pod(T0 + 60 * S, [container('1', '1Mi')])], T0 + 60 * S);
  metrics.record([pod(T0 + 75 * S, [container('1', '1Mi')])], T0 + 75 * S);
  const read = (start: string): number => series(metrics.exposition(T0 + 90 * S), start)?.[0] ?? -1;
  expect(read(CPU)).toBeCloseTo(30, 4);
  metrics.record([pod(T0 + 90 * S, [container('1', '1Mi', T0 + 80 * S)])], T0 + 90 * S);
  expect(read(CPU)).toBeCloseTo(15, 4);
  expect(read('pod_cpu')).toBeCloseTo(45, 4);
  expect(read('node_cpu')).toBeCloseTo(47, 4);
});

test('the counter of the node survives its pods', () => {
  const metrics = create();
  metrics.record([pod(T0 + 60 * S, [container('1', '1Mi')])], T0 + 60 * S);
  metrics.prune(() => false);
  metrics.record([], T0 + 90 * S);
  const text = metrics.exposition(T0 + 90 * S);
  expect(series(text, CPU)).toBeUndefined();
  expect(series(text, 'node_cpu')?.[0]).toBeCloseTo(17, 4);
  expect(series(text, 'node_memory')).toEqual([50_000_000, T0 + 90 * S]);
});

test('the memory and rate of the node are those of its fresh pods; its counter keeps what the others have used', () => {
  const metrics = create();
  metrics.record([pod(T0, [container('1', '1Mi')], 'silent'), pod(T0, [container('1', '1Mi')])], T0);
  const at = T0 + 301 * S;
  metrics.record([pod(at, [container('500m', '2Mi')])], at);
  const { node } = metrics.summary([], at) as { node: Record<'cpu' | 'memory', Record<string, number>> };
  expect(node.memory['usageBytes']).toBe(50_000_000 + 2 * 1024 * 1024);
  expect(node.cpu['usageNanoCores']).toBe(500_000_000);
  // Fifteen seconds of one core each, and 301 s of half a core.
  expect(node.cpu['usageCoreNanoSeconds']).toBeCloseTo((2 + 15 + 15 + 150.5) * 1e9, -5);
});

test('where all samples are old, the node itself is measured now', () => {
  const metrics = create();
  metrics.record([pod(T0, [container('1', '1Mi')])], T0 + 301 * S);
  expect(series(metrics.exposition(T0 + 301 * S), 'node_memory')).toEqual([50_000_000, T0 + 301 * S]);
});

test('an idle container counts more than nothing, one without memory was not measured', () => {
  const metrics = create();
  metrics.record(
    [
      pod(T0, [container('0', '1Mi'), container('0', '0', T0, 'done')]),
      pod(T0, [container('0', '0')], 'gone'),
    ],
    T0,
  );
  const text = metrics.exposition(T0);
  // As metrics-server 0.9 reads it: nanoseconds in a uint64, dropped when zero.
  expect(Math.floor((series(text, CPU)?.[0] ?? 0) * 1e9)).toBeGreaterThan(0);
  expect(series(text, MEMORY)?.[0]).toBe(1024 * 1024);
  expect(text).not.toContain('container="done"');
  expect(text).not.toContain('pod="gone"');
});

test('a failure is told; what was known stays until it is stale', () => {
  const metrics = create();
  metrics.record([pod(T0, [container('1', '1Mi')])], T0);
  metrics.recordFailure();
  const text = metrics.exposition(T0 + 60 * S);
  expect(series(text, 'scrape_error')?.[0]).toBe(1);
  expect(series(text, 'resource_scrape_error')?.[0]).toBe(1);
  expect(series(text, CPU)?.[1]).toBe(T0);
  expect(metrics.exposition(T0 + 301 * S)).not.toContain('container_');
  metrics.record([], T0 + 302 * S);
  expect(series(metrics.exposition(T0 + 302 * S), 'scrape_error')?.[0]).toBe(0);
});

test('swap is told of what the foreign cluster tells it of, and of nothing else', () => {
  const metrics = create();
  const at = T0 + 60 * S;
  const swapping = { ...container('1', '1Mi'), swap: '2Mi' };
  const idle = { ...container('1', '1Mi', T0, 'idle'), swap: '0' };
  metrics.record([pod(at, [swapping, idle]), pod(at, [container('1', '1Mi', T0, 'silent')], 'silent')], at);
  const [, swap] = /^(# HELP container_swap[^]*?)# HELP node_cpu/mu.exec(metrics.exposition(at)) ?? [];
  expect(swap).toBe(
    `# HELP container_swap_usage_bytes [ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems
# TYPE container_swap_usage_bytes gauge
container_swap_usage_bytes{container="main",namespace="shop",pod="web"} 2097152 ${at}
container_swap_usage_bytes{container="idle",namespace="shop",pod="web"} 0 ${at}
`,
  );
  const lines = metrics
    .exposition(at)
    .split('\n')
    .filter((line) => /^(node|pod)_swap/u.test(line));
  expect(lines).toEqual([
    `node_swap_usage_bytes 2097152 ${at}`,
    `pod_swap_usage_bytes{namespace="shop",pod="web"} 2097152 ${at}`,
  ]);
  const { node, pods } = metrics.summary([], at) as { node: object; pods: object[] };
  const figures = { time: new Date(at).toISOString(), swapUsageBytes: 2_097_152 };
  expect(node).toMatchObject({ swap: figures });
  expect(pods[0]).toMatchObject({ swap: figures, containers: [{ swap: figures }, {}] });
  expect(pods[1]).not.toHaveProperty('swap');
});

test('the summary holds the same values, and pods without a sample without any', () => {
  const metrics = create();
  metrics.record([pod(T0 + 60 * S, [container('250m', '10M')])], T0 + 60 * S);
  const time = new Date(T0 + 60 * S).toISOString();
  const startTime = new Date(T0).toISOString();
  const usage = {
    cpu: { time, usageNanoCores: 250_000_000, usageCoreNanoSeconds: 3_750_001_000 },
    memory: { time, usageBytes: 10_000_000, workingSetBytes: 10_000_000 },
  };
  const running = ['web', 'new'].map((name) => ({
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    startTimeMs: T0,
    containers: [{ name: 'main', startTimeMs: T0 }],
  }));
  expect(metrics.summary(running, T0 + 60 * S)).toEqual({
    node: {
      nodeName: 'milan',
      startTime,
      cpu: { time, usageNanoCores: 250_000_000, usageCoreNanoSeconds: 5_750_001_000 },
      memory: { time, usageBytes: 60_000_000, workingSetBytes: 60_000_000 },
    },
    pods: [
      {
        podRef: { name: 'web', namespace: 'shop', uid: 'uid-web' },
        startTime,
        containers: [{ name: 'main', startTime, ...usage }],
        ...usage,
      },
      {
        podRef: { name: 'new', namespace: 'shop', uid: 'uid-new' },
        startTime,
        containers: [{ name: 'main', startTime }],
      },
    ],
  });
});
