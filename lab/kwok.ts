/**
 * The kwok workload: a real control plane, and nodes and pods that only pretend to run. On loopback it needs neither
 * root nor containers, and any number of clusters can run in parallel, each on its own ports. In a lab of containers
 * the control plane has a network namespace on the underlay instead.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { binaries } from './binaries.ts';
import {
  DEFAULT_PORTS,
  startControlPlane,
  type ControlPlane,
  type ControlPlaneOptions,
} from './control-plane.ts';
import { Daemon } from './daemon.ts';
import { freePorts } from './free-ports.ts';
import type { KubeApi } from './kube-api.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { stages } from './kwok-stages.ts';
import { nodeName, nodePodCidr } from './network.ts';
import type { ClusterSpec, ControlPlaneFlags, ControlPlaneProgram } from './spec.ts';
import type { ClusterStart, StartCluster } from './workload.ts';

/** Marks the nodes that kwok plays; it does not touch nodes of the product in the same cluster. */
export const kwokNodeAnnotation = { 'kwok.x-k8s.io/node': 'fake' } as const;

/** More than the 110 of a real node, and within its range of 254 addresses. */
const capacity = { cpu: '32', memory: '128Gi', 'ephemeral-storage': '512Gi', pods: '250' } as const;

const loopback = '127.0.0.1';
const readyTimeoutMs = 60_000;
const pollMs = 50;

/** A cluster is only as fast as the slowest client's own limit, and the default one is 20 requests a second. */
const unlimited = ['--kube-api-qps=2000', '--kube-api-burst=4000'];
const flags: ControlPlaneFlags = {
  etcd: ['--quota-backend-bytes=4294967296', '--snapshot-count=100000'],
  'kube-apiserver': [
    // Far above the defaults: the other programs send thousands at a time, and a refused binding costs a back-off.
    '--max-requests-inflight=3000',
    '--max-mutating-requests-inflight=1500',
    '--event-ttl=10m',
    '--profiling=false',
  ],
  'kube-controller-manager': [...unlimited, '--concurrent-gc-syncs=40', '--concurrent-namespace-syncs=20'],
  'kube-scheduler': unlimited,
};

/** Starts one cluster; resolves when its pretended nodes are Ready. */
export const startKwokCluster: StartCluster = async (start) => {
  const { cluster, lab, progress, signal } = start;
  const directory = join(lab.dataDirectory, cluster.name);
  const programs = await binaries(progress, [
    'etcd',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'kwok',
  ]);
  const place = await placeOf(start);
  const controlPlane = await startControlPlane(
    {
      name: cluster.name,
      directory,
      programs,
      ...place,
      flags: joined(place.flags ?? {}, cluster.flags),
      podCidr: cluster.podCidr,
      serviceCidr: cluster.serviceCidr,
      progress,
    },
    signal,
  );
  const kwok = await startKwok(start, controlPlane, programs.kwok);
  await controlPlane.api.apply(...kwokNodes(cluster));
  await kwok.waitFor('nodes', async () => nodesReady(controlPlane.api, cluster), {
    timeoutMs: readyTimeoutMs,
    signal,
  });
  progress(`${cluster.name}: ${cluster.nodeCount} kwok nodes Ready`);
  await defaultServiceAccount(controlPlane.api, signal);
  return controlPlane;
};

/** Those of the caller last: they win. */
function joined(ours: ControlPlaneFlags, theirs: ControlPlaneFlags): ControlPlaneFlags {
  const names = Object.keys({ ...ours, ...theirs }) as ControlPlaneProgram[];
  return Object.fromEntries(names.map((name) => [name, [...(ours[name] ?? []), ...(theirs[name] ?? [])]]));
}

type Place = Pick<ControlPlaneOptions, 'address' | 'bindAddress' | 'ports' | 'start' | 'flags'>;

/** Where the control plane runs and listens. */
async function placeOf({ cluster, journal }: ClusterStart): Promise<Place> {
  const [host] = cluster.nodes;
  if (host !== undefined) {
    const start: Place['start'] = (spec) => Daemon.start({ ...spec, netns: host.netns }, journal);
    return {
      address: host.address,
      ports: { ...DEFAULT_PORTS, controllerManager: 0, scheduler: 0 },
      start,
      flags,
    };
  }
  const [etcdClient = 0, etcdPeer = 0, apiServer = 0] = await freePorts(3);
  return {
    address: loopback,
    bindAddress: loopback,
    ports: { etcdClient, etcdPeer, apiServer, controllerManager: 0, scheduler: 0 },
    start: (spec) => Daemon.start(spec, journal),
    flags: {
      ...flags,
      // The `kubernetes` Service would need an address that is not loopback; nothing here could dial it anyway.
      'kube-apiserver': [...(flags['kube-apiserver'] ?? []), '--endpoint-reconciler-type=none'],
    },
  };
}

async function startKwok(
  { cluster, lab, journal }: ClusterStart,
  { pki, server }: ControlPlane,
  program: string,
): Promise<Daemon> {
  // It stands for all kubelets; by another name than theirs, so that it may write about all nodes.
  const organizations = ['system:masters', 'system:nodes'];
  const client = await pki.authority.issue({ commonName: 'kwok', organizations });
  const kubeconfig = pki.write(
    'kwok.kubeconfig',
    renderKubeconfig({ name: cluster.name, server, caCert: pki.authority.cert, client }),
  );
  const directory = join(lab.dataDirectory, cluster.name);
  const config = join(directory, 'kwok.yaml');
  writeFileSync(config, stringifyAll([kwokConfiguration(cluster), ...stages]));
  return Daemon.start(
    {
      name: `${cluster.name}/kwok`,
      command: [program, `--kubeconfig=${kubeconfig}`, `--config=${config}`],
      logFile: join(directory, 'log', 'kwok.log'),
      ...(cluster.nodes[0] !== undefined && { netns: cluster.nodes[0].netns }),
    },
    journal,
  );
}

/** One file of several documents; JSON is YAML. */
const stringifyAll = (documents: readonly object[]): string =>
  documents.map((document) => `---\n${JSON.stringify(document, undefined, 2)}\n`).join('');

function kwokConfiguration(cluster: ClusterSpec): object {
  return {
    apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
    kind: 'KwokConfiguration',
    options: {
      cidr: cluster.podCidr,
      nodeIP: loopback,
      manageAllNodes: false,
      manageNodesWithAnnotationSelector: Object.entries(kwokNodeAnnotation)
        .map(([key, value]) => `${key}=${value}`)
        .join(','),
      // A Lease rather than status writes says that a node lives, as with the kubelet.
      nodeLeaseDurationSeconds: 40,
      // v0.8.0 plays some pods twice when there are several players: the second patch is refused and its address
      // lost. One player alone would halve the rate; 16 lose an address on every third pod, 4 on every twentieth.
      podPlayStageParallelism: cluster.podPlayers,
      nodePlayStageParallelism: 16,
      nodeLeaseParallelism: 4,
    },
  };
}

/** The nodes of a kwok cluster, as applied before kwok brings them to life. */
export function kwokNodes(cluster: Pick<ClusterSpec, 'name' | 'nodeCount' | 'podCidr'>): KwokNode[] {
  return Array.from({ length: cluster.nodeCount }, (_, index) => {
    const name = nodeName(cluster.name, index);
    const podCidr = nodePodCidr(cluster.podCidr, index);
    return {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        annotations: { ...kwokNodeAnnotation, 'node.alpha.kubernetes.io/ttl': '0' },
        labels: {
          'kubernetes.io/arch': 'amd64',
          'kubernetes.io/hostname': name,
          'kubernetes.io/os': 'linux',
          'node.kubernetes.io/instance-type': 'kwok',
        },
      },
      spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
      status: {
        capacity,
        allocatable: capacity,
        addresses: [
          { type: 'InternalIP', address: loopback },
          { type: 'Hostname', address: name },
        ],
        nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', kubeletVersion: 'kwok' },
      },
    };
  });
}

interface KwokNode {
  readonly [field: string]: unknown;
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly annotations: Readonly<Record<string, string>>;
    readonly labels: Readonly<Record<string, string>>;
  };
}

interface NodeList {
  readonly items: readonly {
    readonly spec?: { readonly taints?: readonly unknown[] };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

/** Ready and no longer tainted `not-ready`: pods can be bound from now on. */
async function nodesReady(api: KubeApi, cluster: ClusterSpec): Promise<boolean> {
  const list = await api.get<NodeList>('/api/v1/nodes');
  const ready = (list?.items ?? []).filter(
    ({ spec, status }) =>
      (spec?.taints ?? []).length === 0 &&
      status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
  );
  return ready.length >= cluster.nodeCount;
}

/** Pods are refused until the controller manager has made it, a moment after the start. */
async function defaultServiceAccount(api: KubeApi, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + readyTimeoutMs;
  while ((await api.get('/api/v1/namespaces/default/serviceaccounts/default')) === undefined) {
    if (performance.now() > deadline) throw new Error('the controller manager makes no service accounts');
    await sleep(pollMs, undefined, { signal });
  }
}
