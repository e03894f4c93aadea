import { timestamp } from '../../api/conditions.ts';
import {
  CONDITION_OFFLOADED,
  DISRUPTION_REASONS,
  isPlacingReason,
  OFFLOADED_REASONS,
} from '../../api/names.ts';
import type { HeldOff, NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { claimVolumes, isControlled, isFinished } from '../../api/pod.ts';
import { homeKeysOf, placementFor } from '../../api/placement.ts';
import type { Pod, PodCondition } from '../../api/wire.ts';
import { unended } from '../../lib/unended.ts';
import { heldUntil, ownerKey, withHeldOff } from '../held-off.ts';

/** Defaults that the API server sets, unless the object is older than its definition. */
const RELEASE_AFTER_SECONDS = 60;
const HOLD_OFF_SECONDS = 600;
/** So long after a hold began, a pod may still be admitted by a webhook that has not seen the hold, or by another clock. */
const HOLD_SETTLE_MS = 30_000;
/** A pod that has nowhere to go is looked at again after so long at the latest. */
const STAY_MS = 60_000;

export interface ReleaseSituation {
  /** Bound to the virtual node, as BoundPods keeps it. */
  pod: Pick<Pod, 'metadata' | 'spec' | 'status'>;
  /** Name of the VirtualNode. */
  virtualNode: string;
  /** Undefined: pods of that namespace are nobody's to release. */
  offloading: NamespaceOffloading | undefined;
  /** Wall clock. */
  nowMs: number;
  /** How long this process itself has seen the pod refused: it makes up for clocks that differ. */
  watchedMs?: number;
  /** Labels of the Node that a VirtualNode makes. */
  labelsOf?: (virtualNode: string) => Readonly<Record<string, string>> | undefined;
}

/** Exactly one step; the next one is decided from its result. */
export type ReleaseAction =
  | { do: 'nothing' }
  /** Refused, but not for long enough. */
  | { do: 'wait'; ms: number }
  /** There is no other place, or the owner places its pods here all the same: an event says so. */
  | { do: 'stay'; ms: number; message: string }
  /** Written to `status.heldOff` of the offloading. */
  | { do: 'holdOff'; heldOff: HeldOff[] }
  /** DisruptionTarget, written to the pod's status. */
  | { do: 'mark'; condition: PodCondition }
  /** Deleted; its controller makes another. */
  | { do: 'release'; message: string }
  /** Deleted, and made anew. */
  | { do: 'remake'; message: string };

const NOTHING: ReleaseAction = { do: 'nothing' };

/** Pure. A pod that has ever run, or that has another problem than its place, is left alone. */
export function decideRelease(situation: ReleaseSituation): ReleaseAction {
  const { pod, offloading } = situation;
  const refused = placingRefusal(pod);
  if (refused === undefined || offloading === undefined) return NOTHING;
  // Its pods are brought home, or ended, by whoever removes it.
  if (offloading.metadata.deletionTimestamp !== undefined) return NOTHING;
  const { releaseAfterSeconds = RELEASE_AFTER_SECONDS } = offloading.spec;
  if (releaseAfterSeconds === 0) return NOTHING;
  const leftMs = releaseAfterSeconds * 1000 - refusedForMs(refused, situation);
  if (leftMs > 0) return { do: 'wait', ms: leftMs };
  return isWithItsData(pod, refused)
    ? stayWithData(situation, refused)
    : goElsewhere(situation, offloading, refused);
}

/** Reasons given before the claims have been looked at, or for claims that are elsewhere. */
const CLAIMS_NOT_CHECKED = new Set<string | undefined>([
  OFFLOADED_REASONS.volumeNotHere,
  OFFLOADED_REASONS.namespaceNotOffloaded,
  OFFLOADED_REASONS.namespaceBeingMade,
]);

/** Claims are checked before a pod is requested over there: with any other reason, their volumes are there. */
const isWithItsData = (pod: ReleaseSituation['pod'], { reason }: PodCondition): boolean =>
  claimVolumes(pod).length > 0 && !CLAIMS_NOT_CHECKED.has(reason);

/** A successor's affinity would keep it, for good, off the only node from which the volumes can be reached. */
function stayWithData({ virtualNode }: ReleaseSituation, refused: PodCondition): ReleaseAction {
  const message = `virtual node "${virtualNode}" cannot place the pod, and its volumes are over there, so it waits for a place there: ${reasonOf(refused)}`;
  return { do: 'stay', ms: STAY_MS, message };
}

function goElsewhere(
  situation: ReleaseSituation,
  offloading: NamespaceOffloading,
  refused: PodCondition,
): ReleaseAction {
  const { pod, virtualNode, nowMs } = situation;
  const holdOffMs = (offloading.spec.holdOffSeconds ?? HOLD_OFF_SECONDS) * 1000;
  const heldOff = offloading.status?.heldOff ?? [];
  const owner = ownerKey(pod);
  const until = heldUntil(heldOff, { owner, virtualNode }, nowMs);
  if (until !== undefined && cameBack(pod, until - holdOffMs)) {
    const message = `${owner} is to be kept off virtual node "${virtualNode}" until ${timestamp(until)}, but its pods are placed there all the same: look for a nodeName or a node affinity that asks for it`;
    return { do: 'stay', ms: until - nowMs, message };
  }
  const places = placesFor(situation, offloading, refused);
  if (places.names.length === 0) {
    const others = places.isNowhere ? 'no other one could' : 'there is no other one for it now';
    const message = `virtual node "${virtualNode}" cannot place the pod, and ${others} (podStrategy Remote): ${reasonOf(refused)}`;
    return { do: 'stay', ms: Math.max(1000, places.waitMs), message };
  }
  if (until === undefined && holdOffMs > 0) {
    const held = { owner, virtualNode, until: timestamp(nowMs + holdOffMs) };
    return { do: 'holdOff', heldOff: withHeldOff(heldOff, held, nowMs) };
  }
  return leave(situation, refused, places.names);
}

const reasonOf = ({ message, reason }: PodCondition): string => message ?? reason ?? 'no reason given';

function leave(
  { pod, virtualNode, nowMs }: ReleaseSituation,
  refused: PodCondition,
  places: readonly string[],
): ReleaseAction {
  const why = reasonOf(refused);
  if (!isMarked(pod)) {
    const message = `virtual node "${virtualNode}" could not place the pod: ${why}`;
    const lastTransitionTime = timestamp(nowMs);
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: DISRUPTION_REASONS.released,
      message,
    };
    return { do: 'mark', condition: { ...condition, lastTransitionTime } };
  }
  const message = `released from virtual node "${virtualNode}", which could not place it: ${unended(why)}. It may go to ${places.join(', ')}`;
  return { do: isControlled(pod) ? 'release' : 'remake', message };
}

/** The condition that says that the virtual node cannot place the pod; undefined where the pod is no candidate. */
export function placingRefusal(pod: Pick<Pod, 'metadata' | 'status'>): PodCondition | undefined {
  const { metadata, status } = pod;
  if (metadata.deletionTimestamp !== undefined || status?.startTime !== undefined) return undefined;
  if (isFinished(pod)) return undefined;
  const condition = status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
  return condition?.status === 'False' && isPlacingReason(condition.reason) ? condition : undefined;
}

/**
 * The condition has the time of the agent's clock, the creation that of the API server's, and ours may differ from both. So:
 * never longer than the pod is old, and at least as long as we have watched it.
 */
function refusedForMs(refused: PodCondition, { pod, nowMs, watchedMs = 0 }: ReleaseSituation): number {
  const since = [refused.lastTransitionTime, pod.metadata.creationTimestamp].map((time) =>
    Date.parse(time ?? ''),
  );
  const latest = Math.max(...since.filter((time) => !Number.isNaN(time)));
  return Math.max(watchedMs, Number.isFinite(latest) ? nowMs - latest : 0);
}

/** The pod was made after its owner had been held off: releasing it again would repeat forever. */
const cameBack = (pod: Pick<Pod, 'metadata'>, holdBeganMs: number): boolean =>
  Date.parse(pod.metadata.creationTimestamp) > holdBeganMs + HOLD_SETTLE_MS;

interface Places {
  names: string[];
  /** Where that is nowhere, when that may change. */
  waitMs: number;
  /** No other virtual node could take the pod as it is. */
  isNowhere: boolean;
}

/** Where pods of the owner may go. */
function placesFor(
  situation: ReleaseSituation,
  { spec, status }: NamespaceOffloading,
  refused: PodCondition,
): Places {
  const { virtualNode, nowMs, pod } = situation;
  const owner = ownerKey(pod);
  const { podStrategy = 'LocalAndRemote' } = spec;
  const real = podStrategy === 'Remote' ? [] : ['a real node'];
  if (podStrategy === 'Local') return { names: real, waitMs: STAY_MS, isNowhere: false };
  const others = (status?.clusters ?? [])
    .filter(({ phase }) => phase === 'Ready')
    .flatMap(({ virtualNodes }) => virtualNodes)
    .filter((name) => name !== virtualNode);
  const able = others.filter((name) => couldTake(name, situation, refused));
  const held = status?.heldOff ?? [];
  const waits = able.map((name) => heldUntil(held, { owner, virtualNode: name }, nowMs) ?? nowMs);
  const free = able.filter((_name, index) => waits[index] === nowMs);
  return {
    names: [...real, ...free.map((name) => `virtual node "${name}"`)],
    waitMs: Math.min(STAY_MS, ...waits.map((until) => until - nowMs)),
    isNowhere: others.length > 0 && able.length === 0,
  };
}

/** Whether what keeps the pod from its place would not be the same there. */
function couldTake(name: string, { pod, labelsOf }: ReleaseSituation, { reason }: PodCondition): boolean {
  if (reason === OFFLOADED_REASONS.placementNowhere) return false;
  // With the other choices, a key that means something at home only refuses no pod.
  if (reason !== OFFLOADED_REASONS.placementNotPossible || placementFor(pod) !== 'Hard') return true;
  const labels = labelsOf?.(name) ?? {};
  return homeKeysOf(pod).every((key) => labels[key] !== undefined);
}

const isMarked = ({ status }: Pick<Pod, 'status'>): boolean =>
  status?.conditions?.some(
    ({ type, status: value, reason }) =>
      type === 'DisruptionTarget' && value === 'True' && reason === DISRUPTION_REASONS.released,
  ) === true;
