/** Whether a pod ended by itself, or was ended. Pure. */
import { isFinished } from '../../api/pod.ts';
import type { Pod, PodStatus } from '../../api/wire.ts';

type AnyPod = Pick<Pod, 'metadata' | 'spec' | 'status'>;

/** Reasons of a kubelet or of the node lifecycle for which a pod fails that did nothing wrong, or never ran. */
const DISRUPTIONS: ReadonlySet<string> = new Set([
  'Evicted',
  'Preempting',
  'NodeShutdown',
  'Shutdown',
  'Terminated',
  'NodeLost',
  'NodeAffinity',
  'NodeUnreachable',
  'UnexpectedAdmissionError',
]);

/** It failed, and its program is not to blame. */
export function isDisrupted({ status }: AnyPod): boolean {
  if (status?.phase !== 'Failed') return false;
  const { reason = '' } = status;
  return DISRUPTIONS.has(reason) || reason.startsWith('OutOf') || isMarked({ status });
}

export const DISRUPTION_TARGET = 'DisruptionTarget';

/** By whoever evicts, preempts or gives up pods in Kubernetes (KEP-3329); a home that deletes one leaves no such mark. */
export const isMarked = ({ status }: Pick<Pod, 'status'>): boolean =>
  (status?.conditions ?? []).some((it) => it.type === DISRUPTION_TARGET && it.status === 'True');

/**
 * It is finished, and for good: what it ended with is its result. A pod that somebody deletes is Failed or Succeeded, too, for
 * a moment before it is gone; that is no result, unless its containers had ended before. Where a pod would not be
 * restarted, an exit code of 0 is one all the same: the Job controller takes it for that.
 */
export function isOwnEnd(pod: AnyPod): boolean {
  if (!isFinished(pod) || isDisrupted(pod)) return false;
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
  if (deletionTimestamp === undefined) return true;
  if (pod.status?.phase === 'Succeeded' && (pod.spec?.restartPolicy ?? 'Always') !== 'Always') return true;
  const asked = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  const ends = endsOf(pod.status);
  return ends.length > 0 && ends.every((end) => end < asked);
}

/** When each container ended, milliseconds since the epoch; NaN where that is not known. */
const endsOf = (status: PodStatus | undefined): number[] =>
  (status?.containerStatuses ?? []).map(({ state }) => Date.parse(state?.terminated?.finishedAt ?? ''));
