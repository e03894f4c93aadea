import type { EventReason } from '../../api/reasons/events.ts';
import {
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  ANNOTATION_RESULT_LOGS,
  CONDITION_RECREATED,
  RECREATED_REASON,
} from '../../api/names.ts';
import { isFinished } from '../../api/pod.ts';
import { parseRecreated, type Recreated } from '../../api/recreated.ts';
import { parseResultLogs } from '../../api/result-logs.ts';
import type { Container, ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import { endedStatus } from './ended-status.ts';
import { isWaiting } from './waiting-status.ts';

/**
 * A home pod may have had several remote pods: while this cluster is away, the foreign cluster's guardian makes lost pods anew.
 * The home pod remains one pod, so its status is that of a pod whose containers were restarted.
 */

/** What the guardian says of the body; undefined for one that is still the one that we made. */
export function recreatedOf(remote: Pod): Recreated | undefined {
  const text = remote.metadata.annotations?.[ANNOTATION_RECREATED];
  if (text === undefined) return undefined;
  const recreated = parseRecreated(text);
  // What cannot be read still says that it was made anew.
  return { ...recreated, count: Math.max(1, recreated.count) };
}

/** It never runs, and only bears the result of the pod whose name it has. */
export const isResult = (remote: Pod): boolean => remote.metadata.annotations?.[ANNOTATION_RESULT] === 'true';

/** What is left of the log of a result, whose containers went with the pod that ran. Pure. */
export function keptLogOf(
  remote: Pod,
  home: Pod,
  container: string | undefined,
): { bytes: Buffer } | { gone: string } {
  const text = remote.metadata.annotations?.[ANNOTATION_RESULT_LOGS];
  const bytes = text === undefined ? undefined : parseResultLogs(text).get(container ?? '');
  return bytes === undefined ? { gone: logsGoneText(home, container) } : { bytes };
}

/** What the containers said last is in the status. */
function logsGoneText({ metadata, status }: Pod, container?: string): string {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const said = all.find(({ name }) => name === container)?.state?.terminated?.message ?? '';
  const gone = `the logs of pod ${JSON.stringify(metadata.name)} are gone: it ended while this cluster was away, was removed over there, and only its result was kept`;
  return said === '' ? gone : `${gone}; the termination message of container "${container}":\n${said}`;
}

/** The guardian has made it, and has not written the result into it yet. */
export const isUnfinishedResult = (remote: Pod): boolean => isResult(remote) && !isFinished(remote);

type StatusList = 'containerStatuses' | 'initContainerStatuses';

const MAX_INT32 = 2 ** 31 - 1;

/**
 * What the body says, with the lives of those before it: restarts are added up, and a pod has started once. The start is
 * also how this program knows that there has been a body, so it is never taken back. Pure.
 */
export function withFormerBodies(home: Pod, remote: Pod, there: PodStatus): PodStatus {
  // The start time of a pod that has only waited here is no sign of a body. It counts once the body has started, too.
  const known = isWaiting(home) && there.startTime === undefined ? undefined : home.status?.startTime;
  const startTime = known ?? there.startTime;
  const status = { ...there, ...(startTime === undefined ? {} : { startTime }) };
  if (isResult(remote) && there.containerStatuses === undefined) return withoutContainers(home, status);
  const recreated = recreatedOf(remote);
  if (recreated === undefined) return status;
  const lists = ['containerStatuses', 'initContainerStatuses'] as const;
  for (const list of lists) {
    const statuses = there[list];
    if (statuses === undefined) continue;
    status[list] = statuses.map((one) => withEnd(home, list, withRestarts(one, recreated.restarts)));
  }
  return status;
}

/** The end of a pod that is lost, of which nobody saw the containers end: as after a native eviction. */
function withoutContainers(home: Pod, status: PodStatus): PodStatus {
  const { containerStatuses, initContainerStatuses } = endedStatus(home, '');
  return {
    ...status,
    ...present({ containerStatuses, initContainerStatuses }),
  };
}

const withRestarts = (one: ContainerStatus, before: ReadonlyMap<string, number>): ContainerStatus => ({
  ...one,
  restartCount: Math.min(MAX_INT32, one.restartCount + (before.get(one.name) ?? 0)),
});

/**
 * A container that has ended for good at home may not be shown as living again: the API server refuses such a status
 * (pkg/apis/core/validation ValidateContainerStateTransition). Until it has ended anew, its first end stands.
 */
function withEnd(home: Pod, list: StatusList, one: ContainerStatus): ContainerStatus {
  const ended = home.status?.[list]?.find(({ name }) => name === one.name)?.state?.terminated;
  if (ended === undefined || one.state?.terminated !== undefined) return one;
  return mayRestart(home, list, { name: one.name, exitCode: ended.exitCode })
    ? one
    : { ...one, state: { terminated: ended } };
}

/** As the API server judges it: the rules of the container, then its own policy (KEP-5307; a sidecar's, KEP-753), then the pod's. */
function mayRestart(
  { spec }: Pod,
  list: StatusList,
  { name, exitCode }: { name: string; exitCode: number },
): boolean {
  const own = (list === 'initContainerStatuses' ? spec?.initContainers : spec?.containers)?.find(
    (container) => container.name === name,
  );
  const policy = own?.restartPolicy ?? spec?.restartPolicy ?? 'Always';
  return (
    policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0) || isRestartedByRule(own, exitCode)
  );
}

const isRestartedByRule = (own: Container | undefined, exitCode: number): boolean =>
  own?.restartPolicyRules?.some(({ exitCodes }) => {
    const isListed = exitCodes?.values?.includes(exitCode) === true;
    return exitCodes !== undefined && (exitCodes.operator === 'In' ? isListed : !isListed);
  }) === true;

/** CONDITION_RECREATED, where the body is not the first. Pure. */
export function recreatedCondition(home: Pod, remote: Pod, now: string): PodCondition | undefined {
  const recreated = recreatedOf(remote);
  if (recreated === undefined) return undefined;
  const times = recreated.count === 1 ? 'once' : `${recreated.count} times`;
  const message = `made anew by the provider while this cluster was away (${times})`;
  const before = shownIn(home.status);
  const lastTransitionTime = before?.message === message ? (before.lastTransitionTime ?? now) : now;
  return { type: CONDITION_RECREATED, status: 'True', reason: RECREATED_REASON, message, lastTransitionTime };
}

/** Worth an event: home has not shown it before. Pure. */
export function newsOfRecreation(
  home: Pod,
  status: PodStatus,
): { reason: EventReason; message: string } | undefined {
  const message = shownIn(status)?.message;
  if (message === undefined || message === shownIn(home.status)?.message) return undefined;
  return { reason: RECREATED_REASON, message };
}

const shownIn = (status: PodStatus | undefined): PodCondition | undefined =>
  status?.conditions?.find(({ type }) => type === CONDITION_RECREATED);
