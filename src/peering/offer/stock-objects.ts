import type { StorageClassOffer } from '../../api/offer.ts';
import { type CountedPod, podRequests } from '../../api/pod-requests.ts';
import { isFinished } from '../../api/pod.ts';
import { defineResource, type ResourceType, type storageClasses } from '../../api/resources.ts';
import type { KubeObject, ObjectMeta, Pod } from '../../api/wire.ts';

/** Objects as the stock keeps them: what counts, and nothing else, since a cluster has very many pods. */

/** Not ended, by the API server's choice. */
export const LIVE_PODS = 'status.phase!=Succeeded,status.phase!=Failed';

export const livePods: ResourceType<CountedPod> = defineResource('/v1', 'Pod', 'pods', 'Namespaced');

/** Reads the pod that the wire brought; undefined for one that has ended. */
export function keepPod(object: CountedPod): CountedPod | undefined {
  const pod = object as unknown as Pod;
  if (isFinished(pod)) return undefined;
  const overdueMs = overdueOf(pod.metadata);
  return {
    metadata: keepMeta(pod.metadata),
    node: pod.spec?.nodeName ?? '',
    requests: [...podRequests(pod)],
    ...(overdueMs !== undefined && { overdueMs }),
  };
}

/** From then on a ResourceQuota does not count it (QuotaV1Pod in pkg/quota/v1/evaluator/core/pods.go). */
function overdueOf({ deletionTimestamp, deletionGracePeriodSeconds }: ObjectMeta): number | undefined {
  const due = Date.parse(deletionTimestamp ?? '');
  if (Number.isNaN(due) || deletionGracePeriodSeconds === undefined) return undefined;
  return due + deletionGracePeriodSeconds * 1000;
}

/** Where only the name, namespace and labels count. */
export const bareOf = ({ metadata }: KubeObject): KubeObject => ({
  metadata: { ...keepMeta(metadata), labels: metadata.labels ?? {} },
});

function keepMeta({ name, namespace, uid, resourceVersion, ...rest }: ObjectMeta): ObjectMeta {
  const { creationTimestamp, deletionTimestamp } = rest;
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    uid,
    resourceVersion,
    creationTimestamp,
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
  };
}

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

type StorageClass = NonNullable<(typeof storageClasses)['__object']>;

export function storageClassOffer(storageClass: StorageClass): StorageClassOffer {
  const { metadata, provisioner, volumeBindingMode, allowVolumeExpansion } = storageClass;
  return {
    name: metadata.name,
    provisioner,
    ...(metadata.annotations?.[DEFAULT_CLASS] === 'true' && { isDefault: true }),
    ...(volumeBindingMode !== undefined && { volumeBindingMode }),
    ...(allowVolumeExpansion !== undefined && { allowVolumeExpansion }),
  };
}
