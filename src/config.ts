import { LOG_LEVELS } from './lib/log.ts';
import type { LogLevel } from './lib/log.ts';
import { TributaryError } from './lib/errors.ts';

/** Everything an agent is told from outside, parsed once and frozen. */
export interface AgentConfig {
  /** Kubeconfig of the home cluster; default: the pod's own service account. */
  kubeconfig: string | undefined;
  context: string | undefined;
  logLevel: LogLevel;
  /** Port of metrics and health; default 8080, 0 takes a free one. */
  opsPort: number;
  /** Role `peer`: the VirtualNodes to serve, separated by commas. */
  virtualNode: string | undefined;
  /** Address at which the home API server reaches this agent; default $POD_IP. */
  nodeAddress: string | undefined;
  /** Port of the kubelet API of the first virtual node, the others follow; default 10250, 0 takes free ones. */
  kubeletPort: number;
  /** PEM files of the kubelet API's serving certificate; default: asked for through the certificates API. */
  tlsCertFile: string | undefined;
  tlsPrivateKeyFile: string | undefined;
  /** PEM file of the authorities of client certificates; default: the cluster's own. */
  clientCaFile: string | undefined;
  /** Roles `cluster` and `gateway`: where our Secrets, Leases and ConfigMaps are; default $POD_NAMESPACE, then `tributary-system`. */
  systemNamespace: string;
  /** Role `cluster`: what people call this cluster; default `cluster`. */
  clusterName: string;
  /** Role `cluster`: port of the peering endpoint; default 7443, 0 takes a free one. */
  peeringPort: number;
  /** Role `cluster`: `host:port` at which peers can dial the peering endpoint; none where they cannot. */
  advertise: readonly string[];
  /** Role `cluster`: https URL at which peers reach this API server; default: the endpoint of the `kubernetes` Service. */
  apiServer: string | undefined;
  /** Role `cluster`: `host:port` at which offloaded pods reach this API server; without it they get no token. */
  homeApiServer: string | undefined;
  /** Role `cluster`: image of the agents that it starts; default: those agents run inside this process (role `all`). */
  agentImage: string | undefined;
  /** Role `cluster`: PriorityClass of those agents. */
  agentPriorityClass: string | undefined;
  /** Role `cluster`: life of the tokens that peers are given; default 3600 s. */
  credentialSeconds: number;
  /** Role `cluster`: life of the TLS leaf certificates of the identity; default 86400 s. */
  leafSeconds: number;
  /** Role `gateway`: interfaces for LAN discovery; none: all that look like a LAN. */
  lanInterfaces: readonly string[];
  /** Role `gateway`: life of what is announced on the LAN; after a crash others forget us after so long. Default 120 s. */
  lanTtlSeconds: number;
  /** Name of this process among replicas; default $POD_NAME, then the host name. */
  identity: string;
}

export interface ConfigSource {
  /** Values of command line options by their long name. */
  options: Readonly<Record<string, string | undefined>>;
  env: Readonly<Record<string, string | undefined>>;
  hostname: string;
}

/** Long options of the agent roles, with what `--help` says of each. */
export const AGENT_OPTIONS: Readonly<Record<string, string>> = {
  kubeconfig: 'kubeconfig of the home cluster (default: the service account of the pod)',
  context: 'context in that kubeconfig',
  'log-level': `one of ${LOG_LEVELS.join(', ')} (default info)`,
  'ops-port': 'port of /metrics, /livez and /readyz (default 8080)',
  'virtual-node': 'peer: name of the VirtualNode to serve, or several: A,B,...',
  'node-address': 'peer: address at which the home API server reaches this agent (default $POD_IP)',
  'kubelet-port': 'peer: port of the kubelet API (default 10250)',
  'tls-cert-file': 'peer: serving certificate of the kubelet API (default: a CertificateSigningRequest)',
  'tls-private-key-file': 'peer: its key',
  'client-ca-file': 'peer: authorities of client certificates (default: the cluster’s)',
  'system-namespace':
    'cluster, gateway: where Secrets, Leases and the announcement are (default $POD_NAMESPACE)',
  'cluster-name': 'cluster: what people call this cluster (default "cluster")',
  'peering-port': 'cluster: port of the peering endpoint (default 7443)',
  advertise: 'cluster: HOST:PORT,... at which peers can dial the peering endpoint',
  'api-server': 'cluster: https URL at which peers reach this API server (default: its own endpoint)',
  'home-api-server': 'cluster: HOST:PORT at which offloaded pods reach this API server',
  'agent-image': 'cluster: image of the agents that it starts',
  'agent-priority-class': 'cluster: PriorityClass of those agents',
  'credential-seconds': 'cluster: life of the tokens given to peers (default 3600)',
  'lan-interfaces': 'gateway: INTERFACE,... for LAN discovery (default: all that look like a LAN)',
  'lan-ttl': 'gateway: seconds after which others forget us if we crash (default 120)',
  'leaf-seconds': 'cluster: life of the TLS certificates of the identity (default 86400)',
};

/** Reports all mistakes together. */
export function parseConfig({ options, env, hostname }: ConfigSource): AgentConfig {
  const mistakes: string[] = [];
  const port = (name: string, fallback: number): number => {
    const text = options[name];
    if (text === undefined) return fallback;
    const value = Number(text);
    if (Number.isInteger(value) && value >= 0 && value <= 65_535) return value;
    mistakes.push(`--${name} must be a port, not "${text}"`);
    return fallback;
  };
  const seconds = (name: string, fallback: number, least: number): number => {
    const text = options[name];
    if (text === undefined) return fallback;
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= 31_536_000) return value;
    mistakes.push(`--${name} must be a number of seconds from ${least} to a year, not "${text}"`);
    return fallback;
  };
  const list = (name: string): string[] => (options[name] ?? '').split(',').filter((text) => text !== '');
  const level = options['log-level'] ?? env['TRIBUTARY_LOG_LEVEL'] ?? 'info';
  const isLevel = (text: string): text is LogLevel => (LOG_LEVELS as readonly string[]).includes(text);
  if (!isLevel(level)) mistakes.push(`--log-level must be one of ${LOG_LEVELS.join(', ')}, not "${level}"`);
  if ((options['tls-cert-file'] === undefined) !== (options['tls-private-key-file'] === undefined)) {
    mistakes.push('--tls-cert-file and --tls-private-key-file go together');
  }
  const config: AgentConfig = {
    kubeconfig: options['kubeconfig'] ?? env['KUBECONFIG'],
    context: options['context'],
    logLevel: isLevel(level) ? level : 'info',
    opsPort: port('ops-port', 8080),
    virtualNode: options['virtual-node'],
    nodeAddress: options['node-address'] ?? env['POD_IP'],
    kubeletPort: port('kubelet-port', 10_250),
    tlsCertFile: options['tls-cert-file'],
    tlsPrivateKeyFile: options['tls-private-key-file'],
    clientCaFile: options['client-ca-file'],
    systemNamespace: options['system-namespace'] ?? env['POD_NAMESPACE'] ?? 'tributary-system',
    clusterName: options['cluster-name'] ?? env['TRIBUTARY_CLUSTER_NAME'] ?? 'cluster',
    peeringPort: port('peering-port', 7443),
    advertise: list('advertise'),
    apiServer: options['api-server'],
    homeApiServer: options['home-api-server'],
    agentImage: options['agent-image'],
    agentPriorityClass: options['agent-priority-class'],
    // Below ten minutes the API server refuses.
    credentialSeconds: seconds('credential-seconds', 3600, 600),
    leafSeconds: seconds('leaf-seconds', 86_400, 60),
    lanInterfaces: list('lan-interfaces'),
    lanTtlSeconds: seconds('lan-ttl', 120, 1),
    identity: env['POD_NAME'] ?? hostname,
  };
  if (mistakes.length > 0) throw new TributaryError('Invalid', mistakes.join('; '));
  return Object.freeze(config);
}

/** The environment of the process; the one place that reads it. */
export const processEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;
