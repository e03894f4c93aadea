/**
 * What a person can choose of an installation. These few values are those of `tributary install --values` and of the Helm
 * chart; both are made from this table. `''`, `[]` and 0 mean: not chosen.
 */
import { AGENTS_CHOICES, type AgentsChoice, DEFAULT_AGENTS } from '../../api/agents-choice.ts';
import { OWN_CLUSTER_NAME_FORM } from '../../api/forms.ts';
import { OWN_CLUSTER_NAME_PATTERN } from '../../api/limits.ts';
import { WIREGUARD_CHOICES, type WireGuardChoice } from '../../api/tunnel.ts';
import { prefixProblem } from '../../lib/prefix.ts';
import type { ServiceType, TrafficPolicy } from '../cluster.ts';

export interface InstallValues {
  image: string;
  clusterName: string;
  logLevel: 'debug' | 'info' | 'warn' | 'error';
  agents: AgentsChoice;
  peeringService: ServiceType;
  peeringNodePort: number;
  peeringTrafficPolicy: TrafficPolicy;
  advertise: string[];
  apiServer: string;
  homeApiServer: string;
  clusterDns: string[];
  clusterDomain: string;
  podCidrs: string[];
  serviceCidrs: string[];
  externalCidr: string;
  viewPools: string[];
  reservedCidrs: string[];
  oneProcess: boolean;
  network: boolean;
  gatewayReplicas: number;
  wireguard: WireGuardChoice;
  wireguardPort: number;
  tunnelEndpoints: string[];
  tunnelMtu: number;
  lanInterfaces: string[];
  dashboard: boolean;
  priorityClasses: boolean;
  podDisruptionBudgets: boolean;
  networkPolicies: boolean;
  serviceMonitor: boolean;
  prometheusRule: boolean;
  monitoringRelease: string;
  grafanaDashboards: boolean;
  clusterArgs: string[];
  gatewayArgs: string[];
  nodeArgs: string[];
}

export type ValueName = keyof InstallValues;

/** Names of the roles whose arguments a value becomes. */
export type InstalledRole = 'cluster' | 'gateway' | 'node';

export const INSTALLED_ROLES: readonly InstalledRole[] = ['cluster', 'gateway', 'node'];

interface FieldBase {
  /** A sentence for values.yaml and for the schema. */
  readonly what: string;
  /** The same for the command line, where a value is written otherwise. */
  readonly onLine?: string;
  /** The option of the roles that carries it, where it is an argument and nothing else. */
  readonly option?: { readonly name: string; readonly roles: readonly InstalledRole[] };
}

/** What a text must look like: for the schema of the chart, and in words for people. */
export interface Form {
  readonly pattern: string;
  /** Follows "is not". */
  readonly says: string;
  /** What a pattern cannot say; undefined: nothing is wrong. */
  readonly problem?: (text: string) => string | undefined;
}

export type Field = FieldBase &
  (
    | { readonly kind: 'text'; readonly default: string; readonly form?: Form }
    | { readonly kind: 'choice'; readonly default: string; readonly choices: readonly string[] }
    | { readonly kind: 'number'; readonly default: number; readonly least: number; readonly most: number }
    | { readonly kind: 'switch'; readonly default: boolean }
    | { readonly kind: 'list'; readonly default: readonly string[]; readonly form?: Form }
  );

/** Nothing is written where it was not chosen. */
export const orNothing = (form: Form): Form =>
  form.pattern.startsWith('^$|') ? form : { ...form, pattern: `^$|${form.pattern}` };

/** As the forges check it; absent is no name of an image. */
const IMAGE: Form = {
  pattern: '^[a-zA-Z0-9][-a-zA-Z0-9._/:@]{0,511}$',
  says: 'the name of an image, such as registry.example.org/tributary:1',
};
const NAME: Form = { pattern: OWN_CLUSTER_NAME_PATTERN, says: OWN_CLUSTER_NAME_FORM };
const CIDR: Form = {
  pattern: '^[0-9a-fA-F.:]+/[0-9]{1,3}$',
  says: 'of the form ADDRESS/BITS',
  problem: (text) => {
    const why = prefixProblem(text);
    return why && `is not a CIDR: ${why}`;
  },
};
const HOST_AND_PORT: Form = { pattern: '^.+:[0-9]{1,5}$', says: 'of the form HOST:PORT' };
const ADDRESS: Form = { pattern: '^[0-9a-fA-F.:]+$', says: 'an IP address' };
const HTTPS: Form = { pattern: '^https://.+$', says: 'of the form https://HOST[:PORT]' };
const DOMAIN: Form = {
  pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
  says: 'a DNS domain, such as cluster.local',
};
const LABEL_VALUE: Form = {
  pattern: '^[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$',
  says: 'the value of a label',
};
const TUNNEL_ENDPOINT: Form = {
  pattern: `^none$|${HOST_AND_PORT.pattern}`,
  says: 'of the form HOST:PORT, and not "none"',
};

const ofCluster = (name: string): Pick<FieldBase, 'option'> => ({ option: { name, roles: ['cluster'] } });
const ofGateway = (name: string): Pick<FieldBase, 'option'> => ({ option: { name, roles: ['gateway'] } });

export const VALUES: Readonly<Record<ValueName, Field>> = {
  image: {
    kind: 'text',
    default: '',
    form: IMAGE,
    what: 'The container image of all roles. It must be named: no image is published yet, `make image` builds one.',
  },
  clusterName: {
    kind: 'text',
    default: 'cluster',
    form: NAME,
    what: 'What people call this cluster, a DNS label. Peers see it, and name their virtual node after it.',
    ...ofCluster('cluster-name'),
  },
  logLevel: {
    kind: 'choice',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
    what: 'How much the roles log, and the agents that they start.',
    option: { name: 'log-level', roles: ['cluster', 'gateway', 'node'] },
  },
  agents: {
    kind: 'choice',
    default: DEFAULT_AGENTS,
    choices: AGENTS_CHOICES,
    what: 'A pod for the agent of each provider, or one for all. One for all needs less memory, and holds the credentials of all.',
    ...ofCluster('agents'),
  },
  peeringService: {
    kind: 'choice',
    default: 'ClusterIP',
    choices: ['ClusterIP', 'NodePort', 'LoadBalancer'],
    what: 'How peers come to the peering endpoint. With ClusterIP only this cluster dials; one of two peers must be reachable.',
  },
  peeringNodePort: {
    kind: 'number',
    default: 0,
    least: 0,
    most: 65_535,
    what: 'The node port of the peering endpoint; 0: Kubernetes chooses. Only with NodePort and LoadBalancer.',
  },
  peeringTrafficPolicy: {
    kind: 'choice',
    default: 'Auto',
    choices: ['Auto', 'Local', 'Cluster'],
    what: 'The externalTrafficPolicy of the peering endpoint. With Local it sees the addresses of those who come and keeps places for known peers, but only the node of its pod answers. Auto: Local with LoadBalancer, Cluster with NodePort.',
  },
  advertise: {
    kind: 'list',
    default: [],
    form: HOST_AND_PORT,
    what: 'HOST:PORT at which peers can dial the peering endpoint.',
    ...ofCluster('advertise'),
  },
  apiServer: {
    kind: 'text',
    default: '',
    form: orNothing(HTTPS),
    what: 'The https URL at which peers reach this API server. Without it they reach it through the peering.',
    ...ofCluster('api-server'),
  },
  homeApiServer: {
    kind: 'text',
    default: '',
    form: orNothing(HOST_AND_PORT),
    what: 'HOST:PORT at which offloaded pods reach this API server. Without it they reach it through the tunnel.',
    ...ofCluster('home-api-server'),
  },
  clusterDns: {
    kind: 'list',
    default: [],
    form: ADDRESS,
    what: 'Addresses of the DNS of this cluster. Without them: those that our own pods ask.',
    ...ofCluster('cluster-dns'),
  },
  clusterDomain: {
    kind: 'text',
    default: '',
    form: orNothing(DOMAIN),
    what: 'The DNS domain of this cluster, such as cluster.local. Without it: that in which our own pods search.',
    ...ofCluster('cluster-domain'),
  },
  podCidrs: {
    kind: 'list',
    default: [],
    form: CIDR,
    what: 'The ranges of all pods. Without them: those that the nodes name, and each new node adds a prefix for peers.',
    ...ofCluster('pod-cidr'),
  },
  serviceCidrs: {
    kind: 'list',
    default: [],
    form: CIDR,
    what: 'The ranges of Services. Without them: those of the ServiceCIDR objects (Kubernetes 1.33 and newer).',
    ...ofCluster('service-cidr'),
  },
  externalCidr: {
    kind: 'text',
    default: '',
    form: orNothing(CIDR),
    what: 'The range for nodes as peers reach them; nothing else may use it. Without it: 10.70.0.0/20.',
    ...ofCluster('external-cidr'),
  },
  viewPools: {
    kind: 'list',
    default: [],
    form: CIDR,
    what: 'Ranges of the addresses at which peers are seen here, unless a person allows a peer its own. Without them: 100.64.0.0/10.',
    ...ofCluster('view-pools'),
  },
  reservedCidrs: {
    kind: 'list',
    default: [],
    form: CIDR,
    what: 'Ranges that must not be used for peers, such as that of an office network.',
    ...ofCluster('reserved-cidrs'),
  },
  oneProcess: {
    kind: 'switch',
    default: false,
    what: 'Whether all roles are one process in one pod: for clusters with one node. agents, gatewayReplicas and podDisruptionBudgets then mean nothing.',
  },
  network: {
    kind: 'switch',
    default: true,
    what: 'Whether tunnels are built, so that pods reach each other. false: no role changes a host; LAN discovery stays.',
  },
  gatewayReplicas: {
    kind: 'number',
    default: 1,
    least: 1,
    most: 16,
    what: 'On how many nodes a gateway stands ready. One is active, another one takes over.',
  },
  wireguard: {
    kind: 'choice',
    default: 'auto',
    choices: WIREGUARD_CHOICES,
    what: "Whose WireGuard the tunnels use: the kernel's where it has it, else wireguard-go (auto), or only one of them.",
  },
  wireguardPort: {
    kind: 'number',
    default: 51_820,
    least: 1,
    most: 65_535,
    what: 'The UDP port of the tunnels on the hosts of the gateways.',
  },
  tunnelEndpoints: {
    kind: 'list',
    default: [],
    form: TUNNEL_ENDPOINT,
    what: 'HOST:PORT at which peers reach that port, or "none". Without it: the address of the node.',
    ...ofGateway('tunnel-endpoint'),
  },
  tunnelMtu: {
    kind: 'number',
    default: 0,
    least: 0,
    most: 9000,
    what: 'The largest packet in a tunnel, in bytes; 0: 1420. Smaller ones are found by probes.',
    option: { name: 'tunnel-mtu', roles: ['gateway', 'node'] },
  },
  lanInterfaces: {
    kind: 'list',
    default: [],
    what: 'Network interfaces on which clusters of the LAN are looked for. Without them: all that look like a LAN.',
    ...ofGateway('lan-interfaces'),
  },
  dashboard: {
    kind: 'switch',
    default: false,
    what: 'Whether role `cluster` serves the dashboard, on loopback of its pod. `tributary dashboard` opens it.',
    ...ofCluster('dashboard'),
  },
  priorityClasses: {
    kind: 'switch',
    default: true,
    what: 'Whether our pods get a PriorityClass of their own, above those of users and below those of the system.',
  },
  podDisruptionBudgets: {
    kind: 'switch',
    default: true,
    what: 'Whether a drain of nodes may end one gateway at a time only.',
  },
  networkPolicies: {
    kind: 'switch',
    default: true,
    what: 'Whether NetworkPolicies say who may connect to our pods, if the network of the cluster enforces them.',
  },
  serviceMonitor: {
    kind: 'switch',
    default: false,
    what: 'Whether Prometheus is told of our metrics. Needs the kinds of the Prometheus operator.',
  },
  prometheusRule: {
    kind: 'switch',
    default: false,
    what: 'Whether alert rules are added. Needs the kinds of the Prometheus operator.',
  },
  monitoringRelease: {
    kind: 'text',
    default: '',
    form: orNothing(LABEL_VALUE),
    what: 'The label `release` of what Prometheus reads, by which most Prometheus operators choose it.',
  },
  grafanaDashboards: {
    kind: 'switch',
    default: false,
    what: 'Whether two dashboards are added, as ConfigMaps that the sidecar of the chart of Grafana takes.',
  },
  clusterArgs: {
    kind: 'list',
    default: [],
    what: 'Further arguments of role `cluster`, such as [--credential-seconds, "7200"].',
    onLine: 'Further arguments of role `cluster`, such as --cluster-args=--credential-seconds,7200.',
  },
  gatewayArgs: { kind: 'list', default: [], what: 'Further arguments of role `gateway`.' },
  nodeArgs: { kind: 'list', default: [], what: 'Further arguments of role `node`.' },
};

export const VALUE_NAMES: readonly ValueName[] = Object.keys(VALUES) as ValueName[];

/** Everything as in the table. */
export const defaultValues = (): InstallValues =>
  Object.fromEntries(
    VALUE_NAMES.map((name) => {
      const { default: value } = VALUES[name];
      return [name, Array.isArray(value) ? [...(value as readonly string[])] : value];
    }),
  ) as unknown as InstallValues;

/** The arguments of a role, or of several in one process, that come from the table, in its order; what is not chosen, or switched off, is left out. */
export const argumentsFor = (
  roles: InstalledRole | readonly InstalledRole[],
  values: InstallValues,
): string[] =>
  VALUE_NAMES.flatMap((name) => {
    const { option } = VALUES[name];
    if (option === undefined || !option.roles.some((role) => [roles].flat().includes(role))) return [];
    const text = textOf(values[name]);
    return text === '' ? [] : [`--${option.name}`, text];
  });

const textOf = (value: InstallValues[ValueName]): string => {
  if (Array.isArray(value)) return value.join(',');
  if (typeof value === 'boolean') return value ? 'on' : '';
  return value === 0 ? '' : String(value);
};
