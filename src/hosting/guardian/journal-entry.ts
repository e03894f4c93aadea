/** What the journal knows of one pod, and how that is read from the pod. Pure. */
import { isDisruptionTarget } from '../../api/pod.ts';
import {
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  ANNOTATION_WHEN_LOST,
  LABEL_HOME_UID,
  type WhenLost,
} from '../../api/names.ts';
import { labelsBeforeBinding, specBeforeAdmission } from '../../api/pod-before-admission.ts';
import { boundedCount, parseRecreated, type Recreated } from '../../api/recreated.ts';
import type { Pod, PodSpec, PodStatus } from '../../api/wire.ts';
import { withoutKeys } from '../../lib/fields.ts';
import { isDisrupted, endedByItself, RESULT_GATE, resultOf } from './result.ts';

export interface JournalEntry {
  name: string;
  /** UID of the home pod. */
  homeUid: string;
  /** UID of the pod here, as last seen. */
  uid: string;
  /** When that pod was created, RFC 3339. */
  created: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** As it is to be created again. */
  spec: PodSpec;
  /** Restarts of that pod by container, without containers that never restarted. */
  restarts: Record<string, number>;
  /** How it ended by itself, and for good. */
  result?: PodStatus;
  /** It was being deleted, and not evicted, before its home went away: nobody misses it. */
  leaving?: true;
}

/** `known`: its entry so far; `isNew`: the journal begins only now. Undefined for what is no pod of a peer. */
export function entryOf(pod: Pod, known: JournalEntry | undefined, isNew: boolean): JournalEntry | undefined {
  const homeUid = pod.metadata.labels?.[LABEL_HOME_UID] ?? '';
  if (homeUid === '') return undefined;
  const { uid } = pod.metadata;
  const before = known?.homeUid === homeUid ? known : undefined;
  // A pod that bears a result says nothing new about the one that ran.
  if (isResultPod(pod) && before?.result !== undefined) {
    return before.uid === uid ? before : { ...before, uid };
  }
  const marks = before ?? (isNew && isLeft(pod) ? { leaving: true as const } : {});
  return {
    ...factsOf(pod, homeUid),
    ...endOf(pod, before),
    ...(marks.leaving && { leaving: true as const }),
  };
}

/** A result that was written down stays, whatever happens to the pod. */
function endOf(pod: Pod, before: JournalEntry | undefined): Pick<JournalEntry, 'result'> {
  if (before?.result !== undefined) return { result: before.result };
  return endedByItself(pod) ? { result: resultOf(pod) } : {};
}

function factsOf({ metadata, spec, status }: Pod, homeUid: string): JournalEntry {
  const { name, uid, labels = {}, annotations = {}, creationTimestamp } = metadata;
  return {
    name,
    homeUid,
    uid,
    created: creationTimestamp,
    labels: labelsBeforeBinding(labels),
    annotations: withoutKeys(annotations, [ANNOTATION_RESULT]),
    spec: specBeforeAdmission(spec ?? { containers: [] }),
    restarts: restartsOf(status),
  };
}

/** Whether we made it to bear a result; such a pod never runs. */
export const isResultPod = ({ metadata, spec }: Pod): boolean =>
  metadata.annotations?.[ANNOTATION_RESULT] === 'true' &&
  (spec?.nodeName ?? '') === '' &&
  (spec?.schedulingGates ?? []).some(({ name }) => name === RESULT_GATE);

/** Whether somebody deleted it, most likely its home. A drain or a lost node leaves a mark on a pod. */
const isLeft = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp !== undefined && !isDisruptionTarget(pod);

/**
 * The entry of a pod that disappeared while its home was late, from its last state. Undefined where nobody misses it: a home that
 * is late may still be there, and have deleted it.
 */
export const entryOfVanished = (pod: Pod): JournalEntry | undefined =>
  isResultPod(pod) || !(isDisruptionTarget(pod) || isDisrupted(pod) || endedByItself(pod))
    ? undefined
    : entryOf(pod, undefined, false);

/** What its home allows us to do. Nothing, where it does not say. */
export function whenLostOf({ annotations }: Pick<JournalEntry, 'annotations'>): WhenLost {
  const said = annotations[ANNOTATION_WHEN_LOST];
  return said === 'Replace' || said === 'WhenFenced' ? said : 'Leave';
}

/** How often the pod was made anew before, and how often its predecessors' containers had been restarted. */
export const recreatedOf = ({ annotations }: Pick<JournalEntry, 'annotations'>): Recreated =>
  parseRecreated(annotations[ANNOTATION_RECREATED] ?? '');

/** The same, with the pod that is lost now. */
export function recreatedNext(entry: JournalEntry): Recreated {
  const { count, restarts } = recreatedOf(entry);
  const sums = new Map(restarts);
  for (const [name, more] of Object.entries(entry.restarts)) {
    sums.set(name, boundedCount((sums.get(name) ?? 0) + more) ?? 0);
  }
  return { count: boundedCount(count + 1) ?? 0, restarts: sums };
}

function restartsOf(status: PodStatus | undefined): Record<string, number> {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return Object.fromEntries(
    all.flatMap(({ name, restartCount }) =>
      (boundedCount(restartCount) ?? 0) === 0 ? [] : [[name, restartCount]],
    ),
  );
}
