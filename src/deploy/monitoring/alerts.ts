/**
 * When somebody should look, as data. The rules for Prometheus and their documentation (docs/reference/alerts.md) are made
 * from it, and a test refuses metrics, labels and values that there are not.
 */
export interface Alert {
  /** `critical`: pods or packets do not get through. `warning`: look today. `info`: good to know. */
  readonly severity: 'critical' | 'warning' | 'info';
  readonly expr: string;
  /** How long it must be so, as Prometheus writes durations. */
  readonly for: string;
  /** One line, with labels in `{{ $labels.x }}`. */
  readonly summary: string;
  /** What it means for users. */
  readonly means: string;
  /** What to do, step by step. */
  readonly steps: readonly string[];
}

/** By the failure policies of our webhooks (src/offloading/admission/webhook.ts, src/hosting/guests). */
const REFUSED_WITHOUT_WEBHOOK =
  'new pods of namespaces with the strategy `Remote` are refused, and so is what peers make or change here. ' +
  'Other pods are let in as they are, without what would send them abroad.';

const connected = 'tributary_peering_connected';
const established = 'max by (peer) (tributary_peering_phase{phase="Established"})';

const PEERINGS: Readonly<Record<string, Alert>> = {
  TributaryClusterRoleAbsent: {
    severity: 'critical',
    expr: 'absent(tributary_build_info{role=~"cluster|all"})',
    for: '5m',
    summary: 'no process with the role cluster shows metrics',
    means:
      'Pods that run abroad run on, but nothing is agreed on, renewed or taken back. ' +
      `While the webhook is away, ${REFUSED_WITHOUT_WEBHOOK}`,
    steps: [
      '`kubectl -n tributary-system get pods` shows whether the role runs, `kubectl -n tributary-system logs deployment/tributary-cluster` why it does not.',
      'If it runs, Prometheus does not find it: look at the targets of the PodMonitor `tributary`.',
    ],
  },
  TributaryPeerNotConnected: {
    severity: 'warning',
    expr: `${connected} == 0 and on (peer) ${established} == 1`,
    for: '5m',
    summary: 'there is no link to the peer {{ $labels.peer }}',
    means:
      'Pods run on, and tokens hold until they expire (an hour, if nobody has chosen otherwise). Offers, keys and addresses are not renewed.',
    steps: [
      '`kubectl get foreignclusters` and the condition `Connected` of the one named: its message says what was dialled and what came back.',
      'Ask the other side whether its role `cluster` runs and its endpoint is reachable from here.',
    ],
  },
  TributaryPeeringDenied: {
    severity: 'info',
    expr: 'tributary_peering_phase{phase="Denied"} == 1',
    for: '15m',
    summary: 'the {{ $labels.direction }} peering with {{ $labels.peer }} is denied',
    means: 'One side wants a peering, and the other one has said no.',
    steps: [
      '`kubectl describe foreigncluster` names the policy or the reason; see peering.md for each of them.',
    ],
  },
};

const VIRTUAL_NODES: Readonly<Record<string, Alert>> = {
  TributaryForeignClusterUnreachable: {
    severity: 'critical',
    expr: 'tributary_virtual_node_foreign_reachable == 0',
    for: '5m',
    summary: 'the agent of {{ $labels.node }} does not reach its foreign API server',
    means:
      'Pods over there run on, looked after by the guardian. Home sees their last state, and nothing new is sent there.',
    steps: [
      '`kubectl describe virtualnode`: the conditions `ForeignClusterReachable` and `CredentialsValid` say what is wrong.',
      'A refused credential: `tributary peerings` shows whether the peering is still established; `tributary renew` asks for a new token.',
      'No answer: try the address that the message names from a node of this cluster.',
    ],
  },
  TributaryVirtualNodeNotReady: {
    severity: 'warning',
    expr: 'tributary_virtual_node_ready == 0 and on (node) tributary_virtual_node_foreign_reachable == 1',
    for: '10m',
    summary: 'the virtual node {{ $labels.node }} is not Ready, although its foreign cluster answers',
    means: 'The scheduler sends no pods there, and after a while the pods that are there are evicted.',
    steps: [
      '`kubectl describe node` and `kubectl describe virtualnode`: the message of `Ready` names what is missing.',
    ],
  },
  TributaryPodsRefused: {
    severity: 'warning',
    expr: 'sum by (node, reason) (tributary_virtual_node_refused_pods) > 0',
    for: '15m',
    summary: '{{ $value }} pods on {{ $labels.node }} do not run: {{ $labels.reason }}',
    means:
      'Pods are bound to the virtual node, and the foreign cluster or the agent has a reason not to run them.',
    steps: [
      '`kubectl describe pod` of one of them: the condition `tributary.dev/Offloaded` quotes who refused it.',
      'troubleshooting.md says for each reason what to do.',
    ],
  },
  TributaryVirtualNodeFull: {
    severity: 'info',
    expr: `(tributary_virtual_node_requested_cpu_cores / tributary_virtual_node_allocatable_cpu_cores > 0.9)
  or (tributary_virtual_node_requested_memory_bytes / tributary_virtual_node_allocatable_memory_bytes > 0.9)`,
    for: '30m',
    summary: 'the virtual node {{ $labels.node }} is nearly full',
    means:
      'More than nine tenths of its CPU or memory are requested. Further pods will wait or go elsewhere.',
    steps: ['Ask the provider for a larger share, accept another offer, or lower requests.'],
  },
  TributaryKubeletCertificateExpires: {
    severity: 'warning',
    expr: 'tributary_kubelet_certificate_expiry_timestamp_seconds - time() < 86400',
    for: '15m',
    summary: 'the serving certificate of a virtual node ends within a day',
    means: 'Without a new one, `kubectl logs`, `exec` and `top` fail for pods of the virtual node.',
    steps: [
      '`kubectl get csr`: whether its request waits for approval. The role `cluster` approves those of the agents that it has started.',
      'For an agent set up by hand: `kubectl certificate approve`.',
    ],
  },
};

const TUNNELS: Readonly<Record<string, Alert>> = {
  TributaryTunnelDown: {
    severity: 'critical',
    expr: 'tributary_tunnel_up == 0',
    for: '2m',
    summary: 'no probe comes back through the tunnel to {{ $labels.peer }}',
    means:
      'Pods of the two clusters do not reach each other. Pods whose Services need the tunnel are not Ready.',
    steps: [
      '`kubectl describe tunnel`: the conditions say whether there was a handshake, and with which endpoint.',
      'No handshake: UDP to the endpoint is blocked, or one side has another key. Handshake, but no probes: the MTU or a firewall behind the gateway.',
    ],
  },
  TributaryTunnelLossy: {
    severity: 'warning',
    expr: 'tributary_tunnel_loss_ratio > 0.05 and on (peer) tributary_tunnel_up == 1',
    for: '10m',
    summary: 'the tunnel to {{ $labels.peer }} loses {{ $value | humanizePercentage }} of its probes',
    means: 'Connections between the clusters are slow.',
    steps: [
      'Compare with the loss on the path of the endpoints themselves: `kubectl get tunnels -o wide` names them.',
    ],
  },
  TributaryNodesSilent: {
    severity: 'critical',
    expr: 'tributary_network_silent_nodes > 0',
    for: '5m',
    summary: '{{ $value }} nodes do not answer the gateway through VXLAN',
    means: 'Pods on these nodes reach no peer, and no peer reaches them, though the tunnels are well.',
    steps: [
      '`tributary doctor` names the nodes, and between which addresses UDP must be let through.',
      'Is the DaemonSet of the role `node` ready on them?',
    ],
  },
  TributaryTunnelRefusesPackets: {
    severity: 'info',
    expr: 'sum by (peer) (rate(tributary_tunnel_refused_packets_total[5m])) > 1',
    for: '15m',
    summary: 'packets of {{ $labels.peer }} are dropped at the gateway',
    means: 'The peer sends from addresses, or to addresses, that it has not been given.',
    steps: [
      'network.md says what a peer may reach. A program that has an old address in its memory may be the cause.',
    ],
  },
};

const PROCESSES: Readonly<Record<string, Alert>> = {
  TributaryWebhookFails: {
    severity: 'critical',
    expr: 'sum(rate(tributary_webhook_requests_total{outcome="error"}[5m])) > 0',
    for: '5m',
    summary: 'the admission webhook answers with errors',
    means: `Where it fails, ${REFUSED_WITHOUT_WEBHOOK}`,
    steps: [
      '`kubectl -n tributary-system logs deployment/tributary-cluster` names the request and the error.',
    ],
  },
  TributaryWebhookSlow: {
    severity: 'warning',
    expr: 'histogram_quantile(0.99, sum by (le) (rate(tributary_webhook_request_duration_seconds_bucket[5m]))) > 0.2',
    for: '15m',
    summary: 'one of a hundred answers of the admission webhook takes more than 0.2 s',
    means: 'Every pod of an offloaded namespace is made later by as much.',
    steps: ['Give the role `cluster` more CPU; look at `process_cpu_seconds_total` of its process.'],
  },
  TributaryReconcilesFail: {
    severity: 'warning',
    expr: 'sum by (controller) (rate(tributary_reconciles_total{outcome=~"error|terminal"}[10m])) > 0.1',
    for: '15m',
    summary: 'the controller {{ $labels.controller }} fails again and again',
    means: 'Something is not brought into the state in which it should be.',
    steps: [
      'The log of the process names each key once with its error. [Logs](../monitoring.md#logs) says how to see more.',
    ],
  },
  TributaryQueueStuck: {
    severity: 'warning',
    expr: 'min_over_time(tributary_queue_depth[15m]) > 100',
    for: '5m',
    summary: 'the controller {{ $labels.controller }} does not keep up',
    means: 'Changes reach the other cluster late.',
    steps: [
      'Compare CPU time and `tributary_reconcile_duration_seconds` of the process: it is slow, or an API server is.',
    ],
  },
  TributaryRestarts: {
    severity: 'warning',
    expr: 'changes(process_start_time_seconds[30m]) > 3 and on (instance) tributary_build_info',
    for: '0m',
    summary: 'a process of Tributary on {{ $labels.instance }} starts again and again',
    means: 'Each start takes seconds, in which its part of the work waits.',
    steps: [
      '`kubectl logs --previous` of its pod says why it ended; `kubectl describe pod` whether it was killed for its memory.',
    ],
  },
};

export const ALERT_GROUPS: Readonly<Record<string, Readonly<Record<string, Alert>>>> = {
  'tributary-peerings': PEERINGS,
  'tributary-virtual-nodes': VIRTUAL_NODES,
  'tributary-tunnels': TUNNELS,
  'tributary-processes': PROCESSES,
};

export const ALERTS: ReadonlyMap<string, Alert> = new Map(
  Object.values(ALERT_GROUPS).flatMap((group) => Object.entries(group)),
);

/** The section of docs/reference/alerts.md, as GitHub makes anchors of headings. */
const runbookOf = (alert: string): string => `docs/reference/alerts.md#${alert.toLowerCase()}`;

interface RuleFile {
  groups: { name: string; rules: object[] }[];
}

/** What Prometheus reads, as a file or inside of a PrometheusRule. */
export const ruleFile = (): RuleFile => ({
  groups: Object.entries(ALERT_GROUPS).map(([name, alerts]) => ({
    name,
    rules: Object.entries(alerts).map(([alert, { expr, for: time, severity, summary, means }]) => ({
      alert,
      expr,
      for: time,
      labels: { severity },
      annotations: { summary, description: means, runbook_url: runbookOf(alert) },
    })),
  })),
});
