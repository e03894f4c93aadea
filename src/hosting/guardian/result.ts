/** How a pod ended: by itself or not, and what of its status is kept as its result. Pure. */
import { DISRUPTION_REASONS, OFFLOADED_REASONS } from '../../api/names.ts';
import { DISRUPTION_TARGET, isDisruptionTarget, isFinished } from '../../api/pod.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';

type AnyPod = Pick<Pod, 'metadata' | 'spec' | 'status'>;

/** Reasons of a kubelet or of the node lifecycle for which a pod fails although its program did not, or never ran. */
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

/** Whether it failed, and not because of its program. */
export function isDisrupted({ status }: AnyPod): boolean {
  if (status?.phase !== 'Failed') return false;
  const { reason = '' } = status;
  return DISRUPTIONS.has(reason) || reason.startsWith('OutOf') || isDisruptionTarget({ status });
}

/**
 * Whether it ended by itself and for good, so that its status is its result. A pod that somebody deletes is also Failed or
 * Succeeded for a moment before it is gone. That is no result, unless its containers had ended before the deletion; but where
 * the pod would not be restarted, Succeeded is a result, as for the Job controller.
 */
export function endedByItself(pod: AnyPod): boolean {
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

/** The scheduling gate of a pod that bears a result. Nobody lifts it, so the pod never runs. */
export const RESULT_GATE = 'tributary.dev/result';

/** As for the termination messages of all containers of a pod together (kubelet, MaxPodTerminationMessageLogLength). */
const MAX_TEXT = 4096;
const MAX_CONDITIONS = 32;

/** What is kept of a terminal status, bounded in size. */
export function resultOf({ status = {} }: Pick<Pod, 'status'>): PodStatus {
  const { phase, reason, message, startTime, podIP, podIPs, conditions } = status;
  const { containerStatuses, initContainerStatuses } = status;
  return defined({
    phase,
    reason: cut(reason),
    message: cut(message),
    startTime,
    podIP,
    podIPs,
    conditions: conditions?.slice(0, MAX_CONDITIONS).map(conditionOf),
    initContainerStatuses: initContainerStatuses?.map(containerOf),
    containerStatuses: containerStatuses?.map(containerOf),
  });
}

/** The result of a pod that is lost and may not be made anew; its home shows it like an eviction. */
export function lostResult(now: string): PodStatus {
  const message =
    'the pod was removed in the foreign cluster while its home was away, and may not be made anew there';
  return {
    phase: 'Failed',
    reason: OFFLOADED_REASONS.lost,
    message,
    conditions: [
      {
        type: DISRUPTION_TARGET,
        status: 'True',
        reason: DISRUPTION_REASONS.deleted,
        message,
        lastTransitionTime: now,
      },
    ],
  };
}

const conditionOf = ({ type, status, reason, message, lastTransitionTime }: PodCondition): PodCondition =>
  defined({
    type,
    status,
    reason: cut(reason),
    message: cut(message),
    lastTransitionTime,
  }) as PodCondition;

function containerOf(container: ContainerStatus): ContainerStatus {
  const { name, image, imageID, containerID, restartCount, state } = container;
  const { exitCode, signal, reason, message, startedAt, finishedAt } = state?.terminated ?? {};
  const terminated =
    exitCode === undefined
      ? undefined
      : defined({
          exitCode,
          signal,
          reason: cut(reason),
          message: cut(message),
          startedAt,
          finishedAt,
          containerID,
        });
  return defined({
    name,
    image,
    imageID,
    containerID,
    restartCount,
    ready: false,
    started: false,
    state: terminated && { terminated },
  }) as ContainerStatus;
}

const cut = (text: string | undefined): string | undefined => text?.slice(0, MAX_TEXT);

const defined = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
