import { ANNOTATION_APPLIED, LABEL_HOME_UID, LABEL_MANAGED_BY } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deleteByUid } from '../../kube/write.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import { appliedOf } from '../forge/applied.ts';
import type { PodChange } from '../forge/change.ts';
import type { Tenant } from '../tenants.ts';

/** Single requests about remote pods; each names the UID it means, so none can hit a successor of that name. */
export class RemotePods {
  readonly #foreign: KubeClient;

  constructor(foreign: KubeClient) {
    this.#foreign = foreign;
  }

  /** As it is now, past all caches. */
  async live(namespace: string, name: string, signal: AbortSignal): Promise<Pod | undefined> {
    return this.#foreign.get(pods, { namespace, name }, { signal }).catch(ignoring('NotFound'));
  }

  /** Why the foreign cluster refuses the change; undefined when it was made, or when its pod is gone. */
  async refusalOf(remote: Pod, change: PodChange, signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.#patch(remote, change, signal);
    } catch (error) {
      // The pod may be gone, but an older API server has no such subresource: the next change tells.
      if (hasCode(error, 'NotFound'))
        return change.subresource === undefined ? undefined : errorMessage(error);
      if (!hasCode(error, 'Forbidden', 'Invalid')) throw error;
      return errorMessage(error);
    }
    return undefined;
  }

  async delete(remote: Pod, gracePeriodSeconds: number | undefined, signal: AbortSignal): Promise<void> {
    const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    await deleteByUid(this.#foreign, pods, remote, { signal, ...grace });
  }

  /** A pod of ours that the cache does not hold: either the cache is wrong, or its label was taken off. */
  async reclaim(remote: Pod, { virtualNode, pods: cache }: Tenant, signal: AbortSignal): Promise<void> {
    if (remote.metadata.labels?.[LABEL_MANAGED_BY] === virtualNode) {
      cache.relist('a pod exists that the cache does not hold');
      return;
    }
    const patch = { metadata: { labels: { [LABEL_MANAGED_BY]: virtualNode } } };
    await this.#patch(remote, { subresource: undefined, what: 'labels', patch }, signal);
  }

  /** From now on it is the remote pod of this home pod; see isBodyFor. */
  async adopt(remote: Pod, home: Pod, signal: AbortSignal): Promise<void> {
    const patch = {
      metadata: {
        labels: { [LABEL_HOME_UID]: home.metadata.uid },
        annotations: { [ANNOTATION_APPLIED]: JSON.stringify(appliedOf(home)) },
      },
    };
    await this.#patch(remote, { subresource: undefined, what: 'labels', patch }, signal);
  }

  async #patch(remote: Pod, { patch, subresource }: PodChange, signal: AbortSignal): Promise<void> {
    const { metadata, ...rest } = patch as { metadata?: object };
    // The UID makes a patch meant for an earlier pod of that name fail with Conflict.
    const body = { ...rest, metadata: { ...metadata, uid: remote.metadata.uid } };
    await this.#foreign.patch(
      pods,
      remote.metadata,
      { type: 'strategic', body },
      { metadataOnly: true, signal, ...(subresource === undefined ? {} : { subresource }) },
    );
  }
}
