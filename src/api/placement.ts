/**
 * What a pod says about the hosts, zones and regions of other pods, on its way to a foreign cluster: read by the webhook at home
 * and by the agent. Pure.
 */
import { isFields, withoutKeys } from '../lib/fields.ts';
import {
  ANNOTATION_PLACEMENT,
  ANNOTATION_PLACEMENT_OF_NAMESPACE,
  ANNOTATION_PLACEMENT_RULES,
} from './names.ts';
import type { Pod, PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm } from './wire.ts';

/** Fields of each sort of affinity. */
export const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
export const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/**
 * Propagate: rules travel as they are. Soft: what is required is only preferred. Hard: what keeps pods apart is required, and a
 * pod with a rule that cannot be said over there does not run there.
 */
export const PLACEMENTS = ['Propagate', 'Soft', 'Hard'] as const;
export type Placement = (typeof PLACEMENTS)[number];
export const DEFAULT_PLACEMENT: Placement = 'Propagate';

/** In any letter case: no other word could be meant. */
const placementIn = (text: string | undefined): Placement | undefined =>
  PLACEMENTS.find((one) => one.toLowerCase() === text?.toLowerCase());

/** What the pod itself says; undefined: nothing, or nothing that is understood. */
export const placementOf = ({ metadata }: Pick<Pod, 'metadata'>): Placement | undefined =>
  placementIn(metadata.annotations?.[ANNOTATION_PLACEMENT]);

/** What holds for a pod that the webhook has let in. */
export const placementFor = (pod: Pick<Pod, 'metadata'>): Placement =>
  placementOf(pod) ??
  placementIn(pod.metadata.annotations?.[ANNOTATION_PLACEMENT_OF_NAMESPACE]) ??
  DEFAULT_PLACEMENT;

/** What is wrong with what the pod says; undefined: nothing. */
export function unknownPlacement(pod: Pick<Pod, 'metadata'>): string | undefined {
  const text = pod.metadata.annotations?.[ANNOTATION_PLACEMENT];
  return text === undefined || placementIn(text) !== undefined
    ? undefined
    : `annotation ${ANNOTATION_PLACEMENT}: ${JSON.stringify(text.slice(0, 32))} is none of ` +
        `${PLACEMENTS.join(', ')}, and counts as not said`;
}

/** The same, with what holds instead and what to do, for a pod that is there already. */
export function unknownPlacementNews(pod: Pick<Pod, 'metadata'>): string | undefined {
  const problem = unknownPlacement(pod);
  const isOfNamespace = pod.metadata.annotations?.[ANNOTATION_PLACEMENT_OF_NAMESPACE] !== undefined;
  return (
    problem &&
    `${problem}: ${placementFor(pod)} holds, ${isOfNamespace ? 'as its namespace says' : 'which is the default'}; ` +
      'correct it where the pod is made, in the template of its Deployment for example'
  );
}

export const HOSTNAME = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';

/** Keys that mean the same on the nodes of every cluster. */
export const TOPOLOGY_KEYS: readonly string[] = [HOSTNAME, ZONE, REGION];

const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', ZONE],
  ['failure-domain.beta.kubernetes.io/region', REGION],
]);

/** The key by which a foreign cluster knows the same; undefined: it means something at home only. */
export const foreignKeyOf = (key: string): string | undefined =>
  TOPOLOGY_KEYS.includes(key) ? key : FORMER_KEYS.get(key);

/** Hard rules that keep pods apart. */
export interface ApartRules {
  podAntiAffinity: PodAffinityTerm[];
  topologySpreadConstraints: TopologySpreadConstraint[];
}

/** What ANNOTATION_PLACEMENT_RULES says: nothing where it is absent, undefined where it cannot be read. */
export function carriedRulesOf({ metadata }: Pod): ApartRules | undefined {
  const text = metadata.annotations?.[ANNOTATION_PLACEMENT_RULES];
  if (text === undefined) return { podAntiAffinity: [], topologySpreadConstraints: [] };
  const value = parsed(text);
  if (!isFields(value)) return undefined;
  const { podAntiAffinity = [], topologySpreadConstraints = [] } = value;
  return areRules<PodAffinityTerm>(podAntiAffinity) &&
    areRules<TopologySpreadConstraint>(topologySpreadConstraints)
    ? { podAntiAffinity, topologySpreadConstraints }
    : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Of the rest, the API server that the rules are sent to is the judge. */
const areRules = <T extends { topologyKey: string }>(list: unknown): list is T[] =>
  Array.isArray(list) && list.every((one) => isFields(one) && typeof one['topologyKey'] === 'string');

/** The highest weight that there is: what was required counts before all that was only preferred. */
const SOFTENED_WEIGHT = 100;

export const softTerm = (podAffinityTerm: PodAffinityTerm): WeightedPodAffinityTerm => ({
  weight: SOFTENED_WEIGHT,
  podAffinityTerm,
});

export const isHard = ({ whenUnsatisfiable }: TopologySpreadConstraint): boolean =>
  whenUnsatisfiable === 'DoNotSchedule';

/**
 * The constraints, each of them hard, or each of them soft. Of one key, an API server takes one of each sort: then the one that was
 * hard counts.
 */
export function allAs(
  whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway',
  constraints: readonly TopologySpreadConstraint[],
): TopologySpreadConstraint[] {
  const hardFirst = constraints.toSorted((a, b) => Number(isHard(b)) - Number(isHard(a)));
  const byKey = new Map<string, TopologySpreadConstraint>();
  for (const { minDomains, ...constraint } of hardFirst) {
    const { topologyKey } = constraint;
    // A number of domains can be required only.
    const domains = whenUnsatisfiable === 'DoNotSchedule' && minDomains !== undefined && { minDomains };
    if (!byKey.has(topologyKey)) byKey.set(topologyKey, { ...constraint, ...domains, whenUnsatisfiable });
  }
  return [...byKey.values()];
}

const LABEL_KEYS = ['matchLabelKeys', 'mismatchLabelKeys'] as const;

/**
 * As its maker said it: an API server writes what these keys select into the selector of a pod that is made (KEP-3633), and takes no
 * pod in which it has been done already. One that has not been there yet keeps them.
 */
export function withoutMergedKeys<T extends PodAffinityTerm | TopologySpreadConstraint>(rule: T): T {
  const merged = new Set(rule.labelSelector?.matchExpressions?.map(({ key }) => key));
  const said: Pick<PodAffinityTerm, (typeof LABEL_KEYS)[number]> = rule;
  const kept = LABEL_KEYS.flatMap((list) => {
    const keys = said[list]?.filter((key) => !merged.has(key)) ?? [];
    return keys.length === 0 ? [] : [[list, keys]];
  });
  return { ...withoutKeys(rule, LABEL_KEYS), ...(Object.fromEntries(kept) as Partial<T>) };
}

/** Keys of its rules that mean something at home only: what they say holds on a virtual node that bears them as labels. */
export function homeKeysOf(pod: Pod): string[] {
  const { podAffinity, podAntiAffinity } = pod.spec?.affinity ?? {};
  const carried = carriedRulesOf(pod);
  const terms = [podAffinity, podAntiAffinity].flatMap((one) => [
    ...(one?.[REQUIRED] ?? []),
    ...(one?.[PREFERRED] ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ]);
  const rules: readonly { topologyKey: string }[] = [
    ...terms,
    ...(pod.spec?.topologySpreadConstraints ?? []),
    ...(carried?.podAntiAffinity ?? []),
    ...(carried?.topologySpreadConstraints ?? []),
  ];
  const keys = rules.map(({ topologyKey }) => topologyKey);
  return [...new Set(keys.filter((key) => foreignKeyOf(key) === undefined))];
}
