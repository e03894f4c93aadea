import { CONDITION_OFFLOADED, OFFLOADED_REASONS } from '../../api/names.ts';
import type { OffloadedReason } from '../../api/names.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { readApplied } from './applied.ts';
import type { ForgeContext } from './context.ts';

/** Condition types that the kubelet owns: what the remote pod says of them, absence included, is what home shows. */
const KUBELET_CONDITIONS = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'ContainersReady',
  'Ready',
  'PodResizePending',
  'PodResizeInProgress',
]);

/** The home pod's status as a kubelet at home would report it, from the status over there. Pure. */
export function forgeStatus(home: Pod, remote: Pod, context: ForgeContext, now: string): PodStatus {
  const there = remote.status ?? {};
  const here = home.status ?? {};
  const generation = observedGeneration(home, remote);
  const conditions = forgeConditions(home, remote, generation, now);
  const podIPs = (there.podIPs ?? []).flatMap(({ ip }) =>
    ip === undefined ? [] : [{ ip: context.homeViewOf(ip) }],
  );
  // Absent over there means absent here: nothing of an earlier status may linger.
  const {
    conditions: _conditions,
    podIP: _podIP,
    podIPs: _podIPs,
    hostIP,
    hostIPs: _hostIPs,
    observedGeneration: _observed,
    nominatedNodeName: _nominated,
    resourceClaimStatuses: _claims,
    extendedResourceClaimStatus: _extended,
    phase,
    ...plain
  } = there;
  const unschedulable = conditions.find(({ type }) => type === CONDITION_OFFLOADED);
  return {
    ...plain,
    phase: phase ?? 'Pending',
    ...(unschedulable === undefined ? {} : withCause(unschedulable)),
    conditions,
    ...(hostIP === undefined ? {} : { hostIP: context.nodeAddress, hostIPs: [{ ip: context.nodeAddress }] }),
    ...(podIPs[0] === undefined ? {} : { podIP: podIPs[0].ip, podIPs }),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(here.qosClass === undefined ? {} : { qosClass: here.qosClass }),
    ...(here.resourceClaimStatuses === undefined
      ? {}
      : { resourceClaimStatuses: here.resourceClaimStatuses }),
  };
}

const withCause = ({ reason, message }: PodCondition): Pick<PodStatus, 'reason' | 'message'> => ({
  ...(reason === undefined ? {} : { reason }),
  ...(message === undefined ? {} : { message }),
});

/**
 * The home generation that the foreign kubelet has acted on (KEP-5067). Its own generations count other writes, so
 * the home generation last carried across stands in once the kubelet has caught up with the remote object.
 */
function observedGeneration(home: Pod, remote: Pod): number | undefined {
  const observed = remote.status?.observedGeneration;
  const before = home.status?.observedGeneration;
  if (observed === undefined) return before;
  if (observed < (remote.metadata.generation ?? 1)) return before;
  return readApplied(remote)?.generation ?? before;
}

function forgeConditions(
  home: Pod,
  remote: Pod,
  generation: number | undefined,
  now: string,
): PodCondition[] {
  const here = home.status?.conditions ?? [];
  const translated = (remote.status?.conditions ?? [])
    .filter(({ type }) => type !== 'PodScheduled' && type !== CONDITION_OFFLOADED)
    .map((condition) => atHomeGeneration(condition, generation));
  const fromRemote = new Set(translated.map(({ type }) => type));
  const others = here.filter(
    ({ type }) => !fromRemote.has(type) && !KUBELET_CONDITIONS.has(type) && type !== CONDITION_OFFLOADED,
  );
  const unscheduled = unschedulableCondition(home, remote, now);
  const all = [...others, ...translated, ...(unscheduled === undefined ? [] : [unscheduled])];
  return applyReadinessGates(home, all, now);
}

function atHomeGeneration(condition: PodCondition, generation: number | undefined): PodCondition {
  if (condition.observedGeneration === undefined) return condition;
  const { observedGeneration: _observed, ...rest } = condition;
  return generation === undefined ? rest : { ...rest, observedGeneration: generation };
}

/** The foreign scheduler found no place: the home scheduler's own PodScheduled stays true, so it is said apart. */
function unschedulableCondition(home: Pod, remote: Pod, now: string): PodCondition | undefined {
  const scheduled = remote.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  const message = `the foreign cluster cannot place the pod: ${scheduled.message ?? scheduled.reason ?? 'no reason given'}`;
  return offloadedCondition(home, OFFLOADED_REASONS.unschedulable, message, now);
}

/** CONDITION_OFFLOADED False; the transition time stays while it was already so. */
export function offloadedCondition(
  home: Pod,
  reason: OffloadedReason,
  message: string,
  now: string,
): PodCondition {
  const before = home.status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
  const lastTransitionTime = before?.status === 'False' ? (before.lastTransitionTime ?? now) : now;
  return { type: CONDITION_OFFLOADED, status: 'False', reason, message, lastTransitionTime };
}

/**
 * Readiness gates (KEP-580) are conditions that controllers at home set on the home pod; the remote pod is created
 * without the gates, and the roll-up is done here.
 */
function applyReadinessGates(home: Pod, conditions: PodCondition[], now: string): PodCondition[] {
  const closed = (home.spec?.readinessGates ?? []).filter(
    ({ conditionType }) => conditions.find(({ type }) => type === conditionType)?.status !== 'True',
  );
  if (closed.length === 0) return conditions;
  const before = home.status?.conditions?.find(({ type }) => type === 'Ready');
  return conditions.map((condition) =>
    condition.type === 'Ready' && condition.status === 'True'
      ? {
          ...condition,
          status: 'False',
          reason: 'ReadinessGatesNotReady',
          message: closed
            .map(
              ({ conditionType }) =>
                `corresponding condition of pod readiness gate "${conditionType}" does not exist or is not True.`,
            )
            .join(', '),
          lastTransitionTime: before?.status === 'False' ? (before.lastTransitionTime ?? now) : now,
        }
      : condition,
  );
}

/** The status of a home pod that cannot be offloaded now: Pending, with the cause where `kubectl get` shows it. */
export function refusedStatus(
  home: Pod,
  refusal: { reason: OffloadedReason; message: string; waiting?: Map<string, string> },
  now: string,
): PodStatus {
  const { reason, message, waiting } = refusal;
  const conditions = [
    ...(home.status?.conditions ?? []).filter(({ type }) => type !== CONDITION_OFFLOADED),
    offloadedCondition(home, reason, message, now),
  ];
  const { containerStatuses: _statuses, ...before } = home.status ?? {};
  const statuses = (home.spec?.containers ?? []).flatMap((container): ContainerStatus[] => {
    const why = waiting?.get(container.name);
    if (why === undefined) return [];
    const state = { waiting: { reason: 'CreateContainerConfigError', message: why } };
    return [
      {
        name: container.name,
        image: container.image ?? '',
        imageID: '',
        ready: false,
        restartCount: 0,
        state,
      },
    ];
  });
  return {
    ...before,
    phase: 'Pending',
    reason,
    message,
    conditions,
    ...(statuses.length > 0 ? { containerStatuses: statuses } : {}),
  };
}

/** How the kubelet itself reports a container that it can no longer find (pkg/kubelet/status, exit code 137). */
const LOST_CONTAINER = {
  exitCode: 137,
  reason: 'ContainerStatusUnknown',
  message: 'The container could not be located when the pod was terminated',
};

/**
 * The end of a home pod whose remote pod was evicted or deleted over there: what a native eviction leaves behind, so
 * that its owner replaces it.
 */
export function lostStatus(home: Pod, message: string, now: string): PodStatus {
  const before = home.status ?? {};
  const ended = (statuses: ContainerStatus[] | undefined): ContainerStatus[] | undefined =>
    statuses?.map((status) =>
      status.state?.terminated === undefined
        ? { ...status, ready: false, started: false, state: { terminated: LOST_CONTAINER } }
        : status,
    );
  const down = new Set(['Ready', 'ContainersReady']);
  const kept = (before.conditions ?? [])
    .filter(({ type }) => type !== 'DisruptionTarget' && type !== CONDITION_OFFLOADED)
    .map((condition) =>
      down.has(condition.type) && condition.status === 'True'
        ? { ...condition, status: 'False', reason: 'PodFailed', lastTransitionTime: now }
        : condition,
    );
  const containerStatuses = ended(before.containerStatuses);
  const initContainerStatuses = ended(before.initContainerStatuses);
  return {
    ...before,
    phase: 'Failed',
    reason: OFFLOADED_REASONS.lost,
    message,
    conditions: [
      ...kept,
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByForeignCluster',
        message,
        lastTransitionTime: now,
      },
    ],
    ...(containerStatuses === undefined ? {} : { containerStatuses }),
    ...(initContainerStatuses === undefined ? {} : { initContainerStatuses }),
  };
}
