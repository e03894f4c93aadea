import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

import { ALERTS, ruleFile } from '../../../../src/deploy/monitoring/alerts.ts';
import { DASHBOARD_SOURCES, DASHBOARDS } from '../../../../src/deploy/monitoring/dashboards.ts';
import { forgePodMonitor, forgePrometheusRule } from '../../../../src/deploy/monitoring/monitoring.ts';
import { mistakesIn } from '../../../support/prom-ql.ts';

/** Expressions of alerts and dashboards name only what the program shows. */

const root = join(import.meta.dirname, '../../../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

test.each([...ALERTS])('the alert %s asks for what there is', (_name, { expr }) => {
  expect(mistakesIn(expr)).toEqual([]);
});

describe.each(Object.entries(DASHBOARD_SOURCES))('the dashboard %s', (name, { panels, choices, uid }) => {
  test.each(panels.flatMap(({ title, queries }) => queries.map(([expr]) => [title, expr] as const)))(
    'asks in %s for what there is',
    (_title, expr) => {
      expect(mistakesIn(expr)).toEqual([]);
    },
  );

  test('offers choices that its expressions use, from labels that there are', () => {
    const text = JSON.stringify(panels);
    for (const { name: choice, metric, label } of choices) {
      expect(mistakesIn(`${metric}{${label}!=""}`)).toEqual([]);
      expect(text).toContain(`$${choice}\\"`);
    }
    const used = [...text.matchAll(/\$(\w+)/gu)].map(([, variable]) => variable);
    const known = [...choices.map((choice) => choice.name), '__rate_interval'];
    expect([...new Set(used)].filter((variable) => !known.includes(variable ?? ''))).toEqual([]);
  });

  test('is in deploy/grafana as Grafana imports it, and no panel lies on another', () => {
    const written = JSON.parse(read(`deploy/grafana/tributary-${name}.json`)) as {
      uid: string;
      panels: { id: number; gridPos: { x: number; y: number } }[];
    };
    expect(written).toEqual(DASHBOARDS[name]);
    expect(written.uid).toBe(uid);
    const places = written.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(panels.length);
    expect(new Set(written.panels.map(({ id }) => id)).size).toBe(panels.length);
  });
});

test('what there is not is refused', () => {
  const mistakes = {
    'tributary_no_such_thing > 1': ['there is no metric tributary_no_such_thing'],
    node_cpu_seconds_total: ['there is no metric node_cpu_seconds_total'],
    'tributary_tunnel_up{cluster="a"}': ['tributary_tunnel_up has no label cluster'],
    'sum by (node) (tributary_tunnel_up)': ['no metric of the expression has the label node'],
    'a == on (nodes) tributary_tunnel_up': [
      'there is no metric a',
      'no metric of the expression has the label nodes',
    ],
    'tributary_peering_phase{phase="Etablished"}': ['phase of tributary_peering_phase is never Etablished'],
    'tributary_reconciles_total{outcome=~"error|bad"}': [
      'outcome of tributary_reconciles_total is never bad',
    ],
    tributary_webhook_request_duration_seconds: [
      'there is no metric tributary_webhook_request_duration_seconds',
    ],
    'sum(tributary_tunnel_up': ['cannot be parsed'],
  };
  expect(Object.fromEntries(Object.keys(mistakes).map((expr) => [expr, mistakesIn(expr)]))).toEqual(mistakes);
  expect(
    mistakesIn('sum by (le, peer) (rate(tributary_tunnel_sent_bytes_total{peer=~"$peer"}[5m]))'),
  ).toEqual(['no metric of the expression has the label le']);
});

test('each alert leads to a section that says what to do', () => {
  const rules = ruleFile().groups.flatMap((group) => group.rules) as {
    annotations: { runbook_url: string };
  }[];
  expect(rules).toHaveLength(ALERTS.size);
  for (const { annotations } of rules) {
    const [path = '', anchor] = annotations.runbook_url.split('#');
    expect(existsSync(join(root, path))).toBe(true);
    const headings = [...read(path).matchAll(/^#+ (.*)$/gmu)].map(([, heading = '']) =>
      heading.toLowerCase().replaceAll(' ', '-'),
    );
    expect(headings).toContain(anchor);
  }
  expect([...ALERTS.values()].filter(({ steps }) => steps.length === 0)).toEqual([]);
});

test('labels in a summary are labels that the expression leaves', () => {
  for (const [name, { expr, summary }] of ALERTS) {
    const labels = [...summary.matchAll(/\$labels\.(\w+)/gu)].map(([, label = '']) => label);
    const grouped = /^(?:sum|max|min) by \(([^)]*)\)/u.exec(expr)?.[1]?.split(', ');
    for (const label of labels) {
      expect({ name, mistakes: mistakesIn(`(${expr}) and on (${label}) (${expr})`) }).toEqual({
        name,
        mistakes: [],
      });
      if (grouped !== undefined)
        expect({ name, grouped }).toEqual({ name, grouped: expect.arrayContaining([label]) });
    }
  }
});

test('what the operator reads bears the label that chooses it, and the same rules', () => {
  const [monitor, rule] = [forgePodMonitor('kps'), forgePrometheusRule('kps')] as unknown as {
    spec: unknown;
    metadata: { labels?: object };
  }[];
  expect(monitor?.metadata.labels).toMatchObject({ release: 'kps' });
  expect(rule?.metadata.labels).toMatchObject({ release: 'kps' });
  expect(rule?.spec).toEqual(ruleFile());
  expect(parse(read('deploy/prometheus/rules.yaml'))).toEqual(ruleFile());
});
