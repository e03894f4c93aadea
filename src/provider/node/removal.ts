import { nodes } from '../../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { Node } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { hasCode } from '../../lib/errors.ts';

export interface RemovalOptions {
  home: KubeClient;
  virtualNodes: Informer<VirtualNode>;
  nodes: Informer<Node>;
  nodeName: string;
}

/** The VirtualNode is gone: its Node goes too, after a look that the cache is right. */
export async function removeNode(options: RemovalOptions, name: string, signal: AbortSignal): Promise<void> {
  const { home, nodeName } = options;
  try {
    await home.get(virtualNodes, { name }, { signal });
    options.virtualNodes.relist('a VirtualNode exists that the cache has lost');
    return;
  } catch (error) {
    if (!hasCode(error, 'NotFound')) throw error;
  }
  const node = options.nodes.get(nodeName);
  if (node === undefined) return;
  await home.delete(nodes, { name: nodeName }, { uid: node.metadata.uid, signal });
}
