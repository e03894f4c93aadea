import {
  CONDITION_OFFLOADED,
  CONDITION_RECREATED,
  CONDITION_STATUS_CUT,
  DISRUPTION_REASONS,
  isPlacingReason,
  OFFLOADED_REASONS,
  STATUS_CUT_REASON,
} from '../../api/names.ts';
import type { OffloadedReason } from '../../api/names.ts';
import { DISRUPTION_TARGET, isControlled } from '../../api/pod.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import { shownText } from '../../lib/untrusted.ts';
import {
  type Applied,
  CHANGED_RESOURCES,
  changedEphemeral,
  generationOf,
  isForRoom,
  readApplied,
} from './applied.ts';
import { claimedStatus } from './claimed-status.ts';
import type { ForgeContext } from './context.ts';
import { disruption, ENDED_THERE, isEndedThere, isOurDisruption } from './ended-status.ts';
import { isResult, recreatedCondition, withFormerBodies } from './made-anew.ts';
import { isCutOff, networkCause, obstacleToReach, viewsOf, withNetwork } from './reach.ts';
import { mostStatusBytes } from './status-size.ts';
import { statusBefore } from './waiting-status.ts';

/** Condition types that the kubelet owns: home shows what the remote pod has, absence included. */
const KUBELET_CONDITIONS = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'ContainersReady',
  'Ready',
  'PodResizePending',
  'PodResizeInProgress',
  'AllContainersRestarting',
]);

/** Conditions that this program sets anew each time, absence included. */
const SAID_BY_US = new Set<string>([CONDITION_OFFLOADED, CONDITION_RECREATED, CONDITION_STATUS_CUT]);

/** Types of conditions that are neither a kubelet's nor of a domain. Kubernetes has one. */
const MOST_UNKNOWN = 8;
const MAX_UNKNOWN_TEXT = 1024;

const GATES_CLOSED = { reason: 'ReadinessGatesNotReady' };

/** How containerd reports an ephemeral container that never started. */
const START_ERROR = { exitCode: 128, reason: 'StartError' };

/**
 * The home pod's status as a kubelet at home would report it, from the status over there, which is not trusted
 * (forge/claimed-status.ts). Pure.
 */
export function forgeStatus(home: Pod, remote: Pod, context: ForgeContext, now: string): PodStatus {
  const { status: claimed, isCut } = claimedStatus(home, remote);
  const there = withFormerBodies(home, remote, claimed);
  const here = home.status ?? {};
  const applied = readApplied(remote);
  const generation = observedGeneration({ home, remote, there, applied });
  const podIPs = viewsOf(there, remote.metadata.uid, context);
  const unreachable =
    obstacleToReach(remote.metadata.uid, { there, podIPs }, context) ?? farewell(home, remote);
  const forged = forgeConditions({ home, remote, there, applied, generation, isCut, now });
  const conditions = sinceDecided(home, withNetwork(home, forged, { unreachable, now }), now);
  // What is absent over there is absent here: nothing of an earlier status may remain.
  const {
    conditions: _conditions,
    podIP: _podIP,
    podIPs: _podIPs,
    hostIP,
    hostIPs: _hostIPs,
    observedGeneration: _observed,
    nominatedNodeName: _nominated,
    qosClass: _qosClass,
    resourceClaimStatuses: _claims,
    extendedResourceClaimStatus: _extended,
    phase,
    ...plain
  } = there;
  const unschedulable = conditions.find(({ type }) => type === CONDITION_OFFLOADED);
  return {
    ...plain,
    phase: phase ?? 'Pending',
    ...(unschedulable === undefined ? networkCause(conditions) : withCause(unschedulable)),
    conditions,
    ...(hostIP === undefined ? {} : { hostIP: context.nodeAddress, hostIPs: [{ ip: context.nodeAddress }] }),
    ...(podIPs[0] === undefined ? {} : { podIP: podIPs[0].ip, podIPs }),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    // Immutable, and set by the home API server.
    ...(here.qosClass === undefined ? {} : { qosClass: here.qosClass }),
    ...(here.resourceClaimStatuses && { resourceClaimStatuses: here.resourceClaimStatuses }),
    ...ephemeralStatuses(home, there, applied),
  };
}

/** A pod that nobody replaces stays at home until it has ended over there; Services leave it out from now on. */
const farewell = (home: Pod, remote: Pod): { reason: string; message: string } | undefined =>
  isEndedThere(home, remote) && !isControlled(home)
    ? { reason: DISRUPTION_REASONS.deleted, message: ENDED_THERE }
    : undefined;

/** Those that the foreign cluster refused are shown as ended: otherwise `kubectl debug` would wait for them forever. */
function ephemeralStatuses(
  home: Pod,
  there: PodStatus,
  applied: Applied | undefined,
): Pick<PodStatus, 'ephemeralContainerStatuses'> {
  const refused = applied?.refused ?? {};
  const shown = there.ephemeralContainerStatuses ?? [];
  const known = new Set(shown.map(({ name }) => name));
  const ended = (home.spec?.ephemeralContainers ?? []).flatMap(({ name, image }): ContainerStatus[] => {
    const message = refused[changedEphemeral(name)];
    if (message === undefined || known.has(name)) return [];
    const state = { terminated: { ...START_ERROR, message } };
    return [{ name, image: image ?? '', imageID: '', ready: false, restartCount: 0, state }];
  });
  const all = [...shown, ...ended];
  return all.length === 0 ? {} : { ephemeralContainerStatuses: all };
}

const withCause = ({ reason, message }: PodCondition): Pick<PodStatus, 'reason' | 'message'> =>
  present({ reason, message });

/**
 * The home generation that the foreign kubelet has acted on (KEP-5067). Its own generations count other writes, so
 * the home generation last carried across stands in once the kubelet has caught up with the remote object.
 */
function observedGeneration({
  home,
  remote,
  there,
  applied,
}: Pick<ConditionInputs, 'home' | 'remote' | 'there' | 'applied'>): number | undefined {
  const observed = there.observedGeneration;
  const before = home.status?.observedGeneration;
  if (observed === undefined) return before;
  if (observed < (remote.metadata.generation ?? 1)) return before;
  const carried = applied?.generation;
  // Never beyond what home has, and never back: the foreign cluster keeps the record and may change it.
  if (carried === undefined || carried > generationOf(home)) return before;
  return Math.max(carried, before ?? 0);
}

interface ConditionInputs {
  home: Pod;
  remote: Pod;
  there: PodStatus;
  applied: Applied | undefined;
  generation: number | undefined;
  /** The provider reports more than is shown. */
  isCut: boolean;
  now: string;
}

/**
 * Types without a domain are Kubernetes' own and travel. Types with a domain, and readiness gates, belong to controllers of the
 * cluster in which they were set: two writers of one condition would never stop.
 */
function forgeConditions(inputs: ConditionInputs): PodCondition[] {
  const { home, remote, there, applied, generation, isCut, now } = inputs;
  const here = home.status?.conditions ?? [];
  const travels = travelling(home);
  const resize = refusedResize(home, applied, now);
  const translated = (there.conditions ?? [])
    .filter((condition) => travels(condition) && condition.type !== resize?.type)
    .map((condition) => atHomeGeneration(withShortText(condition), generation));
  const fromRemote = new Set(translated.map(({ type }) => type));
  const others = here.filter(
    (one) =>
      !fromRemote.has(one.type) &&
      !KUBELET_CONDITIONS.has(one.type) &&
      !SAID_BY_US.has(one.type) &&
      !isOurDisruption(one),
  );
  const scheduled = others.some(({ type }) => type === 'PodScheduled');
  const all = [
    ...others,
    // No scheduler has seen pods that were bound by nodeName; for those the kubelet sets it.
    ...(scheduled ? [] : [{ type: 'PodScheduled', status: 'True', lastTransitionTime: now }]),
    ...translated,
    ...[
      resize,
      // A pod that only bears a result has a scheduling gate and needs no place.
      isResult(remote) ? undefined : unschedulableCondition(home, there, now),
      recreatedCondition(home, remote, now),
      fromRemote.has(DISRUPTION_TARGET) ? undefined : disruption(home, remote, now),
      isCut ? cutCondition(home, now) : undefined,
    ].filter((condition) => condition !== undefined),
  ];
  return applyReadinessGates(home, all, now);
}

/**
 * Of types that this program does not know, only a few: home keeps them once they are shown, since it cannot tell them from
 * those that its own controllers have set, and a provider could report other ones each time.
 */
function travelling(home: Pod): (condition: PodCondition) => boolean {
  const gates = new Set(home.spec?.readinessGates?.map(({ conditionType }) => conditionType));
  const isOfHome = (type: string): boolean =>
    type === 'PodScheduled' || type.includes('/') || gates.has(type);
  const unknown = new Set(
    (home.status?.conditions ?? [])
      .map(({ type }) => type)
      .filter((type) => !KUBELET_CONDITIONS.has(type) && !isOfHome(type)),
  );
  return ({ type }) => {
    if (KUBELET_CONDITIONS.has(type)) return true;
    if (isOfHome(type) || (unknown.size >= MOST_UNKNOWN && !unknown.has(type))) return false;
    unknown.add(type);
    return true;
  };
}

function cutCondition(home: Pod, now: string): PodCondition {
  const most = Math.round(mostStatusBytes(home) / 1024);
  const message = `the provider reports a status of more than ${most} KiB: texts are cut, and fields are left out`;
  const before = home.status?.conditions?.find(({ type }) => type === CONDITION_STATUS_CUT);
  const lastTransitionTime = before?.lastTransitionTime ?? now;
  return {
    type: CONDITION_STATUS_CUT,
    status: 'True',
    reason: STATUS_CUT_REASON,
    message,
    lastTransitionTime,
  };
}

/** A resize that the home API server accepted and the foreign cluster refuses is, for home, one that the node cannot do. */
function refusedResize(home: Pod, applied: Applied | undefined, now: string): PodCondition | undefined {
  const message = applied?.refused?.[CHANGED_RESOURCES];
  if (message === undefined) return undefined;
  const before = home.status?.conditions?.find(({ type }) => type === 'PodResizePending');
  const lastTransitionTime = before?.lastTransitionTime ?? now;
  const pending = { type: 'PodResizePending', status: 'True', message, lastTransitionTime };
  return isForRoom(message) ? { ...pending, reason: 'Deferred' } : { ...pending, reason: 'Infeasible' };
}

function withShortText(condition: PodCondition): PodCondition {
  const { type, message } = condition;
  if (KUBELET_CONDITIONS.has(type) || message === undefined) return condition;
  return { ...condition, message: shownText(message, MAX_UNKNOWN_TEXT) };
}

function atHomeGeneration(condition: PodCondition, generation: number | undefined): PodCondition {
  if (condition.observedGeneration === undefined) return condition;
  const { observedGeneration: _observed, ...rest } = condition;
  return generation === undefined ? rest : { ...rest, observedGeneration: generation };
}

/** The foreign scheduler found no place. PodScheduled at home stays true, so another condition says it. */
function unschedulableCondition(home: Pod, there: PodStatus, now: string): PodCondition | undefined {
  const scheduled = there.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  const message = `the foreign cluster cannot place the pod: ${scheduled.message ?? scheduled.reason ?? 'no reason given'}`;
  return offloadedCondition(home, OFFLOADED_REASONS.unschedulable, message, now);
}

/**
 * CONDITION_OFFLOADED False. The transition time says since when the foreign cluster has had no place for the pod, or since
 * when something else has been wrong: it stays while only the message changes, or the reason within one of these two groups.
 */
function offloadedCondition(home: Pod, reason: OffloadedReason, message: string, now: string): PodCondition {
  const before = home.status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
  const isSameSort = before?.status === 'False' && isPlacingReason(before.reason) === isPlacingReason(reason);
  const lastTransitionTime = isSameSort ? (before.lastTransitionTime ?? now) : now;
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
          ...GATES_CLOSED,
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

/**
 * Ready has changed when home changed it: by a gate, or since the network carries packets again. The time over there is that of
 * the containers alone, and whoever counts from it (`minReadySeconds`) would count too much.
 */
function sinceDecided(home: Pod, conditions: PodCondition[], now: string): PodCondition[] {
  const before = home.status?.conditions?.find(({ type }) => type === 'Ready');
  if (before === undefined) return conditions;
  return conditions.map((condition) => {
    if (condition.type !== 'Ready') return condition;
    const known = before.lastTransitionTime ?? now;
    const since = condition.lastTransitionTime ?? now;
    if (condition.status === before.status) return { ...condition, lastTransitionTime: later(since, known) };
    return isDecidedHere(before) ? { ...condition, lastTransitionTime: now } : condition;
  });
}

/** Of a Ready condition of home, whether the containers over there were ready nevertheless. */
const isDecidedHere = (ready: PodCondition): boolean =>
  ready.status === 'False' &&
  (ready.reason === GATES_CLOSED.reason || ready.reason === DISRUPTION_REASONS.deleted || isCutOff(ready));

const later = (one: string, other: string): string => (Date.parse(one) < Date.parse(other) ? other : one);

/**
 * For a DaemonSet's pod, which is not offloaded: it counts as ready, since the rollout of its DaemonSet would otherwise wait
 * for it forever, and with it the update of the pods on real nodes. It gets no address, so no Service sends anything to it. It
 * stays Pending, since nothing runs.
 */
export function stayHomeStatus(home: Pod, message: string, now: string): PodStatus {
  const reason = OFFLOADED_REASONS.daemonSet;
  const status = refusedStatus(home, { reason, message }, now);
  const before = home.status?.conditions?.find(({ type }) => type === 'Ready');
  const lastTransitionTime = before?.status === 'True' ? (before.lastTransitionTime ?? now) : now;
  const ready = { type: 'Ready', status: 'True', reason, lastTransitionTime };
  const others = (status.conditions ?? []).filter(({ type }) => type !== 'Ready');
  return { ...status, conditions: [...others, ready] };
}

/** The status of a home pod that cannot be offloaded now: Pending, with the cause where `kubectl get` shows it. */
export function refusedStatus(
  home: Pod,
  refusal: { reason: OffloadedReason; message: string; waiting?: Map<string, string> },
  now: string,
): PodStatus {
  const { reason, message, waiting } = refusal;
  const { containerStatuses: _statuses, conditions: shown = [], ...before } = statusBefore(home);
  const conditions = [
    ...shown.filter(({ type }) => type !== CONDITION_OFFLOADED),
    offloadedCondition(home, reason, message, now),
  ];
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
        lastState: {},
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

/** The home API server refuses the reported status: the status known before stays, with the cause. */
export function unshowableStatus(home: Pod, message: string, now: string): PodStatus {
  const { conditions = [], ...before } = statusBefore(home);
  const others = conditions.filter(({ type }) => type !== CONDITION_OFFLOADED);
  const condition = offloadedCondition(home, OFFLOADED_REASONS.invalid, message, now);
  return { ...before, conditions: [...others, condition] };
}
