/** A pod as it was before the API server's admission and the scheduler: what its maker would create again. Pure. */
import { withoutKeys } from '../lib/fields.ts';
import { withoutMergedKeys } from './placement.ts';
import type { Container, PodSpec, Volume } from './wire.ts';

/**
 * Fields of a spec that admission computes for each pod anew, and refuses where they come from another time (priority,
 * overhead), or that speak of the pod as it was.
 */
const DECIDED_ANEW = [
  'nodeName',
  'ephemeralContainers',
  'priority',
  'preemptionPolicy',
  'overhead',
  'serviceAccount',
  'schedulingGates',
] as const satisfies readonly (keyof PodSpec)[];

/** Set on a pod when it is bound, from its node (KEP-4742). */
const TOPOLOGY_LABELS = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/**
 * The volume that the service-account admission adds to every pod that does not opt out, and adds again. It is for the API
 * server of the pod's own cluster.
 */
export const isApiAccessVolume = ({ name, projected }: Volume): boolean =>
  name.startsWith('kube-api-access-') && projected !== undefined;

export function specBeforeAdmission(spec: PodSpec): PodSpec {
  const tokens = new Set(spec.volumes?.filter(isApiAccessVolume).map(({ name }) => name));
  const unmounted = <C extends Container>(container: C): C =>
    container.volumeMounts === undefined
      ? container
      : { ...container, volumeMounts: container.volumeMounts.filter(({ name }) => !tokens.has(name)) };
  return {
    ...withoutKeys(spec, DECIDED_ANEW),
    containers: spec.containers.map(unmounted),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(unmounted) }),
    ...(spec.volumes && { volumes: spec.volumes.filter(({ name }) => !tokens.has(name)) }),
    ...(spec.affinity && { affinity: unmerged(spec.affinity) }),
    ...(spec.topologySpreadConstraints && {
      topologySpreadConstraints: spec.topologySpreadConstraints.map(withoutMergedKeys),
    }),
  };
}

type Affinity = NonNullable<PodSpec['affinity']>;
type Pods = NonNullable<Affinity['podAffinity']>;

function unmerged({ podAffinity, podAntiAffinity, ...others }: Affinity): Affinity {
  const terms = ({
    requiredDuringSchedulingIgnoredDuringExecution: required,
    preferredDuringSchedulingIgnoredDuringExecution: preferred,
  }: Pods): Pods => ({
    ...(required && { requiredDuringSchedulingIgnoredDuringExecution: required.map(withoutMergedKeys) }),
    ...(preferred && {
      preferredDuringSchedulingIgnoredDuringExecution: preferred.map(({ weight, podAffinityTerm }) => ({
        weight,
        podAffinityTerm: withoutMergedKeys(podAffinityTerm),
      })),
    }),
  });
  return {
    ...others,
    ...(podAffinity && { podAffinity: terms(podAffinity) }),
    ...(podAntiAffinity && { podAntiAffinity: terms(podAntiAffinity) }),
  };
}

export const labelsBeforeBinding = (labels: Record<string, string>): Record<string, string> =>
  withoutKeys(labels, TOPOLOGY_LABELS);
