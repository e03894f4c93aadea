import { LABEL_HOME_UID } from '../../api/names.ts';
import { isFinished } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deleteByUid } from '../../kube/write.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';

export interface StopOptions {
  /** No pod gets longer to end by itself. */
  graceSeconds: number;
  /** Names of nodes that are not ours: what is bound to them does not run in this cluster. */
  elsewhere: readonly string[];
}

const AT_ONCE = 16;

/**
 * Ends all pods of a peer in a namespace that run here, by deletion: no budget counts. Returns how many are left, those that are ending
 * included. To be called again until there are none.
 */
export async function stopPods(
  client: Pick<KubeClient, 'list' | 'delete'>,
  namespace: string,
  { graceSeconds, elsewhere }: StopOptions,
  signal: AbortSignal,
): Promise<number> {
  // Others are not the peer's: people of this cluster have made them.
  const { items } = await client.list(pods, { namespace, labelSelector: LABEL_HOME_UID, signal });
  const running = items.filter((pod) => !isFinished(pod) && !elsewhere.includes(pod.spec?.nodeName ?? ''));
  await eachAtOnce(
    running.filter((pod) => !isEndingWithin(pod, graceSeconds)),
    AT_ONCE,
    async (pod) => {
      const own = pod.spec?.terminationGracePeriodSeconds ?? graceSeconds;
      await deleteByUid(client, pods, pod, { gracePeriodSeconds: Math.min(own, graceSeconds), signal });
    },
  );
  return running.length;
}

const isEndingWithin = ({ metadata }: Pod, graceSeconds: number): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.deletionGracePeriodSeconds ?? 0) <= graceSeconds;
