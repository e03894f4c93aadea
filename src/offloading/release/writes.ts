import type { LabelSelector } from '../../api/label-selector.ts';
import type { HeldOff, NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { namespaceOffloadings } from '../../api/namespace-offloading.ts';
import { pods } from '../../api/resources.ts';
import type { Pod, PodCondition } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ignoring } from '../../lib/errors.ts';
import { refusalOf } from './decide.ts';
import type { Remake } from './remake.ts';

type AnyPod = Pick<Pod, 'metadata' | 'status'>;

/** Single writes of a release. Each names the UID and the version that it was decided for; else it fails with Conflict. */
export class ReleaseWrites {
  readonly #client: KubeClient;
  readonly #remake: Remake;

  constructor({ client, remake }: { client: KubeClient; remake: Remake }) {
    this.#client = client;
    this.#remake = remake;
  }

  /** This key of the status only: the rest is the offloading controller's. */
  async holdOff(
    { metadata }: NamespaceOffloading,
    heldOff: HeldOff[],
    signal: AbortSignal,
  ): Promise<NamespaceOffloading> {
    const { uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion }, status: { heldOff } };
    const options = { subresource: 'status', signal };
    return this.#client.patch(namespaceOffloadings, metadata, { type: 'merge', body }, options);
  }

  /** Conditions are merged by type. */
  async mark({ metadata }: AnyPod, condition: PodCondition, signal: AbortSignal): Promise<Pod> {
    const { uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
    const options = { subresource: 'status', signal };
    return this.#client.patch(pods, metadata, { type: 'strategic', body }, options);
  }

  /**
   * With the version: a pod whose start has been reported is not deleted. Between its start over there and that report
   * lies one write of the agent; who starts in it is ended, with its grace. False: somebody has deleted it before.
   */
  async delete({ metadata }: AnyPod, signal: AbortSignal): Promise<boolean> {
    const { uid, resourceVersion } = metadata;
    const deleting = this.#client.delete(pods, metadata, { uid, resourceVersion, signal });
    return (await deleting.then(() => true).catch(ignoring('NotFound'))) ?? false;
  }

  /** The rest is done by the journal; see Remake. False: that was begun before, or is not needed any more. */
  async remakeElsewhere(
    { metadata }: AnyPod,
    where: { virtualNode: string; clusterSelector: LabelSelector | undefined; signal: AbortSignal },
  ): Promise<boolean> {
    const { virtualNode: from, clusterSelector, signal } = where;
    // The cache holds no specs.
    const pod = await this.#client.get(pods, metadata, { signal }).catch(ignoring('NotFound'));
    if (pod?.metadata.uid !== metadata.uid || refusalOf(pod) === undefined) return false;
    const selector = clusterSelector && { clusterSelector };
    return this.#remake.begin(pod, { from, unlessStarted: true, ...selector, signal });
  }
}
