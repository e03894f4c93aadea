/** All that this program measures, by the role that shows it. */
import { CONTROLLER_METRICS } from '../../kube/controller-metrics.ts';
import type { Metric } from '../../lib/metric.ts';
import { PROCESS_METRICS } from '../../lib/process-metrics.ts';
import {
  EXCHANGE_METRICS,
  REFUSED_PACKETS,
  SILENT_NODES,
  TUNNEL_METRICS,
  WIREGUARD,
} from '../../network/metrics.ts';
import { PEERING_METRICS } from '../../peering/metrics.ts';
import { VIRTUAL_NODE_METRICS } from '../../provider/metrics.ts';
import { KUBELET_METRICS } from '../../server/kubelet/metrics.ts';
import { WEBHOOK_METRICS } from '../../server/webhook/metrics.ts';

export const MEASURED_ROLES = ['cluster', 'gateway', 'node', 'peer', 'peers'] as const;
/** Role `all` shows what all of them show. */
export type MeasuredRole = (typeof MEASURED_ROLES)[number];

interface Family {
  /** What it is about. */
  title: string;
  metrics: Readonly<Record<string, Metric>>;
  roles: readonly MeasuredRole[];
}

export const FAMILIES: readonly Family[] = [
  { title: 'Peerings', metrics: PEERING_METRICS, roles: ['cluster'] },
  { title: 'Virtual nodes', metrics: VIRTUAL_NODE_METRICS, roles: ['peer', 'peers'] },
  { title: 'Tunnels', metrics: TUNNEL_METRICS, roles: ['gateway'] },
  { title: 'Nodes behind the gateway', metrics: { silent: SILENT_NODES }, roles: ['gateway'] },
  { title: 'WireGuard of the gateway', metrics: { by: WIREGUARD }, roles: ['gateway'] },
  { title: 'Packets that were dropped', metrics: { packets: REFUSED_PACKETS }, roles: ['gateway', 'node'] },
  { title: 'Networks of peers', metrics: EXCHANGE_METRICS, roles: ['cluster'] },
  { title: 'Admission webhook', metrics: WEBHOOK_METRICS, roles: ['cluster'] },
  { title: 'Kubelet API', metrics: KUBELET_METRICS, roles: ['peer', 'peers'] },
  { title: 'Controllers', metrics: CONTROLLER_METRICS, roles: MEASURED_ROLES },
  { title: 'Processes', metrics: PROCESS_METRICS, roles: MEASURED_ROLES },
];

export const METRICS: readonly Metric[] = FAMILIES.flatMap(({ metrics }) => Object.values(metrics));

export const metricsOf = (role: MeasuredRole): Metric[] =>
  FAMILIES.filter(({ roles }) => roles.includes(role)).flatMap(({ metrics }) => Object.values(metrics));
