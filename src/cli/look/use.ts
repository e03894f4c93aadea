/** What pods of this cluster use of what foreign clusters lend, by virtual node. */
import type { Amounts, Sums } from '../../api/amounts.ts';
import { addTo, amountOf, atLeast, formatAmount } from '../../api/amounts.ts';
import { isConditionTrue } from '../../api/conditions.ts';
import { LABEL_CLUSTER, LABEL_NODE_TYPE, LABEL_PROVIDER, NODE_TYPE_VIRTUAL } from '../../api/names.ts';
import { nodeLabelsOf, nodeNameOf } from '../../api/node-labels.ts';
import { isFinished } from '../../api/pod.ts';
import { podRequests, readableAmounts } from '../../api/pod-requests.ts';
import { nodes, pods } from '../../api/resources.ts';
import { VIRTUAL_NODE_CONDITIONS, type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { Node, Pod } from '../../api/wire.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import type { Session } from '../peering/environment.ts';

/** Lists that are asked for at once. */
const AT_ONCE = 32;

export interface NodeUse {
  virtualNode: VirtualNode;
  /** Undefined: it is not there (yet). */
  node: Node | undefined;
  /** Those that have not ended. */
  pods: readonly Pod[];
  /** What the Node says can be used. */
  lent: Amounts;
  /** Requests of those pods. */
  used: Amounts;
}

type Reading = Pick<Session, 'client' | 'signal'>;

/** Of each virtual node, in the order of their names. One list for each: API servers have an index of pods by node. */
export async function readUse({ client, signal }: Reading): Promise<NodeUse[]> {
  const labelSelector = `${LABEL_NODE_TYPE}=${NODE_TYPE_VIRTUAL}`;
  const [{ items: all }, { items: there }] = await Promise.all([
    client.list(virtualNodes, { signal }),
    client.list(nodes, { labelSelector, signal }),
  ]);
  const byName = new Map(there.map((node) => [node.metadata.name, node]));
  const sorted = all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return eachAtOnce(sorted, AT_ONCE, async (virtualNode) => {
    const nodeName = nodeNameOf(virtualNode);
    const { items } = await client.list(pods, { fieldSelector: `spec.nodeName=${nodeName}`, signal });
    return useOf(virtualNode, byName.get(nodeName), items);
  });
}

/** Pure. */
export function useOf(virtualNode: VirtualNode, node: Node | undefined, all: readonly Pod[]): NodeUse {
  const counted = all.filter((pod) => !isFinished(pod));
  const used: Sums = new Map();
  for (const pod of counted) addTo(used, podRequests(pod));
  const lent = readableAmounts(node?.status?.allocatable ?? virtualNode.spec.resources);
  return { virtualNode, node, pods: counted, lent, used };
}

export const isReadyNode = ({ virtualNode }: NodeUse): boolean =>
  isConditionTrue(virtualNode.status?.conditions, VIRTUAL_NODE_CONDITIONS.ready);

/** What the foreign cluster calls itself; of a VirtualNode made by hand its own name. */
export const clusterNameOf = (virtualNode: VirtualNode): string =>
  nodeLabelsOf(virtualNode)[LABEL_CLUSTER] ?? virtualNode.metadata.name;

/** ClusterID; undefined: the VirtualNode was made by hand. */
export const providerOf = (virtualNode: VirtualNode): string | undefined =>
  virtualNode.metadata.labels?.[LABEL_PROVIDER] ?? virtualNode.spec.labels?.[LABEL_PROVIDER];

export const freeOf = ({ lent, used }: NodeUse, resource: string): bigint =>
  atLeast(amountOf(lent, resource) - amountOf(used, resource), 0n);

const GI = 1024n ** 3n * 1000n;

/** Short, for people: memory in Gi with one decimal where it is not whole, CPU in cores likewise. */
export function shown(resource: string, milli: bigint): string {
  if (resource === 'cpu') return decimal(milli, 1000n);
  const isBytes = resource === 'memory' || resource.endsWith('storage');
  return isBytes && milli >= GI ? `${decimal(milli, GI)}Gi` : formatAmount(resource, milli);
}

function decimal(amount: bigint, unit: bigint): string {
  const tenths = (amount * 10n) / unit;
  if (tenths === 0n && amount > 0n) return '0.1';
  return tenths % 10n === 0n ? `${tenths / 10n}` : `${tenths / 10n}.${tenths % 10n}`;
}

/** `1.5 of 4`. */
export const usedOf = ({ lent, used }: NodeUse, resource: string): string =>
  `${shown(resource, amountOf(used, resource))} of ${shown(resource, amountOf(lent, resource))}`;
