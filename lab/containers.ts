/** The containers workload: a control plane and real nodes, each in namespaces of its own. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { coreDns, metricsServer } from './addons.ts';
import { binaries } from './binaries.ts';
import { DEFAULT_PORTS, startControlPlane, type ControlPlane } from './control-plane.ts';
import { Daemon } from './daemon.ts';
import { hardenedRuntimeClass } from './hardened-runtime.ts';
import { localPathImage, systemImages } from './images.ts';
import type { KubeApi } from './kube-api.ts';
import { knownDaemons } from './known-daemons.ts';
import { localPathProvisioner } from './local-path.ts';
import { Node } from './node.ts';
import type { ClusterSpec } from './spec.ts';
import { together } from './together.ts';
import type { ClusterStart, StartCluster } from './workload.ts';

const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 100;

/** Starts one cluster on the underlay; resolves when its nodes and its DNS are Ready. */
export const startContainersCluster: StartCluster = async (start) => {
  const { cluster, signal } = start;
  const nodes = cluster.nodes.map((node) => new Node({ ...start, node }));
  const images = await systemImages(start.progress);
  // Pods of DNS need these images; those of tests may come while the node is getting Ready.
  const first = [images.pause, images.coredns];
  const later = [
    images.busybox,
    ...(cluster.metricsServer ? [images.metricsServer] : []),
    ...(cluster.storage ? [await localPathImage(start.progress)] : []),
  ];

  const [controlPlane] = await together<ControlPlane | undefined>(signal, [
    async (signal) => startPlane(start, nodes, signal),
    ...nodes.map((node) => async (signal: AbortSignal) => {
      await node.startRuntime(signal);
      for (const image of first) await node.loadImage(image, signal);
      return undefined;
    }),
  ]);
  if (!controlPlane) throw new Error('unreachable');
  const { api, pki } = controlPlane;
  start.progress(`${cluster.name}: components started`);

  await together<void>(signal, [
    async () => api.apply(...coreDns(cluster.serviceCidr)),
    async () => (cluster.metricsServer ? api.apply(...(await metricsServer(pki.authority))) : undefined),
    async () => (cluster.storage ? api.apply(...localPathProvisioner(start.lab, cluster)) : undefined),
    async () => (cluster.hardenedRuntime ? api.apply(hardenedRuntimeClass()) : undefined),
    async (signal) => waitReady(start, api, signal),
    ...nodes.map((node) => async (signal: AbortSignal) => {
      for (const image of later) await node.loadImage(image, signal);
    }),
  ]);
  return controlPlane;
};

/** The control plane on the first node, and the agents of all nodes as soon as it answers. */
async function startPlane(
  start: ClusterStart,
  nodes: readonly Node[],
  signal: AbortSignal,
): Promise<ControlPlane> {
  const { cluster, journal, progress, lab } = start;
  const programs = await binaries(progress);
  const [first] = cluster.nodes;
  if (!first) throw new Error(`cluster ${cluster.name} has no nodes`);
  const controlPlane = await startControlPlane(
    {
      name: cluster.name,
      directory: join(lab.dataDirectory, cluster.name),
      programs,
      address: first.address,
      ports: DEFAULT_PORTS,
      podCidr: cluster.podCidr,
      serviceCidr: cluster.serviceCidr,
      start: (spec) => Daemon.start({ ...spec, netns: first.netns }, journal),
      flags: cluster.flags,
      progress,
    },
    signal,
  );
  await registerNodes(controlPlane.api, cluster);
  for (const node of nodes) await node.startAgents(programs, controlPlane.pki, controlPlane.server);
  return controlPlane;
}

/**
 * Makes the Nodes with their pod ranges before the kubelets start: then routes between nodes need not wait for the
 * controller manager, which takes seconds to assign the ranges.
 */
async function registerNodes(api: KubeApi, cluster: ClusterSpec): Promise<void> {
  for (const { name, podCidr } of cluster.nodes) {
    await api.apply({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
    });
  }
}

async function waitReady(start: ClusterStart, api: KubeApi, signal: AbortSignal): Promise<void> {
  const { cluster, progress } = start;
  await poll(`every node of ${cluster.name} Ready`, signal, async () => {
    checkRunning(start);
    const ready = await Promise.all(cluster.nodes.map(async ({ name }) => isNodeReady(api, name)));
    return ready.every(Boolean);
  });
  progress(`${cluster.name}: nodes Ready`);
  await poll(`CoreDNS of ${cluster.name} Ready`, signal, async () => {
    checkRunning(start);
    return isDeploymentReady(api, 'coredns');
  });
  progress(`${cluster.name}: CoreDNS Ready`);
}

/** Reports at once which component has ended, instead of a time-out after two minutes. */
function checkRunning({ cluster, journal }: ClusterStart): void {
  const owners = [cluster.name, ...cluster.nodes.map(({ name }) => name)];
  for (const daemon of knownDaemons(journal).values()) {
    const isOurs = owners.some((owner) => daemon.name.startsWith(`${owner}/`));
    if (isOurs && !daemon.id) throw daemon.failure('ended');
  }
}

interface Conditions {
  readonly status?: {
    readonly readyReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
  };
}

async function isNodeReady(api: KubeApi, name: string): Promise<boolean> {
  const node = await api.get<Conditions>(`/api/v1/nodes/${name}`);
  return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

async function isDeploymentReady(api: KubeApi, name: string): Promise<boolean> {
  const found = await api.get<Conditions>(`/apis/apps/v1/namespaces/kube-system/deployments/${name}`);
  return (found?.status?.readyReplicas ?? 0) > 0;
}

/** Waits until the metrics API of a cluster answers for all its nodes. */
export async function waitForMetrics(
  api: KubeApi,
  cluster: ClusterSpec,
  signal?: AbortSignal,
): Promise<void> {
  await poll(`metrics of ${cluster.name}`, signal, async () => {
    const response = await api.call('GET', '/apis/metrics.k8s.io/v1beta1/nodes');
    if (response.status !== 200) return false;
    const { items } = JSON.parse(response.body) as { items: unknown[] };
    return items.length >= cluster.nodes.length;
  });
}

async function poll(
  what: string,
  signal: AbortSignal | undefined,
  done: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await done())) {
    signal?.throwIfAborted();
    if (performance.now() > deadline) throw new Error(`not ${what} after ${READY_TIMEOUT_MS / 1000} s`);
    await sleep(POLL_MS, undefined, { signal });
  }
}
