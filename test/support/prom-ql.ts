/** What a PromQL expression asks for, by the grammar of Prometheus itself, compared with what the program shows. */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

import { METRICS } from '../../src/deploy/monitoring/metrics.ts';
import { type Metric, seriesOf } from '../../src/lib/metric.ts';

/** Put there by Prometheus, by the operator, and by processes that serve several virtual nodes. */
const OF_TARGETS = ['instance', 'job', 'namespace', 'pod', 'container', 'virtual_node'];
const BY_SERIES = new Map<string, Metric>(
  METRICS.flatMap((metric) => seriesOf(metric).map((name) => [name, metric])),
);

/** Variables of Grafana as what they stand for. */
export const withoutVariables = (expr: string): string =>
  expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/gu, '.*');

/** One line for each. */
export function mistakesIn(expr: string): string[] {
  const text = withoutVariables(expr);
  const textOf = ({ from, to }: SyntaxNode): string => text.slice(from, to);
  const mistakes: string[] = [];
  const selectors: SyntaxNode[] = [];
  const grouped: string[] = [];
  parser.parse(text).iterate({
    enter: ({ type, node }) => {
      if (type.isError) mistakes.push('cannot be parsed');
      if (type.name === 'VectorSelector') selectors.push(node);
      if (type.name === 'GroupingLabels') {
        grouped.push(...node.getChildren('LabelName').map(textOf));
      }
    },
  });
  if (mistakes.length > 0) return ['cannot be parsed'];
  const asked = selectors.map((node) => selectorOf(node, textOf));
  const labels = new Set([...OF_TARGETS, ...asked.flatMap(({ name }) => labelsOf(name))]);
  return [
    ...asked.flatMap(selectorMistakes),
    ...grouped
      .filter((label) => !labels.has(label))
      .map((label) => `no metric of the expression has the label ${label}`),
  ];
}

interface Selector {
  name: string;
  matchers: { label: string; operator: string; value: string }[];
}

function selectorOf(node: SyntaxNode, textOf: (node: SyntaxNode) => string): Selector {
  const identifier = node.getChild('Identifier');
  const matchers = (node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []).map(
    (matcher) => {
      const [, label = '', operator = '', value = ''] =
        /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/u.exec(textOf(matcher)) ?? [];
      return { label, operator, value };
    },
  );
  return { name: identifier === null ? '' : textOf(identifier), matchers };
}

function selectorMistakes({ name, matchers }: Selector): string[] {
  const metric = BY_SERIES.get(name);
  if (metric === undefined) return [`there is no metric ${name}`];
  return matchers.flatMap(({ label, operator, value }) => {
    if (OF_TARGETS.includes(label)) return [];
    const values = metric.labels[label];
    if (values === undefined) return [`${name} has no label ${label}`];
    if ('each' in values) return [];
    const words = operator.endsWith('~') ? value.split('|') : [value];
    return words
      .filter((word) => word !== '' && word !== '.*' && !values.includes(word))
      .map((word) => `${label} of ${name} is never ${word}`);
  });
}

const labelsOf = (name: string): string[] => [
  ...Object.keys(BY_SERIES.get(name)?.labels ?? {}),
  ...(name.endsWith('_bucket') ? ['le'] : []),
];
