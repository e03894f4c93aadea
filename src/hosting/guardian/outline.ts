/** What is held of a pod: always what it takes to decide about it, and, where there is room, what it takes to make it anew. Pure. */
import { ANNOTATION_RESULT, LABEL_HOME_UID } from '../../api/names.ts';
import type { Pod, PodSpec, PodStatus } from '../../api/wire.ts';
import { withoutKeys } from '../../lib/without-keys.ts';
import { DISRUPTION_TARGET, isMarked } from './ends.ts';
import { RESULT_GATE, resultOf } from './result.ts';

/** All that entries are made of. */
export function bodyOf({ metadata, spec, status }: Pod): Pod {
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
export function outlineOf({ metadata, spec, status }: Pod): Pod {
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
