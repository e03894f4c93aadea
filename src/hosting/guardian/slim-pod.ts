/** What is held of a pod: always what it takes to decide about it, and, where there is room, what it takes to make it anew. Pure. */
import { ANNOTATION_RESULT, LABEL_HOME_UID } from '../../api/names.ts';
import type { Pod, PodSpec, PodStatus } from '../../api/wire.ts';
import { withoutKeys } from '../../lib/without-keys.ts';
import { DISRUPTION_TARGET, isMarked, RESULT_GATE, resultOf } from './result.ts';

/** All that entries are made of. */
export function podBody({ metadata, spec, status }: Pod): Pod {
  const { labels, annotations } = metadata;
  return {
    metadata: { ...placeOf(metadata), ...(labels && { labels }), ...(annotations && { annotations }) },
    ...(spec && { spec: withoutKeys(spec, ['ephemeralContainers']) }),
    // Its conditions are cut where they become a result: a mark of a disruption may be any of them.
    status: {
      ...resultOf({ ...(status && { status }) }),
      ...(status?.conditions && { conditions: status.conditions }),
    },
  };
}

/** About a kilobyte at most, whatever its peer has written: what is decided about a pod whose entry there is. */
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
    ...(isMarked({ ...(status && { status }) }) && {
      conditions: [{ type: DISRUPTION_TARGET, status: 'True' }],
    }),
  };
}

function placeOf(metadata: Pod['metadata']): Pod['metadata'] {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    uid,
    resourceVersion,
    creationTimestamp,
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
  };
}

/** A string has a header; an object and a list have one, and a slot for each value. Bytes. */
const HEADER = 32;
const SLOT = 8;
/** Objects with more keys than that are tables, and their keys are nobody else's: a pod's annotations, for example. */
const FEW_KEYS = 16;
const TABLE_SLOT = 96;

/**
 * About what a JSON value takes in memory, bytes. Its length as text does not say: of `{"name":"A"}` a thousand times, of many
 * short annotations, and of texts that are not Latin, it would be a third, a fifth and a half. What is between one and two
 * times the truth here keeps a peer from having more than its share by the form of what it writes.
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

/** A string with one character beyond takes two bytes for each of its characters. */
const isNarrow = (text: string): boolean => !/[\u0100-\uffff]/.test(text);
