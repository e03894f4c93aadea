import {
  ANNOTATION_AVOIDS,
  ANNOTATION_PLACEMENT_OF_NAMESPACE,
  ANNOTATION_PLACEMENT_RULES,
  ANNOTATION_PREFERRED,
  ANNOTATION_RELEASED_FROM,
  ANNOTATION_REMADE_FOR,
  ANNOTATION_STRATEGY,
  ANNOTATION_TOO_LARGE,
  ANNOTATION_WHEN_AWAY,
  LABEL_VIRTUAL_NODE,
  TAINT_VIRTUAL_NODE,
} from '../../api/names.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import { isDefaultStay, isStaySet, ownTolerations } from '../../api/node-life.ts';
import { carriedRulesOf } from '../../api/placement.ts';
import { labelsBeforeBinding, specBeforeAdmission } from '../../api/pod-before-admission.ts';
import type { Draft, OwnerReference, Pod, PodSpec, Toleration } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { withoutKeys } from '../../lib/fields.ts';
import { avoidsOf } from '../admission/avoid.ts';
import { ownPreferredTerms, type PreferredTerm } from '../admission/prefer.ts';
import { termsOf } from '../admission/strategy.ts';

const OUR_ANNOTATIONS = [
  ANNOTATION_STRATEGY,
  ANNOTATION_AVOIDS,
  ANNOTATION_TOO_LARGE,
  ANNOTATION_PREFERRED,
  ANNOTATION_RELEASED_FROM,
  ANNOTATION_REMADE_FOR,
  ANNOTATION_PLACEMENT_OF_NAMESPACE,
  ANNOTATION_PLACEMENT_RULES,
  ANNOTATION_WHEN_AWAY,
];
/** Finalizers of a deletion in progress; those of people and their controllers stay. */
const DELETION_FINALIZERS = new Set(['foregroundDeletion', 'orphan']);

/**
 * The manifest of the pod as it was before admission: what a person would apply again. Pure.
 *
 * @param clusterSelector what the webhook has added to the pod's node affinity
 */
export function remadePod(
  pod: Pod,
  clusterSelector: LabelSelector = {},
): Draft<Pod> & { metadata: { name: string } } {
  const { name, namespace, labels, annotations = {}, ownerReferences, finalizers } = pod.metadata;
  const kept = finalizers?.filter((finalizer) => !DELETION_FINALIZERS.has(finalizer)) ?? [];
  const isAdded = addedTo(pod, clusterSelector);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(labels && { labels: labelsBeforeBinding(labels) }),
      annotations: withoutKeys(annotations, OUR_ANNOTATIONS),
      ...(ownerReferences && { ownerReferences: ownerReferences.map(unblocking) }),
      ...(kept.length > 0 && { finalizers: kept }),
    },
    ...(pod.spec && { spec: remadeSpec(withRules(pod, withOwnStay(pod, pod.spec)), isAdded) }),
  };
}

/** With the rules that the webhook has taken out of it: the pod may run on real nodes now. */
function withRules(pod: Pod, spec: PodSpec): PodSpec {
  const { podAntiAffinity = [], topologySpreadConstraints = [] } = carriedRulesOf(pod) ?? {};
  if (podAntiAffinity.length + topologySpreadConstraints.length === 0) return spec;
  const { podAntiAffinity: others } = spec.affinity ?? {};
  const required = [...podAntiAffinity, ...(others?.requiredDuringSchedulingIgnoredDuringExecution ?? [])];
  return {
    ...spec,
    ...(podAntiAffinity.length > 0 && {
      affinity: {
        ...spec.affinity,
        podAntiAffinity: { ...others, requiredDuringSchedulingIgnoredDuringExecution: required },
      },
    }),
    topologySpreadConstraints: [...topologySpreadConstraints, ...(spec.topologySpreadConstraints ?? [])],
  };
}

/** Whether the webhook has added such an item. */
interface Added {
  /** Those of the pod's preferred terms that it has not added. */
  ownPreferred: PreferredTerm[];
  toleration: (toleration: Toleration) => boolean;
  requirement: (requirement: Requirement) => boolean;
}

/** Setting it may need a right over the owner (OwnerReferencesPermissionEnforcement), and it matters to controllers only. */
const unblocking = ({ blockOwnerDeletion: _blocks, ...owner }: OwnerReference): OwnerReference => owner;

function addedTo(pod: Pod, selector: LabelSelector): Added {
  const { metadata } = pod;
  const ownPreferred = ownPreferredTerms(pod);
  if (metadata.annotations?.[ANNOTATION_STRATEGY] === undefined) {
    return { toleration: () => false, requirement: () => false, ownPreferred };
  }
  const avoids = avoidsOf({ metadata });
  const always = [...termsOf('Local', {}, []), ...termsOf('Remote', selector, avoids)].flat();
  const from = metadata.annotations?.[ANNOTATION_RELEASED_FROM];
  return {
    ownPreferred,
    toleration: ({ key }) => key === TAINT_VIRTUAL_NODE,
    // One of an earlier version says only which node it was released from. What the pod itself excludes stays excluded.
    requirement: ({ key, operator, values = [] }) =>
      (key === LABEL_VIRTUAL_NODE && operator === 'NotIn' && from !== undefined && values.includes(from)) ||
      always.some((one) => deepEqual(normal(one), normal({ key, operator, values }))),
  };
}

const withOwnStay = (pod: Pod, spec: PodSpec): PodSpec =>
  isStaySet(pod) ? { ...spec, tolerations: ownTolerations(pod) } : spec;

const normal = ({ key, operator, values = [] }: Requirement): Requirement => ({
  key,
  operator,
  values: values.toSorted(),
});

function remadeSpec(spec: PodSpec, isAdded: Added): PodSpec {
  const { affinity, ...plain } = specBeforeAdmission(spec);
  const own = withoutAdded(affinity, isAdded);
  return {
    ...plain,
    ...(spec.tolerations && {
      tolerations: spec.tolerations.filter(
        (toleration) => !isDefaultStay(toleration) && !isAdded.toleration(toleration),
      ),
    }),
    ...(own && { affinity: own }),
  };
}

type Affinity = NonNullable<PodSpec['affinity']>;
type NodeAffinity = NonNullable<Affinity['nodeAffinity']>;
type Term = NonNullable<
  NodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']
>['nodeSelectorTerms'][number];
type Requirement = NonNullable<Term['matchExpressions']>[number];

/**
 * The webhook adds to each of the pod's own terms, and makes a term where there is none. A term with nothing else in it
 * permitted all nodes before; where no term is left, the whole affinity did.
 */
function withoutAdded(affinity: Affinity | undefined, isAdded: Added): Affinity | undefined {
  const { nodeAffinity, ...rest } = affinity ?? {};
  const { requiredDuringSchedulingIgnoredDuringExecution: required } = nodeAffinity ?? {};
  const { ownPreferred: preferred } = isAdded;
  const terms = (required?.nodeSelectorTerms ?? []).map((term) => withoutRequirements(term, isAdded));
  const nodeSelectorTerms = [...new Map(terms.map((term) => [JSON.stringify(term), term])).values()];
  const isAll = terms.some((term) => Object.keys(term).length === 0);
  const node: NodeAffinity = {
    ...(preferred.length > 0 && { preferredDuringSchedulingIgnoredDuringExecution: preferred }),
    ...(!isAll && terms.length > 0
      ? { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } }
      : {}),
  };
  const whole: Affinity = { ...rest, ...(Object.keys(node).length > 0 && { nodeAffinity: node }) };
  return Object.keys(whole).length === 0 ? undefined : whole;
}

function withoutRequirements({ matchExpressions = [], matchFields = [] }: Term, isAdded: Added): Term {
  const own = matchExpressions.filter((requirement) => !isAdded.requirement(requirement));
  return {
    ...(own.length > 0 && { matchExpressions: own }),
    ...(matchFields.length > 0 && { matchFields }),
  };
}
