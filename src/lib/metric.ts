/**
 * What this program measures, as data: registries are filled from it (instruments.ts), docs/reference/metrics.md is made
 * from it, and dashboards and alerts are checked against it.
 */
export type MetricType = 'counter' | 'gauge' | 'histogram';

/** `timestamp`: seconds since 1970. `count`: how many of something. `state`: 1 for yes, 0 for no. */
export type MetricUnit = 'seconds' | 'timestamp' | 'bytes' | 'ratio' | 'cores' | 'count' | 'state';

/** The values of a label: these words, or one for each of what `each` names. Both are few. */
export type LabelValues = readonly string[] | { readonly each: string };

export interface Metric<Type extends MetricType = MetricType, Label extends string = string> {
  readonly name: string;
  readonly type: Type;
  readonly unit: MetricUnit;
  /** One sentence, for people. */
  readonly help: string;
  readonly labels: Readonly<Record<Label, LabelValues>>;
  /** Of a histogram: upper bounds. */
  readonly buckets?: readonly number[];
}

/** Of a label that names a cluster. */
export const EACH_PEER: LabelValues = { each: 'peer, by its ClusterID' };
/** Of a label that names a virtual node. */
export const EACH_NODE: LabelValues = { each: 'virtual node that the process serves' };

/** The names of the series that a metric has, as Prometheus stores them. */
export const seriesOf = ({ name, type }: Pick<Metric, 'name' | 'type'>): string[] =>
  type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];

const ENDINGS: Readonly<Record<MetricUnit, RegExp>> = {
  seconds: /_seconds$/u,
  timestamp: /_timestamp_seconds$/u,
  bytes: /_bytes$/u,
  ratio: /_ratio$/u,
  cores: /_cores$/u,
  count: /^(?!.*_(seconds|bytes|ratio|cores)$)/u,
  state: /^(?!.*_(seconds|bytes|ratio|cores)$)/u,
};

/** What is wrong with a name by the conventions of Prometheus (https://prometheus.io/docs/practices/naming/); undefined if nothing is. */
export function nameMistake({ name, type, unit, labels }: Metric): string | undefined {
  if (!/^(tributary|process)_[a-z0-9]+(_[a-z0-9]+)*$/u.test(name))
    return 'is not tributary_... in snake_case';
  if ((type === 'counter') !== name.endsWith('_total'))
    return 'ends in _total if and only if it is a counter';
  if (/_(count|sum|bucket)$/u.test(name)) return 'ends like a series of a histogram';
  if (!ENDINGS[unit].test(name.replace(/_total$/u, ''))) return `does not end as its unit, ${unit}`;
  const label = Object.keys(labels).find((key) => !/^[a-z]+(_[a-z]+)*$/u.test(key) || key === 'le');
  return label === undefined ? undefined : `has a label ${label}`;
}
