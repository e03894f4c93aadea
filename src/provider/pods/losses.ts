import { timestamp } from '../../api/conditions.ts';
import type { EventReason } from '../../api/reasons/events.ts';
import { LABEL_HOME_UID, OFFLOADED_REASONS } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { Pod, PodStatus } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { deleteByUid } from '../../kube/write.ts';
import type { Logger } from '../../lib/log.ts';
import type { LossBudget } from '../../lib/loss-budget.ts';
import { lostStatus } from '../forge/ended-status.ts';
import { podKey } from '../home-pods.ts';
import type { CommonParts } from '../namespaces.ts';
import type { Action } from './decide.ts';
import type { RemotePods } from './remote-pods.ts';

export interface LossesOptions extends Pick<CommonParts, 'clock'> {
  home: Pick<KubeClient, 'delete'>;
  losses: LossBudget;
  /** For how long a loss is not to be believed yet, because this cluster has been away; see HomeReturn. */
  returnPatienceMs: () => number;
  /** Many losses are being held back: to be shown to people. */
  onBurst: (message: string) => void;
  log: Logger;
  remotes: Pick<RemotePods, 'live'>;
  tell: (home: Pod, reason: EventReason, message: string) => void;
  writeStatus: (home: Pod, status: PodStatus, signal: AbortSignal) => Promise<ReconcileResult>;
  /** There is a remote pod of this home pod, which the cache does not hold. */
  reclaim: (remote: Pod, homeNamespace: string, signal: AbortSignal) => Promise<ReconcileResult>;
}

/** What a cache does not show yet is in it a moment later. */
const CACHE_MS = 1_000;
const DONE: ReconcileResult = {};

/** Home pods whose remote pods the foreign cluster has ended, or is ending. Each loss is confirmed by a live read, and has its turn. */
export class Losses {
  readonly #options: LossesOptions;

  constructor(options: LossesOptions) {
    this.#options = options;
  }

  /** There seems to be no remote pod any more. */
  async confirm(
    { home, tenantNamespace }: Extract<Action, { do: 'confirmLost' }>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { remotes, reclaim, tell, writeStatus, clock } = this.#options;
    const { name, namespace = '', uid } = home.metadata;
    const remote = await remotes.live(tenantNamespace, name, signal);
    if (remote?.metadata.labels?.[LABEL_HOME_UID] === uid) return reclaim(remote, namespace, signal);
    const waitMs = this.#waitMs(home);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const message = 'the pod was evicted or deleted in the foreign cluster';
    tell(home, OFFLOADED_REASONS.lost, message);
    return writeStatus(home, lostStatus(home, message, timestamp(clock.now())), signal);
  }

  /** The remote pod is being ended, and not by us. */
  async letGo(
    { home, remote, gracePeriodSeconds }: Extract<Action, { do: 'letGo' }>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { namespace = '', name, uid } = remote.metadata;
    const live = await this.#options.remotes.live(namespace, name, signal);
    if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp === undefined)
      return { requeueAfterMs: CACHE_MS };
    const waitMs = this.#waitMs(home);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await deleteByUid(this.#options.home, pods, home, { gracePeriodSeconds, signal });
    const message = 'the pod is being evicted or deleted in the foreign cluster, so it ends here, too';
    this.#options.tell(home, OFFLOADED_REASONS.lost, message);
    return DONE;
  }

  /** For how long this loss is not acted on yet. */
  #waitMs(home: Pod): number {
    const { losses, returnPatienceMs, onBurst, log } = this.#options;
    const patienceMs = returnPatienceMs();
    if (patienceMs > 0) return patienceMs;
    const waitMs = losses.take(home.metadata.uid);
    if (waitMs > 0) {
      log.debug('many remote pods are gone at once: this home pod waits', { pod: podKey(home), waitMs });
      onBurst('many remote pods are gone at once: their home pods are ended slowly, one in two seconds');
    }
    return waitMs;
  }
}
