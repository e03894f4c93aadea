/** The two dashboards. `npm run generate` writes them to deploy/grafana. */
import { type Dashboard, grafanaOf, type Panel } from './panels.ts';

const panel = (
  title: string,
  description: string,
  { kind = 'timeseries', ...rest }: Partial<Pick<Panel, 'kind'>> & Pick<Panel, 'unit' | 'queries'>,
): Panel => ({ title, description, kind, ...rest });

const PEERINGS: Dashboard = {
  uid: 'tributary-peerings',
  title: 'Tributary: peerings and nodes',
  choices: [
    { name: 'peer', metric: 'tributary_peering_connected', label: 'peer' },
    { name: 'node', metric: 'tributary_virtual_node_ready', label: 'node' },
  ],
  panels: [
    panel('Peers with a link', 'Clusters that are linked, of those that have proved their identity.', {
      kind: 'stat',
      queries: [
        ['sum(tributary_peering_connected{peer=~"$peer"})', 'linked'],
        ['count(tributary_peering_connected{peer=~"$peer"})', 'known'],
      ],
    }),
    panel('Phases', 'Peerings by direction and phase.', {
      queries: [
        ['sum by (direction, phase) (tributary_peering_phase{peer=~"$peer"})', '{{direction}} {{phase}}'],
      ],
    }),
    panel('Peers', 'The phase of each peering, now.', {
      kind: 'table',
      queries: [['tributary_peering_phase{peer=~"$peer"} == 1', '{{peer}}']],
    }),
    panel('Virtual nodes that are Ready', 'Of those that have an agent.', {
      kind: 'stat',
      queries: [
        ['sum(tributary_virtual_node_ready{node=~"$node"})', 'ready'],
        ['count(tributary_virtual_node_ready{node=~"$node"})', 'all'],
      ],
    }),
    panel('Foreign API servers', '1 while the agent reaches its foreign cluster with a valid credential.', {
      queries: [['min by (node) (tributary_virtual_node_foreign_reachable{node=~"$node"})', '{{node}}']],
    }),
    panel('Pods by phase', 'Pods that are bound to virtual nodes.', {
      queries: [['sum by (phase) (tributary_virtual_node_pods{node=~"$node"})', '{{phase}}']],
    }),
    panel('Pods that do not run, by reason', 'docs/troubleshooting.md says for each reason what to do.', {
      queries: [
        [
          'sum by (node, reason) (tributary_virtual_node_refused_pods{node=~"$node"}) > 0',
          '{{node}} {{reason}}',
        ],
      ],
    }),
    panel('CPU requested', 'Share of what the virtual node has.', {
      unit: 'percentunit',
      queries: [
        [
          'tributary_virtual_node_requested_cpu_cores{node=~"$node"} / tributary_virtual_node_allocatable_cpu_cores',
          '{{node}}',
        ],
      ],
    }),
    panel('Memory requested', 'Share of what the virtual node has.', {
      unit: 'percentunit',
      queries: [
        [
          'tributary_virtual_node_requested_memory_bytes{node=~"$node"} / tributary_virtual_node_allocatable_memory_bytes',
          '{{node}}',
        ],
      ],
    }),
    panel('Admission webhook: requests', 'By outcome.', {
      unit: 'reqps',
      queries: [
        ['sum by (outcome) (rate(tributary_webhook_requests_total[$__rate_interval]))', '{{outcome}}'],
      ],
    }),
    panel('Admission webhook: time', 'Half, and 99 of a hundred answers are faster than this.', {
      unit: 's',
      queries: [0.5, 0.99].map(
        (share) =>
          [
            `histogram_quantile(${share}, sum by (le) (rate(tributary_webhook_request_duration_seconds_bucket[$__rate_interval])))`,
            `p${share * 100}`,
          ] as const,
      ),
    }),
    panel('Prefixes of peers', 'Seen here, and refused.', {
      queries: [
        ['tributary_network_prefixes{peer=~"$peer"}', '{{peer}} seen'],
        ['tributary_network_refused_prefixes{peer=~"$peer"}', '{{peer}} refused'],
      ],
    }),
  ],
};

const TUNNELS: Dashboard = {
  uid: 'tributary-tunnels',
  title: 'Tributary: tunnels and agents',
  choices: [{ name: 'peer', metric: 'tributary_tunnel_up', label: 'peer' }],
  panels: [
    panel('Tunnels that are up', 'Probes come back through them.', {
      kind: 'stat',
      queries: [
        ['sum(tributary_tunnel_up{peer=~"$peer"})', 'up'],
        ['count(tributary_tunnel_up{peer=~"$peer"})', 'all'],
      ],
    }),
    panel('Round-trip time', 'Median of the last probes.', {
      unit: 's',
      queries: [['tributary_tunnel_rtt_seconds{peer=~"$peer"}', '{{peer}}']],
    }),
    panel('Loss', 'Share of the last probes that were lost.', {
      unit: 'percentunit',
      queries: [['tributary_tunnel_loss_ratio{peer=~"$peer"}', '{{peer}}']],
    }),
    panel('Traffic', 'Through each tunnel, both directions.', {
      unit: 'Bps',
      queries: [
        [
          'sum by (peer) (rate(tributary_tunnel_received_bytes_total{peer=~"$peer"}[$__rate_interval]))',
          '{{peer}} in',
        ],
        [
          'sum by (peer) (rate(tributary_tunnel_sent_bytes_total{peer=~"$peer"}[$__rate_interval]))',
          '{{peer}} out',
        ],
      ],
    }),
    panel('Packets dropped', 'Of a peer; and of no one peer, by reason.', {
      unit: 'pps',
      queries: [
        [
          'sum by (peer) (rate(tributary_tunnel_refused_packets_total{peer=~"$peer"}[$__rate_interval]))',
          '{{peer}}',
        ],
        ['sum by (reason) (rate(tributary_network_refused_packets_total[$__rate_interval]))', '{{reason}}'],
      ],
    }),
    panel('Largest packet', 'What goes through the tunnel; it falls where the path becomes narrower.', {
      unit: 'bytes',
      queries: [['tributary_tunnel_mtu_bytes{peer=~"$peer"}', '{{peer}}']],
    }),
    panel('Last handshake', 'WireGuard makes one every two minutes while there is traffic.', {
      unit: 's',
      queries: [['time() - tributary_tunnel_last_handshake_timestamp_seconds{peer=~"$peer"}', '{{peer}}']],
    }),
    panel('Processes', 'Roles and versions that run.', {
      kind: 'table',
      queries: [['count by (role, version) (tributary_build_info)', '{{role}} {{version}}']],
    }),
    panel('Memory', 'Resident memory of each process.', {
      unit: 'bytes',
      queries: [
        [
          'process_resident_memory_bytes * on (instance) group_left (role) tributary_build_info',
          '{{role}} {{instance}}',
        ],
      ],
    }),
    panel('CPU', 'Cores that each process uses.', {
      queries: [
        [
          'rate(process_cpu_seconds_total[$__rate_interval]) * on (instance) group_left (role) tributary_build_info',
          '{{role}} {{instance}}',
        ],
      ],
    }),
    panel('Reconciles that failed', 'By controller.', {
      queries: [
        [
          'sum by (controller) (rate(tributary_reconciles_total{outcome=~"error|terminal"}[$__rate_interval])) > 0',
          '{{controller}}',
        ],
      ],
    }),
    panel('Keys that wait', 'The ten longest queues of controllers.', {
      queries: [['topk(10, tributary_queue_depth)', '{{controller}} {{instance}}']],
    }),
    panel('Kubelet API: requests', 'By class of path.', {
      unit: 'reqps',
      queries: [['sum by (path) (rate(tributary_kubelet_requests_total[$__rate_interval]))', '{{path}}']],
    }),
    panel('Kubelet API: open streams', 'exec, attach, port-forward and followed logs.', {
      queries: [['sum by (kind) (tributary_kubelet_open_streams)', '{{kind}}']],
    }),
    panel('Warnings and errors in logs', 'Lines a second, by level and process.', {
      queries: [
        [
          'sum by (level, instance) (rate(tributary_log_lines_total{level=~"warn|error"}[$__rate_interval]))',
          '{{level}} {{instance}}',
        ],
      ],
    }),
  ],
};

export const DASHBOARD_SOURCES: Readonly<Record<string, Dashboard>> = {
  peerings: PEERINGS,
  tunnels: TUNNELS,
};

/** By name, as Grafana imports them. */
export const DASHBOARDS: Readonly<Record<string, object>> = Object.fromEntries(
  Object.entries(DASHBOARD_SOURCES).map(([name, dashboard]) => [name, grafanaOf(dashboard)]),
);
