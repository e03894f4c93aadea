import type { EventReason } from '../../api/reasons/events.ts';
import {
  CONDITION_OFFLOADED,
  DISRUPTION_REASONS,
  type DisruptionReason,
  OFFLOADED_REASONS,
} from '../../api/names.ts';
import { DISRUPTION_TARGET, isFinished } from '../../api/pod.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { hasRun } from './waiting-status.ts';

/** How the kubelet itself reports a container that it can no longer find (pkg/kubelet/status, exit code 137). */
const LOST_CONTAINER = {
  exitCode: 137,
  reason: 'ContainerStatusUnknown',
  message: 'The container could not be located when the pod was terminated',
};
const DOWN: ReadonlySet<string> = new Set(['Ready', 'ContainersReady']);

/** It says why. */
export type EndedStatus = PodStatus & { reason: EventReason; message: string };

/**
 * The status of a home pod whose remote pod was evicted or deleted over there: as after a native eviction, so that its owner
 * replaces it.
 */
export function lostStatus(home: Pod, message: string, now: string): PodStatus {
  return disrupted(home, { reason: OFFLOADED_REASONS.lost, message, by: DISRUPTION_REASONS.deleted }, now);
}

/**
 * The status of a home pod for which the foreign cluster has no room: as a kubelet ends a pod that it cannot admit
 * (pkg/kubelet/lifecycle, InsufficientResourceError).
 */
export const outOfRoomStatus = (home: Pod, resource: string, message: string, now: string): EndedStatus =>
  disrupted(home, { reason: `OutOf${resource}`, message, by: DISRUPTION_REASONS.refused }, now);

/** `by` says why the pod is not at fault (KEP-3329): a podFailurePolicy may ignore such failures. */
function disrupted(
  home: Pod,
  { reason, message, by }: { reason: EventReason; message: string; by: DisruptionReason },
  now: string,
): EndedStatus {
  const ended = endedStatus(home, now);
  const condition = {
    type: DISRUPTION_TARGET,
    status: 'True',
    reason: by,
    message,
    lastTransitionTime: now,
  };
  const kept = (ended.conditions ?? []).filter(({ type }) => type !== DISRUPTION_TARGET);
  return { ...ended, reason, message, conditions: [...kept, condition] };
}

export const ENDED_THERE = 'the foreign cluster is ending the pod';

/** What this program says of a pod that the foreign cluster ends; what eviction and preemption there say of it travels as it is. */
export const isOurDisruption = ({ type, reason }: PodCondition): boolean =>
  type === DISRUPTION_TARGET && reason === DISRUPTION_REASONS.deleted;

/** Whether somebody over there ends the pod, and nobody at home has asked for that. */
export const isEndedThere = (home: Pod, remote: Pod): boolean =>
  remote.metadata.deletionTimestamp !== undefined &&
  home.metadata.deletionTimestamp === undefined &&
  hasRun(home) &&
  !isFinished(home) &&
  !isFinished(remote);

/** DisruptionTarget of such a pod. What has been said stays while the pod goes, and not longer. */
export function disruption(home: Pod, remote: Pod, now: string): PodCondition | undefined {
  const before = home.status?.conditions?.find(isOurDisruption);
  if (before !== undefined) return remote.metadata.deletionTimestamp === undefined ? undefined : before;
  if (!isEndedThere(home, remote)) return undefined;
  const reason = DISRUPTION_REASONS.deleted;
  return { type: DISRUPTION_TARGET, status: 'True', reason, message: ENDED_THERE, lastTransitionTime: now };
}

/**
 * Failed, with nothing running: as a kubelet writes it for each pod that it has ended, before it deletes the object.
 * Controllers that count pods by finalizers, such as the Job controller, wait for it.
 */
export function endedStatus(home: Pod, now: string): PodStatus {
  const { reason: _reason, message: _message, ...before } = home.status ?? {};
  const conditions = (before.conditions ?? [])
    .filter(({ type }) => type !== CONDITION_OFFLOADED)
    .map((condition) =>
      DOWN.has(condition.type) && condition.status === 'True'
        ? { ...condition, status: 'False', reason: 'PodFailed', lastTransitionTime: now }
        : condition,
    );
  const containerStatuses = withoutRunning(before.containerStatuses);
  const initContainerStatuses = withoutRunning(before.initContainerStatuses);
  const ephemeralContainerStatuses = withoutRunning(before.ephemeralContainerStatuses);
  return {
    ...before,
    phase: 'Failed',
    conditions,
    ...(containerStatuses && { containerStatuses }),
    ...(initContainerStatuses && { initContainerStatuses }),
    ...(ephemeralContainerStatuses && { ephemeralContainerStatuses }),
  };
}

const withoutRunning = (statuses: ContainerStatus[] | undefined): ContainerStatus[] | undefined =>
  statuses?.map((status) =>
    status.state?.terminated === undefined
      ? { ...status, ready: false, started: false, state: { terminated: LOST_CONTAINER } }
      : status,
  );
