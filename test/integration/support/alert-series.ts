/**
 * For each alert: series with which it fires, and similar ones with which it does not. One value a minute, looked at after an
 * hour, in the notation of promtool: `1x59` is 1 sixty times, `0+6x60` grows by 6 each time.
 */
export interface AlertSeries {
  fires: Readonly<Record<string, string>>;
  quiet: Readonly<Record<string, string>>;
}

const phase = (name: string): string =>
  `tributary_peering_phase{peer="milan",direction="outgoing",phase="${name}"}`;
const ready = 'tributary_virtual_node_ready{node="milan"}';
const reachable = 'tributary_virtual_node_foreign_reachable{node="milan"}';
const refused = 'tributary_virtual_node_refused_pods{node="milan",reason="Forbidden"}';
const requested = 'tributary_virtual_node_requested_cpu_cores{node="milan"}';
const allocatable = 'tributary_virtual_node_allocatable_cpu_cores{node="milan"}';
const up = 'tributary_tunnel_up{peer="milan"}';
const loss = 'tributary_tunnel_loss_ratio{peer="milan"}';
const silent = 'tributary_network_silent_nodes';
const dropped = 'tributary_tunnel_refused_packets_total{peer="milan"}';
const expiry = 'tributary_kubelet_certificate_expiry_timestamp_seconds';
const outcome = (name: string): string => `tributary_webhook_requests_total{outcome="${name}"}`;
const bucket = (le: string): string => `tributary_webhook_request_duration_seconds_bucket{le="${le}"}`;
const reconciles = (name: string): string =>
  `tributary_reconciles_total{controller="pods",outcome="${name}"}`;
const depth = 'tributary_queue_depth{controller="pods"}';
const build = (instance: string): string =>
  `tributary_build_info{instance="${instance}",role="cluster",version="1"}`;
const started = (instance: string): string => `process_start_time_seconds{instance="${instance}"}`;

export const ALERT_SERIES: Readonly<Record<string, AlertSeries>> = {
  TributaryClusterRoleAbsent: { fires: { [reachable]: '1x60' }, quiet: { [build('a')]: '1x60' } },
  TributaryPeerNotConnected: {
    fires: { 'tributary_peering_connected{peer="milan"}': '0x60', [phase('Established')]: '1x60' },
    quiet: { 'tributary_peering_connected{peer="milan"}': '0x60', [phase('Pending')]: '1x60' },
  },
  TributaryPeeringDenied: { fires: { [phase('Denied')]: '1x60' }, quiet: { [phase('Established')]: '1x60' } },
  // Three minutes are not five.
  TributaryForeignClusterUnreachable: {
    fires: { [reachable]: '0x60' },
    quiet: { [reachable]: '1x57 0x2' },
  },
  // Another alert says that.
  TributaryVirtualNodeNotReady: {
    fires: { [ready]: '0x60', [reachable]: '1x60' },
    quiet: { [ready]: '0x60', [reachable]: '0x60' },
  },
  TributaryPodsRefused: { fires: { [refused]: '2x60' }, quiet: { [refused]: '0x60' } },
  TributaryVirtualNodeFull: {
    fires: { [requested]: '95x60', [allocatable]: '100x60' },
    quiet: { [requested]: '50x60', [allocatable]: '100x60' },
  },
  // The clock of promtool begins at 0.
  TributaryKubeletCertificateExpires: { fires: { [expiry]: '4000x60' }, quiet: { [expiry]: '200000x60' } },
  TributaryTunnelDown: { fires: { [up]: '0x60' }, quiet: { [up]: '1x59 0' } },
  TributaryTunnelLossy: {
    fires: { [loss]: '0.2x60', [up]: '1x60' },
    quiet: { [loss]: '0.01x60', [up]: '1x60' },
  },
  TributaryNodesSilent: { fires: { [silent]: '2x60' }, quiet: { [silent]: '1x57 0x2' } },
  TributaryTunnelRefusesPackets: { fires: { [dropped]: '0+300x60' }, quiet: { [dropped]: '0+6x60' } },
  TributaryWebhookFails: {
    fires: { [outcome('error')]: '0+1x60' },
    quiet: { [outcome('denied')]: '0+60x60', [outcome('error')]: '3x60' },
  },
  TributaryWebhookSlow: {
    fires: { [bucket('0.2')]: '0+50x60', [bucket('1')]: '0+100x60', [bucket('+Inf')]: '0+100x60' },
    quiet: { [bucket('0.2')]: '0+100x60', [bucket('1')]: '0+100x60', [bucket('+Inf')]: '0+100x60' },
  },
  // Conflicts are everyday life.
  TributaryReconcilesFail: {
    fires: { [reconciles('error')]: '0+60x60' },
    quiet: { [reconciles('conflict')]: '0+60x60', [reconciles('error')]: '0+1x60' },
  },
  TributaryQueueStuck: { fires: { [depth]: '200x60' }, quiet: { [depth]: '200x50 0x10' } },
  // Programs of others may start as often as they like.
  TributaryRestarts: {
    fires: { [started('a')]: '0+1x60', [build('a')]: '1x60' },
    quiet: { [started('a')]: '5x60', [build('a')]: '1x60', [started('b')]: '0+1x60' },
  },
};

/** A file for `promtool test rules`. */
export const promtoolTests = (ruleFile: string): object => ({
  rule_files: [ruleFile],
  evaluation_interval: '1m',
  tests: Object.entries(ALERT_SERIES).flatMap(([alert, series]) =>
    (['fires', 'quiet'] as const).map((which) => ({
      name: `${alert} ${which}`,
      interval: '1m',
      input_series: Object.entries(series[which]).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        {
          expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
          eval_time: '60m',
          exp_samples: which === 'fires' ? [{ labels: '{}', value: 1 }] : [],
        },
      ],
    })),
  ),
});
