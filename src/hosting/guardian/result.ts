/** Results of pods: what is kept of a status, and the pod that bears it when the one that ran is gone. Pure. */
import { ANNOTATION_RECREATED, ANNOTATION_RESULT, OFFLOADED_REASONS } from '../../api/names.ts';
import { type Recreated, recreatedText } from '../../api/recreated.ts';
import type { ContainerStatus, Draft, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import type { Entry } from './entry.ts';

/** Nobody opens it: the pod is never scheduled. */
export const RESULT_GATE = 'tributary.dev/result';

/** As long as the termination messages of all containers of a pod together (kubelet, MaxPodTerminationMessageLogLength). */
const MAX_TEXT = 4096;
const MAX_CONDITIONS = 32;

/** What of a terminal status is worth keeping, bounded in size. */
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

/** For a pod that is lost and may not be made anew: the end that its home shows, as of a native eviction. */
export function lostResult(now: string): PodStatus {
  const message =
    'the pod was removed in the foreign cluster while its home was away, and may not be made anew there';
  return {
    phase: 'Failed',
    reason: OFFLOADED_REASONS.lost,
    message,
    conditions: [
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByForeignCluster',
        message,
        lastTransitionTime: now,
      },
    ],
  };
}

/** The lost pod anew. */
export function recreatedPod(entry: Entry, namespace: string, recreated: Recreated): Draft<Pod> {
  return podOf(entry, namespace, { [ANNOTATION_RECREATED]: recreatedText(recreated) });
}

/** Bears a result and never runs. Its status is written after it. */
export function resultPod(entry: Entry, namespace: string): Draft<Pod> {
  const pod = podOf(entry, namespace, { [ANNOTATION_RESULT]: 'true' });
  return { ...pod, spec: { ...entry.spec, schedulingGates: [{ name: RESULT_GATE }] } };
}

const podOf = (
  { name, labels, annotations, spec }: Entry,
  namespace: string,
  more: Record<string, string>,
): Draft<Pod> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels, annotations: { ...annotations, ...more } },
  spec,
});

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
