import { controllerOf, isFinished, isOfDaemonSet } from '../api/pod.ts';
import { ANNOTATION_STRATEGY, LABEL_OFFLOAD, TAINT_VIRTUAL_NODE } from '../api/names.ts';
import type { Pod, Toleration } from '../api/wire.ts';

const MIRROR = 'kubernetes.io/config.mirror';

/** Whether a pod has to stay on real nodes only because it was made before its namespace was offloaded. Pure. */
export function isTooEarly(pod: Pod): boolean {
  const { metadata, spec } = pod;
  return (
    !isOfDaemonSet(pod) &&
    !isFinished(pod) &&
    metadata.deletionTimestamp === undefined &&
    metadata.labels?.[LABEL_OFFLOAD] !== 'false' &&
    metadata.annotations?.[ANNOTATION_STRATEGY] === undefined &&
    metadata.annotations?.[MIRROR] === undefined &&
    !(spec?.tolerations ?? []).some(tolerates)
  );
}

const tolerates = ({ key, operator, effect }: Toleration): boolean =>
  (key === TAINT_VIRTUAL_NODE || (key === undefined && operator === 'Exists')) &&
  (effect === undefined || effect === '' || effect === 'NoSchedule');

/** One line for people: why the pod stays, and what to do. */
export function earlyMessage(pod: Pod): string {
  return `made before its namespace was offloaded, so it stays on real nodes; ${remedyFor(pod)}`;
}

function remedyFor(pod: Pod): string {
  const { name, namespace = '', labels = {} } = pod.metadata;
  const owner = controllerOf(pod);
  const restart = (kind: string, of: string): string =>
    `to let it go, run \`kubectl -n ${namespace} rollout restart ${kind} ${of}\``;
  const hash = labels['pod-template-hash'];
  if (owner === undefined) {
    return `to let it go, delete it and make it again: kubectl -n ${namespace} delete pod ${name}`;
  }
  switch (owner.kind) {
    case 'ReplicaSet':
      return hash !== undefined && owner.name.endsWith(`-${hash}`)
        ? restart('deployment', owner.name.slice(0, -hash.length - 1))
        : `to let it go, delete it, and ReplicaSet ${owner.name} makes another`;
    case 'StatefulSet':
      return restart('statefulset', owner.name);
    default:
      return `to let it go, delete it, and ${owner.kind} ${owner.name} makes another`;
  }
}
