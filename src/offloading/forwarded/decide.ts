import type { Forwarding } from '../../api/cluster-mode.ts';
import { ANNOTATION_STRATEGY } from '../../api/names.ts';
import type { PodStrategy } from '../../api/namespace-offloading.ts';
import { claimVolumes, isControlled, isFinished, isOfDaemonSet } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { toleratesAny } from '../admission/strategy.ts';

/**
 * Stay: it is nobody's to bring back, or it runs here already. Kept: its volumes are over there. Delete: its controller makes
 * another one. Remake: nobody would, so we do.
 */
export type NextPlace = 'Stay' | 'Kept' | 'Delete' | 'Remake';

/**
 * What is done with a pod that was forwarded to a cluster which has stopped it and cannot be reached. Pure.
 *
 * @param hasBodyHere it was placed back, and runs in this cluster
 */
export function comingHome(pod: Pod, hasBodyHere: boolean): NextPlace {
  if (isFinished(pod) || isOfDaemonSet(pod) || hasBodyHere) return 'Stay';
  if (claimVolumes(pod).length > 0) return 'Kept';
  // Somebody is deleting it: it waits for nothing but the word of a cluster that is away.
  return pod.metadata.deletionTimestamp !== undefined ? 'Delete' : madeAnewBy(pod);
}

/**
 * What is done with a pod that has no node and was admitted before the mode changed: it waits for a node that it cannot get
 * any more. Pure.
 */
export function admittedForAnother(
  pod: Pod,
  { podStrategy, comesHome }: Pick<Forwarding, 'podStrategy' | 'comesHome'>,
): NextPlace {
  const { annotations, deletionTimestamp } = pod.metadata;
  if (isFinished(pod) || isOfDaemonSet(pod) || deletionTimestamp !== undefined) return 'Stay';
  if ((pod.spec?.nodeName ?? '') !== '') return 'Stay';
  const wasSentAway = annotations?.[ANNOTATION_STRATEGY] === ('Remote' satisfies PodStrategy);
  const isWrong =
    podStrategy === 'Remote'
      ? !wasSentAway && !toleratesAny(pod.spec?.tolerations ?? [])
      : comesHome && wasSentAway;
  return isWrong ? madeAnewBy(pod) : 'Stay';
}

const madeAnewBy = (pod: Pod): 'Delete' | 'Remake' => (isControlled(pod) ? 'Delete' : 'Remake');
