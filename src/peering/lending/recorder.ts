import { FOREIGN_CLUSTER_REASONS } from '../../api/foreign-cluster.ts';
import {
  PEERING_REQUEST_REASONS,
  peeringRequests,
  type PeeringRequest,
  type PeeringRequestStatus,
} from '../../api/peering-request.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';

/** Use alone is written at most this often: it moves with every pod. */
const USE_INTERVAL_MS = 10_000;

/** Worth an event of their own. */
const { exceeded, namespaceTaken, stuck, kindRefused, rightsMissing, heedless } = PEERING_REQUEST_REASONS;
const PROBLEMS = [exceeded, namespaceTaken, stuck, kindRefused, rightsMissing, heedless];

interface StatusRecorderOptions extends ClusterBasics {
  events: EventRecorder;
}

/** Writes what a PeeringRequest shows, and says it in events and in the log where it is news. */
export class StatusRecorder {
  readonly #options: StatusRecorderOptions;
  /** When use was written last, by peer; monotonic. */
  readonly #useWrittenAt = new Map<string, number>();

  constructor(options: StatusRecorderOptions) {
    this.#options = options;
  }

  /** Returns how long to wait, in milliseconds, where nothing but use has moved and was written just before. */
  async write(
    request: PeeringRequest,
    next: PeeringRequestStatus,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { status = {} } = request;
    if (!deepEqual(status.used, next.used)) {
      const { name } = request.metadata;
      const nowMs = this.#options.clock.monotonic();
      const waitMs = (this.#useWrittenAt.get(name) ?? -Infinity) + USE_INTERVAL_MS - nowMs;
      if (waitMs > 0 && deepEqual({ ...status, used: next.used }, next)) return waitMs;
      this.#useWrittenAt.set(name, nowMs);
    }
    await replaceStatusIfDiffers(this.#options.client, peeringRequests, request, { status: next, signal });
    this.#tellPhase(request, next);
    this.#tellProblems(request, next);
    return undefined;
  }

  forget(clusterID: string): void {
    this.#useWrittenAt.delete(clusterID);
  }

  #tellPhase(request: PeeringRequest, next: PeeringRequestStatus): void {
    const { phase, reason = '', message = '' } = next;
    const { events, log } = this.#options;
    const { status: before } = request;
    if (phase === undefined || (phase === before?.phase && reason === before.reason)) return;
    const { endsSoon } = FOREIGN_CLUSTER_REASONS;
    const isBad = phase === 'Denied' || phase === 'Ending' || reason === endsSoon;
    const what = reason === endsSoon ? reason : phase;
    events.event(request, isBad ? 'Warning' : 'Normal', what, `${reason}: ${message}`);
    log.info('peering moved', { peer: request.metadata.name, phase, reason });
  }

  #tellProblems(request: PeeringRequest, { conditions = [] }: PeeringRequestStatus): void {
    const before = request.status?.conditions ?? [];
    for (const { type, reason, message } of conditions) {
      const isNews = !before.some((it) => it.type === type && it.reason === reason);
      const problem = PROBLEMS.find((one) => one === reason);
      if (isNews && problem !== undefined) {
        this.#options.events.event(request, 'Warning', problem, message);
      }
    }
  }
}
