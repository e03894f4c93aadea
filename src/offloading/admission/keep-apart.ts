/**
 * Rules that keep pods on different hosts or in different zones, while the scheduler at home takes each virtual node for one host
 * (decision 75). Pure.
 */
import type { JsonPatchOperation } from '../../api/admission.ts';
import {
  ANNOTATION_PLACEMENT,
  ANNOTATION_PLACEMENT_OF_NAMESPACE,
  ANNOTATION_PLACEMENT_RULES,
} from '../../api/names.ts';
import {
  allAs,
  type ApartRules,
  carriedRulesOf,
  DEFAULT_PLACEMENT,
  foreignKeyOf,
  isHard,
  type Placement,
  placementOf,
  softTerm,
  PREFERRED,
  REQUIRED,
  unknownPlacement,
} from '../../api/placement.ts';
import type { Pod, PodAffinityTerm, TopologySpreadConstraint } from '../../api/wire.ts';

interface KeepApart {
  patch: JsonPatchOperation[];
  /** For the pod to have; undefined: not that one. */
  annotations: Record<string, string | undefined>;
  warnings: string[];
}

interface KeepApartFacts {
  /** What the namespace says. */
  placement: Placement | undefined;
  /** No real node is permitted. */
  isVirtualOnly: boolean;
}

/** Applied to its own result, it changes nothing. */
export function keepApart(pod: Pod, { placement: ofNamespace, isVirtualOnly }: KeepApartFacts): KeepApart {
  const own = placementOf(pod);
  const placement = own ?? ofNamespace ?? DEFAULT_PLACEMENT;
  const isRecorded = own === undefined && placement !== DEFAULT_PLACEMENT && speaksOfPods(pod);
  const recorded = { [ANNOTATION_PLACEMENT_OF_NAMESPACE]: isRecorded ? placement : undefined };
  const warnings = misspelt(pod);
  const hard = hardRulesOf(pod);
  if (hard.podAntiAffinity.length + hard.topologySpreadConstraints.length === 0)
    return { patch: [], annotations: recorded, warnings };
  if (placement === 'Soft') return { patch: softened(pod), annotations: recorded, warnings };
  // On real nodes only the scheduler here can see to it.
  if (!isVirtualOnly)
    return { patch: [], annotations: recorded, warnings: [...warnings, ...countedAsOne(hard)] };
  const before = carriedRulesOf(pod);
  const rules: ApartRules = {
    podAntiAffinity: [...(before?.podAntiAffinity ?? []), ...hard.podAntiAffinity],
    topologySpreadConstraints: [
      ...(before?.topologySpreadConstraints ?? []),
      ...hard.topologySpreadConstraints,
    ],
  };
  const annotations = { ...recorded, [ANNOTATION_PLACEMENT_RULES]: JSON.stringify(rules) };
  return { patch: withoutHard(pod), annotations, warnings };
}

const isAbout = ({ topologyKey }: { topologyKey: string }): boolean =>
  foreignKeyOf(topologyKey) !== undefined;
const isHardAbout = (one: TopologySpreadConstraint): boolean => isHard(one) && isAbout(one);

/** In its spec, or in what was taken out of it before. */
const speaksOfPods = ({ spec, metadata }: Pod): boolean =>
  metadata.annotations?.[ANNOTATION_PLACEMENT_RULES] !== undefined ||
  (spec?.affinity?.podAffinity ?? spec?.affinity?.podAntiAffinity ?? undefined) !== undefined ||
  (spec?.topologySpreadConstraints ?? []).length > 0;

const antiTerms = ({ spec }: Pod): PodAffinityTerm[] => spec?.affinity?.podAntiAffinity?.[REQUIRED] ?? [];

/** What keeps a second pod off a virtual node at home. */
const hardRulesOf = (pod: Pod): ApartRules => ({
  podAntiAffinity: antiTerms(pod).filter(isAbout),
  topologySpreadConstraints: (pod.spec?.topologySpreadConstraints ?? []).filter(isHardAbout),
});

function misspelt(pod: Pod): string[] {
  const problem = unknownPlacement(pod);
  return problem === undefined ? [] : [`tributary: ${problem}`];
}

/** Spread over hosts keeps no pod away for good: the real nodes count, too. */
const countedAsOne = ({ podAntiAffinity }: ApartRules): string[] =>
  podAntiAffinity.length === 0
    ? []
    : [
        'tributary: for the required podAntiAffinity of this pod, each virtual node counts as one host, since the pod may also run on ' +
          'real nodes; more of its kind go there with podStrategy Remote, or with the annotation ' +
          `${ANNOTATION_PLACEMENT}: Soft`,
      ];

/** The remaining terms, and what becomes of the hard ones. */
function patchOf(pod: Pod, soften: boolean, constraints: TopologySpreadConstraint[]): JsonPatchOperation[] {
  const { podAntiAffinity } = pod.spec?.affinity ?? {};
  const terms = antiTerms(pod);
  const others = terms.filter((term) => !isAbout(term));
  const preferred = [
    ...(podAntiAffinity?.[PREFERRED] ?? []),
    ...(soften ? terms.filter(isAbout).map(softTerm) : []),
  ];
  const value = {
    ...(others.length > 0 && { [REQUIRED]: others }),
    ...(preferred.length > 0 && { [PREFERRED]: preferred }),
  };
  return [
    ...(others.length === terms.length
      ? []
      : [{ op: 'add', path: '/spec/affinity/podAntiAffinity', value } as const]),
    ...((pod.spec?.topologySpreadConstraints ?? []).some(isHardAbout)
      ? [{ op: 'add', path: '/spec/topologySpreadConstraints', value: constraints } as const]
      : []),
  ];
}

function softened(pod: Pod): JsonPatchOperation[] {
  const all = pod.spec?.topologySpreadConstraints ?? [];
  return patchOf(pod, true, [
    ...all.filter((one) => !isAbout(one)),
    ...allAs('ScheduleAnyway', all.filter(isAbout)),
  ]);
}

const withoutHard = (pod: Pod): JsonPatchOperation[] =>
  patchOf(
    pod,
    false,
    (pod.spec?.topologySpreadConstraints ?? []).filter((one) => !isHardAbout(one)),
  );
