/** The only place where metrics of prom-client are made: always from a definition. */
import type { Registry } from 'prom-client';
// By parts: the whole package loads OpenTelemetry, for metrics of Node.js that we do not show.
import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';

import type { Metric, MetricType } from './metric.ts';

const base = <L extends string>(
  registry: Registry,
  { name, help, labels }: Metric<MetricType, L>,
): { name: string; help: string; labelNames: L[]; registers: [Registry] } => ({
  name,
  help,
  labelNames: Object.keys(labels) as L[],
  registers: [registry],
});

export const counterOf = <L extends string>(registry: Registry, metric: Metric<'counter', L>): Counter<L> =>
  new Counter(base(registry, metric));

/** It shows nothing before it was set; the library shows a 0 where there are no labels. */
export function gaugeOf<L extends string>(registry: Registry, metric: Metric<'gauge', L>): Gauge<L> {
  const gauge = new Gauge(base(registry, metric));
  gauge.remove({});
  return gauge;
}

export const histogramOf = <L extends string>(
  registry: Registry,
  metric: Metric<'histogram', L>,
): Histogram<L> => new Histogram({ ...base(registry, metric), buckets: [...(metric.buckets ?? [])] });

/** One series of a metric: the values of its labels, and its own. */
export type Sample<L extends string> = readonly [labels: Record<L, string>, value: number];

/** Its series are asked for at each scrape; what is not named then has none. */
export function readGauge<L extends string>(
  registry: Registry,
  metric: Metric<'gauge', L>,
  read: () => Iterable<Sample<L>>,
): void {
  const gauge: Gauge<L> = new Gauge({
    ...base(registry, metric),
    collect: () => {
      gauge.reset();
      for (const [labels, value] of read()) gauge.set(labels, value);
    },
  });
}

/** The same for what something else counts. Whatever `read` throws fails the whole scrape. */
export function readCounter<L extends string>(
  registry: Registry,
  metric: Metric<'counter', L>,
  read: () => Iterable<Sample<L>> | Promise<Iterable<Sample<L>>>,
): void {
  const counter: Counter<L> = new Counter({
    ...base(registry, metric),
    collect: async () => {
      const samples = await read();
      counter.reset();
      for (const [labels, value] of samples) counter.inc(labels, value);
    },
  });
}

/** Sets one series to what something else has counted, which may begin anew. */
export function setCounter<L extends string>(
  counter: Counter<L>,
  labels: Record<L, string>,
  value: number,
): void {
  counter.remove(labels);
  counter.inc(labels, value);
}
