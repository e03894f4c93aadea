/** What people apply so that the Prometheus operator finds and watches all parts, and Grafana shows them. */
import {
  AGENTS_NAMESPACE,
  APP_NAME,
  LABEL_APP_INSTANCE,
  LABEL_APP_NAME,
  type Manifest,
  SYSTEM_NAMESPACE,
} from '../../api/manifest.ts';
import { NETWORK_NAMESPACE } from '../program.ts';
import { ruleFile } from './alerts.ts';
import { DASHBOARDS } from './dashboards.ts';

export interface MonitoringOptions {
  /** Further labels of PodMonitor and PrometheusRule, by which a Prometheus chooses them (often `release`). */
  labels?: Readonly<Record<string, string>>;
  /** Between two scrapes, as Prometheus writes durations. Default 30s. */
  interval?: string;
  /** ConfigMaps that the sidecar of Grafana's chart takes for dashboards. Default: none. */
  dashboards?: boolean;
  /** What comes before `docs/reference/alerts.md` in runbook links, such as the URL of a checkout. */
  runbookBase?: string;
}

/** Needs the definitions of the Prometheus operator (monitoring.coreos.com/v1), unless it is dashboards only. */
export function forgeMonitoring(options: MonitoringOptions = {}): Manifest[] {
  const { labels = {}, interval = '30s', dashboards = false, runbookBase = '' } = options;
  const base = { [LABEL_APP_NAME]: APP_NAME };
  const chosen = { ...labels, ...base };
  return [
    forgePodMonitor(chosen, interval),
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { namespace: SYSTEM_NAMESPACE, name: APP_NAME, labels: chosen },
      spec: ruleFile(runbookBase),
    } as Manifest,
    ...(dashboards
      ? Object.entries(DASHBOARDS).map(([name, dashboard]) => forgeDashboard(name, dashboard))
      : []),
  ];
}

/** Pods and not Services: a standby has metrics, too, and agents have no Service. */
const forgePodMonitor = (labels: Record<string, string>, interval: string): Manifest & { spec: object } => ({
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PodMonitor',
  metadata: { namespace: SYSTEM_NAMESPACE, name: APP_NAME, labels },
  spec: {
    namespaceSelector: { matchNames: [SYSTEM_NAMESPACE, AGENTS_NAMESPACE, NETWORK_NAMESPACE] },
    selector: { matchLabels: { [LABEL_APP_NAME]: APP_NAME } },
    podMetricsEndpoints: [{ port: 'ops', path: '/metrics', interval }],
    podTargetLabels: [LABEL_APP_INSTANCE],
  },
});

const forgeDashboard = (name: string, dashboard: object): Manifest & { data: Record<string, string> } => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    namespace: SYSTEM_NAMESPACE,
    name: `tributary-dashboard-${name}`,
    labels: { [LABEL_APP_NAME]: APP_NAME, grafana_dashboard: '1' },
  },
  data: { [`tributary-${name}.json`]: JSON.stringify(dashboard) },
});
