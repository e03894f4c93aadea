/** The two forms in which a pod is held: slim, to decide about it; as a body, to make it anew. And what memory they take. */
import { DISRUPTION_TARGET, isDisruptionTarget } from '../../api/pod.ts';
import { ANNOTATION_RESULT, ANNOTATION_RESULT_LOGS, LABEL_HOME_UID } from '../../api/names.ts';
import type { Pod, PodSpec, PodStatus } from '../../api/wire.ts';
import { identityOf } from '../../kube/objects.ts';
import { withoutKeys } from '../../lib/fields.ts';
import { RESULT_GATE, resultOf } from './result.ts';

/** All of which an entry is made. Without logs: what we have written ourselves would take room from other pods. */
export function podBody({ metadata, spec, status }: Pod): Pod {
  const { labels, annotations } = metadata;
  return {
    metadata: {
      ...placeOf(metadata),
      ...(labels && { labels }),
      ...(annotations && { annotations: withoutKeys(annotations, [ANNOTATION_RESULT_LOGS]) }),
    },
    ...(spec && { spec: withoutKeys(spec, ['ephemeralContainers']) }),
    // All conditions: any of them may be the mark of a disruption. They are cut when they become a result.
    status: {
      ...resultOf({ ...(status && { status }) }),
      ...(status?.conditions && { conditions: status.conditions }),
    },
  };
}

/** About a kilobyte at most, whatever its peer has written. Enough to decide about a pod that has an entry. */
export function slimPod({ metadata, spec, status }: Pod): Pod {
  const { labels = {}, annotations = {} } = metadata;
  const isResult = annotations[ANNOTATION_RESULT] === 'true';
  return {
    metadata: {
      ...placeOf(metadata),
      labels: { [LABEL_HOME_UID]: labels[LABEL_HOME_UID] ?? '' },
      ...(isResult && { annotations: { [ANNOTATION_RESULT]: 'true' } }),
    },
    spec: whereOf(spec),
    status: howOf(status),
  };
}

function whereOf(spec: PodSpec | undefined): PodSpec {
  const nodeName = spec?.nodeName;
  const isGated = spec?.schedulingGates?.some(({ name }) => name === RESULT_GATE) === true;
  return {
    containers: [],
    ...(nodeName !== undefined && { nodeName }),
    ...(isGated && { schedulingGates: [{ name: RESULT_GATE }] }),
  };
}

function howOf(status: PodStatus | undefined): PodStatus {
  const { phase, reason } = status ?? {};
  return {
    ...(phase !== undefined && { phase }),
    ...(reason !== undefined && { reason }),
    ...(isDisruptionTarget({ ...(status && { status }) }) && {
      conditions: [{ type: DISRUPTION_TARGET, status: 'True' }],
    }),
  };
}

function placeOf(metadata: Pod['metadata']): Pod['metadata'] {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  return {
    ...identityOf(metadata),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
  };
}

/** Bytes. Strings, objects and lists have a header; objects and lists have a slot for each value. */
const HEADER = 32;
const SLOT = 8;
/** Objects with more keys are hash tables with keys of their own: the annotations of a pod, for example. */
const FEW_KEYS = 16;
const TABLE_SLOT = 96;

/**
 * About how many bytes a JSON value takes in memory, up to twice too many. The length as text is not enough: for a thousand
 * times `{"name":"A"}`, for many short annotations, and for texts that are not Latin, it would be a third, a fifth and a half of
 * the truth, and a peer could take more than its share by the form of what it writes.
 */
export function bytesInMemory(value: unknown): number {
  if (typeof value === 'string') return HEADER + value.length * (isNarrow(value) ? 1 : 2);
  if (typeof value !== 'object' || value === null) return SLOT;
  if (Array.isArray(value)) return value.reduce<number>((sum, it) => sum + SLOT + bytesInMemory(it), HEADER);
  const fields = Object.entries(value);
  const isTable = fields.length > FEW_KEYS;
  return fields.reduce(
    (sum, [key, it]) => sum + (isTable ? TABLE_SLOT + key.length : SLOT) + bytesInMemory(it),
    HEADER,
  );
}

/** With one character outside of Latin-1, a string takes two bytes for each character. */
const isNarrow = (text: string): boolean => !/[\u0100-\uffff]/.test(text);
