/** What a lab consists of: what the caller asks for, and the same with every default filled in. */
import {
  checkClusterNames,
  checkLabName,
  checkSegment,
  defaultPodCidr,
  defaultServiceCidr,
  nodeAddress,
  nodeName,
  nodeNetns,
  nodePodCidr,
  type Underlay,
} from './network.ts';

/** `containers`: real nodes; it needs root. `kwok`: real control planes with pretended nodes; it needs nothing. */
export type Workload = 'containers' | 'kwok';

export type ControlPlaneProgram = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

export type ControlPlaneFlags = Readonly<Partial<Record<ControlPlaneProgram, readonly string[]>>>;

export interface ClusterOptions {
  readonly name: string;
  /** Default 1. */
  readonly nodes?: number;
  /** Default 10.244.0.0/16 for the first cluster, 10.245.0.0/16 for the second, ... */
  readonly podCidr?: string;
  /** Default 10.96.0.0/16 for the first cluster, 10.97.0.0/16 for the second, ... */
  readonly serviceCidr?: string;
  /** Install metrics-server. Default: with `containers`. */
  readonly metricsServer?: boolean;
  /**
   * Install a dynamic provisioner with the classes `local-path` (a folder of the node) and `shared` (a folder of all
   * nodes of the cluster: a pod may move and finds its data). Real nodes only. Default: no.
   */
  readonly storage?: boolean;
  /** Give every real node the containerd handler `hardened`, and the cluster its RuntimeClass. Default: no. */
  readonly hardenedRuntime?: boolean;
  /** Enforce NetworkPolicies between the pods of real nodes. Default: no; then they are only objects. */
  readonly networkPolicies?: boolean;
  /** Appended to the flags of the control plane, by program; the last value of a flag wins. */
  readonly flags?: ControlPlaneFlags;
  /**
   * How many players kwok has for pods; default 4. Several play some pods twice, and the second time may come late: one alone never
   * puts a status back that a test has written.
   */
  readonly podPlayers?: number;
  /**
   * Default: the lab's. `kwok` in a lab of containers: pretended nodes, but a control plane and an address of its own
   * on the underlay; a program that is to be in this cluster's network is started on its node.
   */
  readonly workload?: Workload;
  /** The network that its nodes are in, counted from 0; those of different segments meet at a router. Default 0. */
  readonly segment?: number;
}

export interface NodeSpec {
  readonly name: string;
  /** On the underlay; reachable from the root network namespace. */
  readonly address: string;
  readonly netns: string;
  readonly podCidr: string;
}

export interface ClusterSpec {
  readonly name: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly metricsServer: boolean;
  readonly storage: boolean;
  readonly hardenedRuntime: boolean;
  readonly networkPolicies: boolean;
  readonly flags: ControlPlaneFlags;
  readonly podPlayers: number;
  readonly workload: Workload;
  readonly segment: number;
  /** Empty in a lab of kwok, whose nodes are only objects; with a kwok cluster among containers, the one of its control plane. */
  readonly nodes: readonly NodeSpec[];
  /** How many nodes there are, pretended ones included. */
  readonly nodeCount: number;
}

export interface LabSpec {
  readonly name: string;
  readonly workload: Workload;
  readonly clusters: readonly ClusterSpec[];
  readonly underlay: Underlay;
  /** Sockets, namespaces and the journal; short, because socket paths are. */
  readonly runDirectory: string;
  /** Data, keys and logs; on a disk. */
  readonly dataDirectory: string;
}

/** Fills in every default; throws on names and numbers that cannot work. */
export function resolveSpec(options: {
  readonly name: string;
  readonly workload: Workload;
  readonly clusters: readonly ClusterOptions[];
  readonly underlay: Underlay;
  readonly runDirectory: string;
  readonly dataDirectory: string;
}): LabSpec {
  checkLabName(options.name);
  checkClusterNames(options.clusters.map(({ name }) => name));
  return {
    ...options,
    clusters: options.clusters.map((cluster, index) => resolveCluster(options, cluster, index)),
  };
}

function resolveCluster(
  lab: { readonly name: string; readonly workload: Workload; readonly underlay: Underlay },
  cluster: ClusterOptions,
  index: number,
): ClusterSpec {
  const nodeCount = cluster.nodes ?? 1;
  if (!Number.isInteger(nodeCount) || nodeCount < 1) {
    throw new Error(`cluster ${cluster.name}: a cluster has at least one node, not ${nodeCount}`);
  }
  const podCidr = cluster.podCidr ?? defaultPodCidr(index);
  const { workload = lab.workload, segment = 0 } = cluster;
  if (lab.workload === 'kwok' && (workload !== 'kwok' || segment !== 0)) {
    throw new Error(`cluster ${cluster.name}: a lab of kwok has no network; make it one of containers`);
  }
  checkSegment(segment);
  const real = workload === 'containers';
  const hosts = real ? nodeCount : Number(lab.workload === 'containers');
  return {
    name: cluster.name,
    podCidr,
    serviceCidr: cluster.serviceCidr ?? defaultServiceCidr(index),
    ...resolveExtras(cluster, real),
    workload,
    segment,
    nodeCount,
    nodes: Array.from({ length: hosts }, (_, node) => ({
      name: nodeName(cluster.name, node),
      address: nodeAddress({ ...lab.underlay, segment }, index, node),
      netns: nodeNetns(lab.name, nodeName(cluster.name, node)),
      podCidr: nodePodCidr(podCidr, node),
    })),
  };
}

type Extras = 'metricsServer' | 'storage' | 'hardenedRuntime' | 'networkPolicies' | 'flags' | 'podPlayers';

function resolveExtras(cluster: ClusterOptions, real: boolean): Pick<ClusterSpec, Extras> {
  const { storage = false, hardenedRuntime = false, networkPolicies = false } = cluster;
  if (!real && (storage || hardenedRuntime || networkPolicies)) {
    throw new Error(`cluster ${cluster.name}: pretended nodes have no storage, runtimes or policies`);
  }
  const { metricsServer = real, flags = {}, podPlayers = 4 } = cluster;
  return { metricsServer, storage, hardenedRuntime, networkPolicies, flags, podPlayers };
}
