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

/** The group of kinds that the Prometheus operator brings. */
export const OPERATOR_API = 'monitoring.coreos.com/v1';

const labels = { [LABEL_APP_NAME]: APP_NAME };

/** Most set-ups of the operator choose by the label `release`; empty: none. */
const chosenBy = (release: string): Record<string, string> => ({
  ...labels,
  ...(release !== '' && { release }),
});

/** Pods and not Services: a standby has metrics, too, and agents have no Service. */
export const forgePodMonitor = (release = ''): Manifest & object =>
  ({
    apiVersion: OPERATOR_API,
    kind: 'PodMonitor',
    metadata: { namespace: SYSTEM_NAMESPACE, name: APP_NAME, labels: chosenBy(release) },
    spec: {
      namespaceSelector: { matchNames: [SYSTEM_NAMESPACE, AGENTS_NAMESPACE, NETWORK_NAMESPACE] },
      selector: { matchLabels: labels },
      podMetricsEndpoints: [{ port: 'ops', path: '/metrics', interval: '30s' }],
      podTargetLabels: [LABEL_APP_INSTANCE],
    },
  }) as Manifest;

export const forgePrometheusRule = (release = ''): Manifest & object =>
  ({
    apiVersion: OPERATOR_API,
    kind: 'PrometheusRule',
    metadata: { namespace: SYSTEM_NAMESPACE, name: APP_NAME, labels: chosenBy(release) },
    spec: ruleFile(),
  }) as Manifest;

/** ConfigMaps that the sidecar of Grafana's chart takes for dashboards. In lines, so that a change can be read. */
export const forgeGrafanaDashboards = (): Manifest[] =>
  Object.entries(DASHBOARDS).map(
    ([name, dashboard]) =>
      ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: {
          namespace: SYSTEM_NAMESPACE,
          name: `tributary-dashboard-${name}`,
          labels: { ...labels, grafana_dashboard: '1' },
        },
        data: { [`tributary-${name}.json`]: JSON.stringify(dashboard, null, 2) },
      }) as Manifest,
  );
