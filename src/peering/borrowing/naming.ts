import { advertisements } from '../../api/advertisement.ts';
import { ANNOTATION_NODE_NAME, LABEL_PROVIDER } from '../../api/names.ts';
import { nodes } from '../../api/resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ignoring, TributaryError } from '../../lib/errors.ts';
import type { BorrowingCaches } from './caches.ts';
import { baseNames } from './names.ts';
import { isOf } from './virtual-node.ts';

export interface Naming {
  client: KubeClient;
  caches: Pick<BorrowingCaches, 'virtualNodes'>;
}

/**
 * What a provider's VirtualNodes are named after: the first name that nobody else has. Chosen once and kept on the
 * Advertisement, since pods are bound to Nodes by name, and a cluster may call itself something else tomorrow.
 */
export async function chooseName(
  naming: Naming,
  { clusterID, clusterName }: { clusterID: string; clusterName: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  for (const name of baseNames(clusterName, clusterID)) {
    if ((await whoHas(naming, { name, clusterID }, signal)) === undefined) return name;
  }
  throw new TributaryError(
    'Invalid',
    `every name for the virtual node of ${clusterID} is taken by another Node`,
  );
}

/** Which kind of object that is not this provider's bears the name already. */
export async function whoHas(
  { client, caches }: Naming,
  { name, clusterID }: { name: string; clusterID: string },
  signal: AbortSignal,
): Promise<'VirtualNode' | 'Node' | undefined> {
  const virtualNode = caches.virtualNodes.get(name);
  if (virtualNode !== undefined) return isOf(virtualNode, clusterID) ? undefined : 'VirtualNode';
  const node = await client.get(nodes, { name }, { signal }).catch(ignoring('NotFound'));
  return node === undefined || node.metadata.labels?.[LABEL_PROVIDER] === clusterID ? undefined : 'Node';
}

/** Null: a new one is chosen at the next look. */
export async function recordName(
  client: KubeClient,
  clusterID: string,
  name: string | null,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { annotations: { [ANNOTATION_NODE_NAME]: name } } };
  await client.patch(advertisements, { name: clusterID }, { type: 'merge', body }, { signal });
}
