/** What people hand to Prometheus and Grafana, and docs/reference/alerts.md. */
import { stringify } from 'yaml';

import { type Alert, ALERT_GROUPS, ruleFile } from '../../src/deploy/monitoring/alerts.ts';
import { DASHBOARDS } from '../../src/deploy/monitoring/dashboards.ts';
import { forgePodMonitor, forgePrometheusRule } from '../../src/deploy/monitoring/monitoring.ts';
import { printYaml } from '../../src/cli/yaml.ts';

const MADE = '# Made by tools/generate.ts from src/deploy/monitoring.\n';

export const monitoringFiles = (): Record<string, string> => ({
  'deploy/prometheus/rules.yaml': `${MADE}${stringify(ruleFile(), { lineWidth: 0 })}`,
  'deploy/prometheus/operator.yaml': `${MADE}${printYaml([forgePodMonitor(), forgePrometheusRule()])}`,
  ...Object.fromEntries(
    Object.entries(DASHBOARDS).map(([name, dashboard]) => [
      `deploy/grafana/tributary-${name}.json`,
      JSON.stringify(dashboard),
    ]),
  ),
  'docs/reference/alerts.md': alertsDocument(),
});

const section = ([name, alert]: [string, Alert]): string => `### ${name}

Severity: ${alert.severity}; if it is so for ${alert.for}.

\`\`\`promql
${alert.expr}
\`\`\`

${alert.means}

${alert.steps.map((step, at) => `${at + 1}. ${step}`).join('\n')}
`;

const alertsDocument = (): string => `<!-- Made by tools/generate.ts from src/deploy/monitoring/alerts.ts. -->

# Alerts

Each alert with its rule, what it means, and what to do. The annotation \`runbook_url\` of an alert leads to its section here.
[Monitoring](../monitoring.md) says how to give the rules to a Prometheus.

${Object.entries(ALERT_GROUPS)
  .map(([group, alerts]) => `## Group ${group}\n\n${Object.entries(alerts).map(section).join('\n')}`)
  .join('\n')}`;
