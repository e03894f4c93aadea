import { pods } from '../../api/resources.ts';
import type { Namespace } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deleteByUid } from '../../kube/write.ts';
import type { Ages } from '../../lib/ages.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';

/**
 * How long pods of an ending tenant may take to end, whatever grace they have asked for: a peer that asks for a day would keep
 * the namespace, and what runs in it, for a day after it has lost every right.
 */
const OVERDUE_AFTER_MS = 60_000;
/** How often an ending namespace is looked at. */
const LOOK_MS = 20_000;
const AT_ONCE = 16;

/** After how many milliseconds to look again at namespaces, of which some may be ending. */
export const lookAtEndingMs = (namespaces: readonly Namespace[]): number =>
  namespaces.some(({ metadata }) => metadata.deletionTimestamp !== undefined) ? LOOK_MS : Infinity;

/**
 * Ends by force the pods that are left in a tenant namespace that has been ending for too long. Disruption budgets do not count.
 * A pod that an admission webhook refuses to delete does not keep the others: its error is thrown after the last.
 */
export async function endOverduePods(
  { client, ages }: { client: KubeClient; ages: Ages },
  { metadata: { name: namespace, uid, deletionTimestamp = '' } }: Namespace,
  signal: AbortSignal,
): Promise<void> {
  if (!(ages.ageMs(uid, Date.parse(deletionTimestamp)) >= OVERDUE_AFTER_MS)) return;
  const { items } = await client.list(pods, { namespace, metadataOnly: true, signal });
  await eachAtOnce(items, AT_ONCE, async (pod) =>
    deleteByUid(client, pods, pod, { gracePeriodSeconds: 0, signal }),
  );
}
