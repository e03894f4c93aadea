import { AGENTS_CHOICES, type AgentsChoice, DEFAULT_AGENTS } from './api/agents-choice.ts';
import { isOwnClusterName, OWN_CLUSTER_NAME_FORM } from './api/forms.ts';
import { type LabelSelector, readSelector } from './api/label-selector.ts';
import { DEFAULT_RESTORED_KEEP_SECONDS } from './api/virtual-node.ts';
import { WIREGUARD_CHOICES, type WireGuardChoice } from './api/tunnel.ts';
import { POD_STRATEGIES, type PodStrategy } from './api/namespace-offloading.ts';
import { DEFAULT_LOG_LEVEL, LOG_LEVELS, type LogLevel } from './lib/log.ts';
import { splitEndpoint, type Endpoint } from './lib/endpoint.ts';
import { errorMessage, TributaryError } from './lib/errors.ts';
import { proxySettings, type ProxySettings } from './lib/proxy.ts';
import { overlaps, parseAddress, parsePrefix } from './lib/prefix.ts';
import { type OptionReaders, optionReaders } from './lib/option-readers.ts';
import { MAX_NAMESERVERS } from './lib/resolv-conf.ts';

/** Everything that an agent is told from outside. It is parsed once and then never changes. */
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
  /** PEM files of the kubelet API's serving certificate; default: the agent asks for one through the certificates API. */
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
  /** Role `cluster`: each `host:port` at which peers can dial the peering endpoint; empty if they cannot. */
  advertise: readonly string[];
  /** Role `cluster`: https URL at which peers reach this API server; default: the endpoint of the `kubernetes` Service. */
  apiServer: string | undefined;
  /** Role `cluster`: where offloaded pods reach this API server; default: through the tunnel, where there is one. */
  homeApiServer: Endpoint | undefined;
  /** Roles `peer` and `cluster`: addresses of this cluster's DNS for offloaded pods; default: those of /etc/resolv.conf. */
  clusterDns: readonly string[];
  /** Roles `peer` and `cluster`: domain of this cluster; default: that of /etc/resolv.conf. */
  clusterDomain: string | undefined;
  /** Role `cluster`: image of the agents that it starts; default: those agents run inside this process (role `all`). */
  agentImage: string | undefined;
  /** Role `cluster`: whether each provider gets an agent of its own, the default, or all share one. */
  agents: AgentsChoice;
  /** Role `cluster`: PriorityClass of those agents. */
  agentPriorityClass: string | undefined;
  /** Role `cluster`: how long the tokens that peers get are valid; default 3600 s. */
  credentialSeconds: number;
  /** Role `cluster`: how long PodDisruptionBudgets may hold up pods that have to leave a virtual node; default 300 s. */
  drainSeconds: number;
  /** Roles `cluster` and `peer`: how long pods over there are kept that a restore of this cluster has lost; default 600 s. */
  restoredKeepSeconds: number;
  /** Role `cluster`: how long the TLS leaf certificates of the identity are valid; default 86400 s. */
  leafSeconds: number;
  /** Role `cluster`: port of the admission webhook; default 9443, in role `all` 0, which takes a free one. */
  webhookPort: number | undefined;
  /** Role `cluster`: whether to serve the dashboard; default off. */
  dashboard: boolean;
  /** Role `cluster`: port of the dashboard on loopback; default 8090, 0 takes a free one. */
  dashboardPort: number;
  /** Role `cluster`: namespaces with these labels are offloaded as if people had labelled each of them for it. */
  offloadNamespaces: LabelSelector | undefined;
  /** Where pods of those namespaces may run. */
  offloadStrategy: PodStrategy;
  /** Role `gateway`: interfaces for LAN discovery; if empty, all that look like a LAN. */
  lanInterfaces: readonly string[];
  /** Role `gateway`: how long an announcement on the LAN is valid. If we crash, others forget us after it. Default 120 s. */
  lanTtlSeconds: number;
  /** Name of the node that this process runs on; default $NODE_NAME. */
  nodeName: string | undefined;
  /** Role `cluster`: CIDRs of the pods of the whole cluster; default: those of its nodes. */
  podCidrs: readonly string[];
  /** Role `cluster`: CIDRs of Services; default: those of the ServiceCIDR objects. */
  serviceCidrs: readonly string[];
  /** Where the Service of the API servers is, as Kubernetes tells each pod; undefined elsewhere. */
  serviceAddress: string | undefined;
  /** Role `cluster`: the external range of the network; default 10.70.0.0/20. */
  externalCidr: string;
  /** Role `cluster`: ranges from which addresses of peers are taken; default 100.64.0.0/10. */
  viewPools: readonly string[];
  /** Role `cluster`: further ranges from which peers get no addresses. */
  reservedCidrs: readonly string[];
  /** Role `cluster`: whether every peer may be seen under its own private addresses where nothing overlaps; default off. */
  identityViews: boolean;
  /** Whether tunnels also get a preshared key. */
  presharedKeys: boolean;
  /** Roles `gateway` and `all`: whether to build tunnels; default: `gateway` does if it knows its node, `all` does not. */
  network: boolean | undefined;
  /** Role `gateway`: whose WireGuard; default `auto`. */
  wireguard: WireGuardChoice;
  /** Role `gateway`: UDP port of WireGuard; default 51820. */
  wireguardPort: number;
  /** Role `gateway`: name of the WireGuard interface; default `tributary`. */
  wireguardInterface: string;
  /** Role `gateway`: each `host:port` (UDP) at which peers dial it; default: the node's address; `none`: peers cannot. */
  tunnelEndpoints: readonly string[] | undefined;
  /** Roles `gateway` and `node`: size of the largest packet that WireGuard carries, in bytes; default 1420. */
  tunnelMtu: number;
  /** Roles `cluster`, `gateway`, `peer`: when another process takes over from one that failed; default 15, `peer` 30. */
  leaseSeconds: number | undefined;
  /** Role `gateway`: seconds between two probes of a peer; default 1. */
  probeSeconds: number;
  /** Roles `cluster` and `peer`: the way out to other clusters, from $HTTPS_PROXY and $NO_PROXY; default: directly. */
  proxies: ProxySettings | undefined;
  /** Name of this process among replicas; default $POD_NAME, then the host name. */
  identity: string;
}

export interface ConfigSource {
  /** Values of command line options by their long name. */
  options: Readonly<Record<string, string | undefined>>;
  env: Readonly<Record<string, string | undefined>>;
  hostname: string;
}

/** Long options of the agent roles, with the text of `--help` for each. */
export const AGENT_OPTIONS: Readonly<Record<string, string>> = {
  kubeconfig: 'kubeconfig of the home cluster (default: the service account of the pod)',
  context: 'context in that kubeconfig',
  'log-level': `one of ${LOG_LEVELS.join(', ')} (default ${DEFAULT_LOG_LEVEL})`,
  'ops-port': 'port of /metrics, /livez and /readyz (default 8080)',
  'virtual-node': 'peer: name of the VirtualNode to serve, or several: A,B,...',
  'node-address': 'peer, peers: address at which the home API server reaches this agent (default $POD_IP)',
  'kubelet-port': 'peer, peers: port of the kubelet API (default 10250)',
  'tls-cert-file':
    'peer, peers: serving certificate of the kubelet API (default: a CertificateSigningRequest)',
  'tls-private-key-file': 'peer, peers: its key',
  'client-ca-file': 'peer, peers: authorities of client certificates (default: the cluster’s)',
  'system-namespace':
    'cluster, gateway: where Secrets, Leases and the announcement are (default $POD_NAMESPACE)',
  'cluster-name': 'cluster: what people call this cluster, a DNS label (default "cluster")',
  'peering-port': 'cluster: port of the peering endpoint (default 7443)',
  advertise: 'cluster: HOST:PORT,... at which peers can dial the peering endpoint',
  'api-server': 'cluster: https URL at which peers reach this API server (default: its own endpoint)',
  'home-api-server':
    'cluster: HOST:PORT at which offloaded pods reach this API server (default: through the tunnel)',
  'cluster-dns':
    'cluster, peer, peers: ADDRESS,... of this cluster’s DNS for offloaded pods (default: as the agent’s own pod asks)',
  'cluster-domain': 'cluster, peer, peers: domain of this cluster (default: as the agent’s own pod searches)',
  'agent-image': 'cluster: image of the agents that it starts',
  agents: 'cluster: perPeer, a pod for each provider, or shared, one for all (default perPeer)',
  'agent-priority-class': 'cluster: PriorityClass of those agents',
  'credential-seconds': 'cluster: life of the tokens given to peers (default 3600)',
  'drain-seconds':
    'cluster: how long PodDisruptionBudgets hold up the end of a peering or of offloading (default 300)',
  'restored-keep-seconds':
    'cluster, peer, peers: life of pods over there that a restored backup lost (default 600)',
  'webhook-port': 'cluster: port of the admission webhook (default 9443; all: a free one)',
  dashboard: 'cluster: on or off: whether to serve the dashboard, on loopback only (default off)',
  'dashboard-port': 'cluster: its port (default 8090)',
  'offload-namespaces':
    'cluster: label selector (KEY=VALUE,KEY,!KEY) of namespaces that are offloaded with defaults',
  'offload-strategy':
    'cluster: where pods of those namespaces may run: LocalAndRemote, Remote or Local (default LocalAndRemote)',
  'lan-interfaces': 'gateway: INTERFACE,... for LAN discovery (default: all that look like a LAN)',
  'lan-ttl': 'gateway: seconds after which others forget us if we crash (default 120)',
  'node-name': 'gateway, node: the node that this runs on (default $NODE_NAME)',
  'pod-cidr': 'cluster: CIDR,... of all pods of this cluster (default: those of its nodes)',
  'service-cidr': 'cluster: CIDR,... of Services (default: those of the ServiceCIDR objects)',
  'external-cidr': 'cluster: range for nodes and mapped addresses as peers reach them (default 10.70.0.0/20)',
  'view-pools': 'cluster: CIDR,... from which addresses of peers are taken (default 100.64.0.0/10)',
  'reserved-cidrs': 'cluster: CIDR,... that must not be used for peers',
  'identity-views':
    'cluster: on or off: whether every peer keeps its own private addresses where nothing overlaps, unless its ForeignCluster says otherwise (default off)',
  'preshared-keys': 'cluster: on or off: whether tunnels get a preshared key besides (default off)',
  network: 'gateway, all: on or off: whether tunnels are built (default: on with --node-name; all: off)',
  wireguard:
    'gateway: whose WireGuard: auto (the kernel’s where it has it), kernel, userspace (default auto)',
  'wireguard-port': 'gateway: UDP port of WireGuard (default 51820)',
  'wireguard-interface': 'gateway, node: name of the WireGuard interface (default "tributary")',
  'tunnel-endpoint': 'gateway: HOST:PORT,... at which peers dial it, or "none" (default: the node’s address)',
  'tunnel-mtu': 'gateway, node: largest packet on WireGuard in bytes (default 1420)',
  'lease-seconds':
    'cluster, gateway, peer, peers: after so many seconds another that waits takes over (default 15, peer 30)',
  'probe-seconds':
    'gateway: seconds between probes of each peer, twice as long while its tunnel is quiet (default 1)',
  'leaf-seconds': 'cluster: life of the TLS certificates of the identity (default 86400)',
};

type Given = readonly [where: string, text: string];

/** Throws one Invalid error that names all mistakes. */
export function parseConfig({ options, env, hostname }: ConfigSource): AgentConfig {
  const mistakes: string[] = [];
  const read = optionReaders(options, mistakes);
  const { port, seconds, mtu, flag, choice, list, dialled, endpoints } = read;
  const given = (option: string, variable: string, fallback: string): Given =>
    options[option] === undefined
      ? [`$${variable}`, env[variable] ?? fallback]
      : [`--${option}`, options[option]];
  if ((options['tls-cert-file'] === undefined) !== (options['tls-private-key-file'] === undefined))
    mistakes.push('--tls-cert-file and --tls-private-key-file go together');
  const config: AgentConfig = {
    kubeconfig: options['kubeconfig'] ?? env['KUBECONFIG'],
    context: options['context'],
    logLevel: logLevel(given('log-level', 'TRIBUTARY_LOG_LEVEL', DEFAULT_LOG_LEVEL), read),
    opsPort: port('ops-port', 8080),
    virtualNode: options['virtual-node'],
    nodeAddress: options['node-address'] ?? env['POD_IP'],
    kubeletPort: port('kubelet-port', 10_250),
    tlsCertFile: options['tls-cert-file'],
    tlsPrivateKeyFile: options['tls-private-key-file'],
    clientCaFile: options['client-ca-file'],
    systemNamespace: options['system-namespace'] ?? env['POD_NAMESPACE'] ?? 'tributary-system',
    clusterName: clusterName(given('cluster-name', 'TRIBUTARY_CLUSTER_NAME', 'cluster'), mistakes),
    peeringPort: port('peering-port', 7443),
    advertise: dialled('advertise'),
    ...apiServersOf(options, mistakes),
    ...dnsOf(options, read),
    agentImage: options['agent-image'],
    agents: choice('agents', AGENTS_CHOICES, DEFAULT_AGENTS),
    agentPriorityClass: options['agent-priority-class'],
    // The API server refuses to issue tokens that live less than ten minutes.
    credentialSeconds: seconds('credential-seconds', 3600, 600),
    drainSeconds: seconds('drain-seconds', 300, 0),
    restoredKeepSeconds: seconds('restored-keep-seconds', DEFAULT_RESTORED_KEEP_SECONDS, 0),
    leafSeconds: seconds('leaf-seconds', 86_400, 20),
    webhookPort: port('webhook-port', undefined),
    dashboard: flag('dashboard', false),
    dashboardPort: port('dashboard-port', 8090),
    ...offloadOf(options, read),
    lanInterfaces: list('lan-interfaces'),
    lanTtlSeconds: seconds('lan-ttl', 120, 1),
    nodeName: options['node-name'] ?? env['NODE_NAME'],
    ...rangesOf(options, read),
    serviceAddress: env['KUBERNETES_SERVICE_HOST'],
    identityViews: flag('identity-views', false),
    presharedKeys: flag('preshared-keys', false),
    network: flag('network', undefined),
    wireguard: choice('wireguard', WIREGUARD_CHOICES, 'auto'),
    wireguardPort: port('wireguard-port', 51_820),
    wireguardInterface: options['wireguard-interface'] ?? 'tributary',
    tunnelEndpoints: endpoints('tunnel-endpoint'),
    tunnelMtu: mtu('tunnel-mtu', 1420),
    leaseSeconds: seconds('lease-seconds', undefined, 1),
    probeSeconds: seconds('probe-seconds', 1, 1),
    proxies: proxiesOf(env, read),
    identity: env['POD_NAME'] ?? hostname,
  };
  if (mistakes.length > 0) throw new TributaryError('Invalid', mistakes.join('; '));
  return Object.freeze(config);
}

/** Programs over there dial what is named here long after it was written: a mistake would be found by them. */
function apiServersOf(
  { 'api-server': api, 'home-api-server': home }: Options,
  mistakes: string[],
): Pick<AgentConfig, 'apiServer' | 'homeApiServer'> {
  if (api !== undefined && URL.parse(api)?.protocol !== 'https:')
    mistakes.push(`--api-server: "${api}" is no https URL`);
  const homeApiServer = home === undefined ? undefined : splitEndpoint(home);
  if (home !== undefined && homeApiServer === undefined)
    mistakes.push(`--home-api-server: "${home}" is not HOST:PORT or [IPv6]:PORT`);
  return { apiServer: api, homeApiServer };
}

function proxiesOf(env: ConfigSource['env'], { mistaken }: OptionReaders): ProxySettings | undefined {
  try {
    return proxySettings(env);
  } catch (error) {
    mistaken(errorMessage(error));
    return undefined;
  }
}

function offloadOf(
  options: Options,
  { choice, mistaken }: OptionReaders,
): Pick<AgentConfig, 'offloadNamespaces' | 'offloadStrategy'> {
  const { 'offload-namespaces': namespaces, 'offload-strategy': strategy } = options;
  if (strategy !== undefined && namespaces === undefined)
    mistaken('--offload-strategy needs --offload-namespaces: it says where pods of those namespaces may run');
  const wrong = (part: string): void =>
    mistaken(`--offload-namespaces: "${part}" is not KEY, !KEY, KEY=VALUE or KEY!=VALUE`);
  return {
    offloadNamespaces: namespaces === undefined ? undefined : readSelector(namespaces, wrong),
    offloadStrategy: choice('offload-strategy', POD_STRATEGIES, 'LocalAndRemote'),
  };
}

function logLevel([where, text]: Given, { mistaken }: OptionReaders): LogLevel {
  const level = LOG_LEVELS.find((known) => known === text);
  if (level === undefined) mistaken(`${where} must be one of ${LOG_LEVELS.join(', ')}, not "${text}"`);
  return level ?? DEFAULT_LOG_LEVEL;
}

function clusterName([where, text]: Given, mistakes: string[]): string {
  if (!isOwnClusterName(text)) mistakes.push(`${where}: "${text}" is not ${OWN_CLUSTER_NAME_FORM}`);
  return text;
}

type Options = ConfigSource['options'];

const DOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/u;

function dnsOf(
  options: Options,
  { list, mistaken }: OptionReaders,
): Pick<AgentConfig, 'clusterDns' | 'clusterDomain'> {
  const clusterDns = list('cluster-dns');
  const wrong = clusterDns.find((text) => parseAddress(text) === undefined);
  if (wrong !== undefined) mistaken(`--cluster-dns: "${wrong}" is no address`);
  if (clusterDns.length > MAX_NAMESERVERS)
    mistaken(`--cluster-dns names more than ${MAX_NAMESERVERS} addresses`);
  const clusterDomain = options['cluster-domain']?.replace(/\.$/u, '');
  if (clusterDomain !== undefined && !DOMAIN.test(clusterDomain))
    mistaken(`--cluster-domain: "${clusterDomain}" is no domain, such as cluster.local`);
  return { clusterDns, clusterDomain };
}

type Ranges = Pick<AgentConfig, 'podCidrs' | 'serviceCidrs' | 'externalCidr' | 'viewPools' | 'reservedCidrs'>;

function rangesOf(options: Options, { cidrs, mistaken }: OptionReaders): Ranges {
  const external = cidrs('external-cidr');
  if (external.length > 1) mistaken('--external-cidr is one CIDR');
  const ranges = {
    podCidrs: cidrs('pod-cidr'),
    serviceCidrs: cidrs('service-cidr'),
    externalCidr: external[0] ?? '10.70.0.0/20',
    viewPools: options['view-pools'] === undefined ? ['100.64.0.0/10'] : cidrs('view-pools'),
    reservedCidrs: cidrs('reserved-cidrs'),
  };
  const others = [...ranges.podCidrs, ...ranges.serviceCidrs];
  const clash = others.find((other) => overlaps(parsePrefix(ranges.externalCidr), parsePrefix(other)));
  if (clash !== undefined) {
    mistaken(`--external-cidr ${ranges.externalCidr} overlaps with ${clash}; name a range that nothing uses`);
  }
  return ranges;
}

/** The environment of the process. Nothing else reads it. */
export const processEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;
