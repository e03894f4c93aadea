/** docs/reference/metrics.md: the definitions of the metrics as people read them. */
import { FAMILIES, MEASURED_ROLES } from '../../src/deploy/monitoring/metrics.ts';
import type { LabelValues, Metric, MetricUnit } from '../../src/lib/metric.ts';

const UNITS: Readonly<Record<MetricUnit, string>> = {
  seconds: 'seconds',
  timestamp: 'seconds since 1970',
  bytes: 'bytes',
  ratio: '0 to 1',
  cores: 'cores',
  count: 'number',
  state: '0 or 1',
};

const valuesOf = (values: LabelValues): string =>
  'each' in values ? `one for each ${values.each}` : values.map((value) => `\`${value}\``).join(', ');

const labelsOf = ({ labels }: Metric): string => {
  const names = Object.keys(labels);
  return names.length === 0 ? '' : names.map((name) => `\`${name}\``).join(', ');
};

const row = (metric: Metric): string =>
  `| \`${metric.name}\` | ${metric.type} | ${UNITS[metric.unit]} | ${labelsOf(metric)} | ${metric.help} |`;

/** Labels with one meaning in the whole family. */
function labelList(metrics: readonly Metric[]): string {
  const all = new Map(metrics.flatMap(({ labels }) => Object.entries(labels)));
  return [...all].map(([name, values]) => `- \`${name}\`: ${valuesOf(values)}`).join('\n');
}

const family = ({ title, metrics, roles }: (typeof FAMILIES)[number]): string => {
  const list = Object.values(metrics);
  const shown =
    roles.length === MEASURED_ROLES.length ? 'every role' : roles.map((role) => `\`${role}\``).join(', ');
  return `## ${title}

Shown by: ${shown}.

| name | type | unit | labels | meaning |
| --- | --- | --- | --- | --- |
${list.map(row).join('\n')}

${labelList(list)}
`;
};

export const metricsDocument =
  (): string => `<!-- Made by tools/generate.ts from the definitions in src/ (src/deploy/monitoring/metrics.ts lists them). -->

# Metrics

Every process serves these in the text format of Prometheus, at \`/metrics\` on its port for health and metrics: 8080 in
pods of \`cluster\` and of agents (role \`peer\`), 7480 for \`gateway\`, 7482 for \`node\`, or what \`--ops-port\` says.
Role \`all\` shows what all roles show. If a process serves several virtual nodes, the series that belong to one of them
also have the label \`virtual_node\`. [Monitoring](../monitoring.md) describes dashboards and alerts.

Labels have few values: words from a fixed list, or one for each peer or virtual node. A series of a peer is gone when the
peer is forgotten.

${FAMILIES.map(family).join('\n')}`;
