import type { Registry } from 'prom-client';

import { amountOf } from '../api/amounts.ts';
import { OFFLOADED_REASONS } from '../api/names.ts';
import { readableAmounts } from '../api/pod-requests.ts';
import type { Node } from '../api/wire.ts';
import { readGauge } from '../lib/instruments.ts';
import { EACH_NODE, type Metric } from '../lib/metric.ts';
import type { PodTally } from './pod-tally.ts';

const POD_PHASES = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const;
const labels = { node: EACH_NODE } as const;

/** What a virtual node shows of itself and of its pods; one series of each for each virtual node. */
export const VIRTUAL_NODE_METRICS: Readonly<
  Record<
    'ready' | 'reachable' | 'cpu' | 'memory' | 'requestedCpu' | 'requestedMemory',
    Metric<'gauge', 'node'>
  >
> & {
  readonly pods: Metric<'gauge', 'node' | 'phase'>;
  readonly refused: Metric<'gauge', 'node' | 'reason'>;
} = {
  ready: {
    name: 'tributary_virtual_node_ready',
    type: 'gauge',
    unit: 'state',
    help: '1 while the Node is Ready, else 0.',
    labels,
  },
  reachable: {
    name: 'tributary_virtual_node_foreign_reachable',
    type: 'gauge',
    unit: 'state',
    help: '1 while the foreign API server answers and takes the credential, else 0.',
    labels,
  },
  pods: {
    name: 'tributary_virtual_node_pods',
    type: 'gauge',
    unit: 'count',
    help: 'Pods that are bound to the virtual node, by phase.',
    labels: { ...labels, phase: POD_PHASES },
  },
  refused: {
    name: 'tributary_virtual_node_refused_pods',
    type: 'gauge',
    unit: 'count',
    help: 'Pods that do not run in the foreign cluster, by the reason in their condition tributary.dev/Offloaded.',
    labels: { ...labels, reason: Object.values(OFFLOADED_REASONS) },
  },
  cpu: {
    name: 'tributary_virtual_node_allocatable_cpu_cores',
    type: 'gauge',
    unit: 'cores',
    help: 'CPU that the virtual node has for pods.',
    labels,
  },
  memory: {
    name: 'tributary_virtual_node_allocatable_memory_bytes',
    type: 'gauge',
    unit: 'bytes',
    help: 'Memory that the virtual node has for pods.',
    labels,
  },
  requestedCpu: {
    name: 'tributary_virtual_node_requested_cpu_cores',
    type: 'gauge',
    unit: 'cores',
    help: 'CPU that the pods of the virtual node request, without those that have finished.',
    labels,
  },
  requestedMemory: {
    name: 'tributary_virtual_node_requested_memory_bytes',
    type: 'gauge',
    unit: 'bytes',
    help: 'Memory that the pods of the virtual node request, without those that have finished.',
    labels,
  },
};

/** What is asked at each scrape. */
export interface VirtualNodeFacts {
  nodeName: string;
  node: () => Node | undefined;
  pods: Pick<PodTally, 'phases' | 'refusals' | 'requested'>;
  isReachable: () => boolean;
}

export function virtualNodeMetrics(registry: Registry, facts: VirtualNodeFacts): void {
  const node = facts.nodeName;
  const show = (metric: Metric<'gauge', 'node'>, read: () => number): void =>
    readGauge(registry, metric, () => [[{ node }, read()]]);
  const allocatable = (resource: string): number =>
    unitsOf(readableAmounts(facts.node()?.status?.allocatable), resource);
  const requested = (resource: string): number => unitsOf(facts.pods.requested(), resource);
  show(VIRTUAL_NODE_METRICS.ready, () => (isReady(facts.node()) ? 1 : 0));
  show(VIRTUAL_NODE_METRICS.reachable, () => (facts.isReachable() ? 1 : 0));
  show(VIRTUAL_NODE_METRICS.cpu, () => allocatable('cpu'));
  show(VIRTUAL_NODE_METRICS.memory, () => allocatable('memory'));
  show(VIRTUAL_NODE_METRICS.requestedCpu, () => requested('cpu'));
  show(VIRTUAL_NODE_METRICS.requestedMemory, () => requested('memory'));
  readGauge(registry, VIRTUAL_NODE_METRICS.pods, () => {
    const count = facts.pods.phases();
    return POD_PHASES.map((phase) => [{ node, phase }, count.get(phase) ?? 0] as const);
  });
  readGauge(registry, VIRTUAL_NODE_METRICS.refused, () => {
    const count = facts.pods.refusals();
    return Object.values(OFFLOADED_REASONS).map(
      (reason) => [{ node, reason }, count.get(reason) ?? 0] as const,
    );
  });
}

const isReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

const unitsOf = (amounts: ReadonlyMap<string, bigint>, resource: string): number =>
  Number(amountOf(amounts, resource)) / 1000;
