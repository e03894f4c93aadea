import {
  addTo,
  amountOf,
  type Amounts,
  atLeast,
  BASIC_RESOURCES,
  formatAmounts,
  isOfNodes,
  parseNamed,
  raiseTo,
  STORAGE,
  type Sums,
} from '../../api/amounts.ts';
import { MAX_RESOURCES } from '../../api/limits.ts';
import { readableAmounts } from '../../api/pod-requests.ts';
import type { SharingPolicy, SharingPolicySpec } from '../../api/sharing-policy.ts';
import { tolerates } from '../../api/taints.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { Stock, StockNode } from './stock.ts';

/** What a peer was promised by its contract. */
export interface Promised {
  resources: ResourceList;
  /** Of the policy that it was promised under; without it any node may have to keep the promise. */
  nodeSelector?: Readonly<Record<string, string>>;
}

/** By ClusterID. */
export type Promises = ReadonlyMap<string, Promised>;

/**
 * Nodes that lend under this policy. Tainted nodes that its tolerations do not open are not counted on, although the pods
 * of peers may bring tolerations of their own.
 */
export function lendingNodes(
  { nodes }: Stock,
  { nodeSelector, tolerations = [] }: SharingPolicySpec,
): StockNode[] {
  return nodes.filter(
    (node) =>
      node.lends &&
      isSelected(node, nodeSelector) &&
      node.taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint))),
  );
}

function isSelected({ labels }: StockNode, selector: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(selector).every(
    ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
  );
}

/** Resources that these nodes count and the policy does not hold back; the basic ones first, always. */
export function lendableResources(
  nodes: readonly StockNode[],
  { withhold = [] }: SharingPolicySpec,
): string[] {
  const counted = [...countedBy(nodes)].filter(isOfNodes);
  const names = new Set([...BASIC_RESOURCES, ...counted.toSorted()]);
  // One place is kept for storage.
  return [...names].filter((name) => !withhold.includes(name)).slice(0, MAX_RESOURCES - 1);
}

/** Names of the resources that any of these nodes counts. */
function countedBy(nodes: readonly StockNode[]): Set<string> {
  const names = new Set<string>();
  for (const { allocatable } of nodes) for (const name of allocatable.keys()) names.add(name);
  return names;
}

/** What is free on one node for this peer: its own pods count as free, those of others do not. */
export function freeOnNode({ allocatable, own, peers }: StockNode, consumer: string | undefined): Sums {
  const taken: Sums = new Map(own);
  for (const [peer, amounts] of peers) if (peer !== consumer) addTo(taken, amounts);
  return minus(allocatable, taken);
}

/**
 * What is free on all these nodes for this peer. What another peer was promised is taken whether or not its pods run
 * already; so those are not counted again, except for what exceeds the promise. A promise that other nodes keep takes
 * nothing of these; then only pods that run here count. Of what a device was promised, its own nodes keep a part.
 */
export function freeInAll(
  nodes: readonly StockNode[],
  { used, devices }: Pick<Stock, 'used' | 'devices'>,
  { consumer, promised }: { consumer: string | undefined; promised: Promises },
): Sums {
  const free: Sums = new Map();
  for (const { allocatable, own } of nodes) addTo(free, minus(allocatable, own));
  const others = new Set([...promised.keys(), ...used.keys()]);
  if (consumer !== undefined) others.delete(consumer);
  const taken: Sums = new Map();
  for (const peer of others) {
    const { resources = {}, nodeSelector } = promised.get(peer) ?? {};
    if (nodes.some((node) => isSelected(node, nodeSelector))) {
      const reserved = parseNamed(`promise to ${peer}`, resources);
      raiseTo(reserved, used.get(peer) ?? new Map());
      addTo(taken, minus(reserved, sumOf(devices.get(peer))));
    } else {
      for (const { peers } of nodes) addTo(taken, peers.get(peer) ?? []);
    }
  }
  return minus(free, taken);
}

const sumOf = (nodes: readonly StockNode[] = []): Sums => {
  const sum: Sums = new Map();
  for (const { allocatable } of nodes) addTo(sum, allocatable);
  return sum;
};

/** Never below zero. */
function minus(amounts: Amounts, taken: Amounts): Sums {
  return new Map(
    [...amounts].map(([resource, milli]) => [resource, atLeast(milli - amountOf(taken, resource), 0n)]),
  );
}

/** The most that a policy lends to one peer. Throws Invalid for quantities that cannot be read. */
export const limitsOf = ({ metadata, spec }: SharingPolicy): Sums =>
  parseNamed(`limits of SharingPolicy ${metadata.name}`, spec.limits ?? {});

/**
 * What a new peer would find free, before the share is taken: for the status of the policy. Throws Invalid where there
 * would be no offer, since quantities of the policy cannot be read.
 */
export function freeOf(stock: Stock, policy: SharingPolicy, promised: Promises): ResourceList {
  limitsOf(policy);
  const { spec } = policy;
  const nodes = lendingNodes(stock, spec);
  const free = freeInAll(nodes, stock, { consumer: undefined, promised });
  return formatAmounts(new Map(lendableResources(nodes, spec).map((name) => [name, amountOf(free, name)])));
}

/** Names of what this policy lends, whether or not any of it is free now. Pure. */
export function lentNames(stock: Stock, { spec }: SharingPolicy): string[] {
  const nodes = [...lendingNodes(stock, spec), ...[...stock.devices.values()].flat()];
  const { limits = {}, withhold = [] } = spec;
  const hasStorage = amountOf(readableAmounts(limits), STORAGE) > 0n && !withhold.includes(STORAGE);
  return [...lendableResources(nodes, spec), ...(hasStorage ? [STORAGE] : [])];
}
