import { timestamp } from '../../api/conditions.ts';
import { LABEL_HOME_UID } from '../../api/names.ts';
import { isEndAwaited, isFinished } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { Pod, PodStatus } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { deleteByUid } from '../../kube/write.ts';
import { hasCode } from '../../lib/errors.ts';
import type { ForgeContext } from '../forge/context.ts';
import { endedStatus } from '../forge/ended-status.ts';
import { forgeStatus } from '../forge/status.ts';
import { podKey } from '../home-pods.ts';
import type { CommonParts } from '../namespaces.ts';
import type { Tenant } from '../tenants.ts';
import type { Action } from './decide.ts';
import type { RemotePods } from './remote-pods.ts';

interface EndingOptions extends Pick<CommonParts, 'clock'> {
  home: Pick<KubeClient, 'delete'>;
  tenants: { of: (homeNamespace: string) => Pick<Tenant, 'lastState'> | undefined };
  context: (homeNamespace: string) => ForgeContext | undefined;
  remotes: Pick<RemotePods, 'live'>;
  putStatus: (home: Pod, status: PodStatus, signal: AbortSignal) => Promise<unknown>;
  /** There is a remote pod of this home pod, which the cache does not hold. */
  reclaim: (remote: Pod, homeNamespace: string, signal: AbortSignal) => Promise<ReconcileResult>;
}

/** The watch tells of a deletion that we have asked for within milliseconds; after this long it is asked for again. */
const DELETION_MS = 1_000;
const DONE: ReconcileResult = {};

/** The end of home pods that are being deleted, and whose remote pods are gone. */
export class Ending {
  readonly #options: EndingOptions;
  /**
   * By key: of which pod the final deletion was asked for, and when that was answered (monotonic ms; Infinity: not yet). Forgotten at
   * a restart, which costs a request.
   */
  readonly #asked = new Map<string, { uid: string; at: number }>();

  constructor(options: EndingOptions) {
    this.#options = options;
  }

  /** The home pod of that key is gone. */
  forget(key: string): void {
    this.#asked.delete(key);
  }

  /** One step: either its end is shown, or its deletion completes. */
  async finish(
    { home, tenantNamespace }: Extract<Action, { do: 'finish' }>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const waitMs = this.#waitMs(home);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { tenants, remotes, reclaim } = this.#options;
    const { name, namespace = '', uid } = home.metadata;
    const last = tenants.of(namespace)?.lastState(home);
    if (tenantNamespace !== undefined && !hasSaidItsEnd(last)) {
      const remote = await remotes.live(tenantNamespace, name, signal);
      if (remote?.metadata.labels?.[LABEL_HOME_UID] === uid) return reclaim(remote, namespace, signal);
    }
    const status = isFinished(home) ? undefined : this.#endOf(home, last);
    if (status !== undefined) return this.#show(home, { status, isSaid: last !== undefined }, signal);
    await this.#delete(home, signal);
    return DONE;
  }

  async #delete(home: Pod, signal: AbortSignal): Promise<void> {
    const key = podKey(home);
    const { uid } = home.metadata;
    // Noted first: the watch may tell of it before the answer comes, however long that takes.
    this.#asked.set(key, { uid, at: Infinity });
    try {
      await deleteByUid(this.#options.home, pods, home, { gracePeriodSeconds: 0, signal });
      this.#asked.set(key, { uid, at: this.#options.clock.monotonic() });
    } catch (error) {
      this.#asked.delete(key);
      throw error;
    }
  }

  /** Whether its final deletion was asked for a moment ago. */
  isAsked(home: Pod): boolean {
    return home.metadata.deletionGracePeriodSeconds === 0 && this.#waitMs(home) > 0;
  }

  /** The API server notes that nothing is waited for any more, and then lets the pod go: the first is no reason to ask again. */
  #waitMs(home: Pod): number {
    const asked = this.#asked.get(podKey(home));
    if (asked?.uid !== home.metadata.uid) return 0;
    return Math.max(0, Math.ceil(asked.at + DELETION_MS - this.#options.clock.monotonic()));
  }

  /**
   * How the pod ended, as its kubelet has said it. Where none has, an end is made up only for those who wait for one; others see that
   * the pod goes.
   */
  #endOf(home: Pod, last: Pod | undefined): PodStatus | undefined {
    const isAwaited = isEndAwaited(home);
    // Most pods just go. What is shown of one is finished only where that over there is.
    if (!isAwaited && (last === undefined || !isFinished(last))) return undefined;
    const { clock, context } = this.#options;
    const now = timestamp(clock.now());
    const given = context(home.metadata.namespace ?? '');
    const shown = last && given ? { ...home, status: forgeStatus(home, last, given, now) } : home;
    if (isFinished(shown)) return shown.status;
    return isAwaited ? endedStatus(shown, now) : undefined;
  }

  /**
   * As a kubelet, whoever waits for the end of the pod (`kubectl wait`, the Job controller) sees how it ended before the
   * object goes; the next step deletes it.
   */
  async #show(
    home: Pod,
    { status, isSaid }: { status: PodStatus; isSaid: boolean },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { putStatus, clock } = this.#options;
    try {
      await putStatus(home, status, signal);
    } catch (error) {
      // The foreign cluster may report what home cannot show; the pod ends nevertheless.
      if (!hasCode(error, 'Invalid') || !isSaid) throw error;
      await putStatus(home, endedStatus(home, timestamp(clock.now())), signal);
    }
    return DONE;
  }
}

/**
 * Its kubelet has said that its containers have ended, or somebody over there has ended it by force: it is gone, whatever the cache
 * holds, and a live read would say no more. That a cache has merely lost a pod is told by no such state.
 */
const hasSaidItsEnd = (last: Pod | undefined): boolean => last?.metadata.deletionGracePeriodSeconds === 0;
