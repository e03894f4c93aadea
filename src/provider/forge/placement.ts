/**
 * What a pod says about other pods on hosts and in zones, as it is said over there (decision 75). Which nodes it wants is said about
 * nodes at home, and stays there. Pure.
 */
import {
  ANNOTATION_PLACEMENT,
  ANNOTATION_PLACEMENT_RULES,
  OFFLOADED_REASONS,
  type OffloadedReason,
} from '../../api/names.ts';
import {
  allAs,
  carriedRulesOf,
  foreignKeyOf,
  isHard,
  type Placement,
  placementFor,
  softTerm,
  withoutMergedKeys,
  PREFERRED,
  REQUIRED,
} from '../../api/placement.ts';
import type {
  Pod,
  PodAffinityTerm,
  PodSpec,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from '../../api/wire.ts';
import { tenantsMeant } from './affinity-namespaces.ts';
import type { ForgeContext } from './context.ts';

interface ForgedPlacement {
  spec: Pick<PodSpec, 'affinity' | 'topologySpreadConstraints'>;
  /** Rules that do not hold over there, each with why, for people. */
  left: string[];
  /** Hard rules without which the pod may not run there. */
  refused: string[];
  /** One of them can be said in no foreign cluster. */
  isNowhere?: boolean;
}

type Affinity = NonNullable<PodSpec['affinity']>;
type AffinityKind = 'podAffinity' | 'podAntiAffinity';

/** A rule in words of the foreign cluster; or why there is none. `none`: it says nothing over there, which does no harm. */
type Translation<T> = { rule: T } | 'none' | { why: string; isFatal: boolean; isNowhere?: true };

export function forgePlacement(home: Pod, context: ForgeContext): ForgedPlacement {
  const carried = carriedRulesOf(home);
  const placement = placementFor(home);
  const forging = new Forging(home, context, placement);
  if (carried === undefined) forging.refuse(`annotation ${ANNOTATION_PLACEMENT_RULES} cannot be read`, true);
  const podAffinity = forging.affinity('podAffinity', []);
  const podAntiAffinity = forging.affinity('podAntiAffinity', carried?.podAntiAffinity ?? []);
  const topologySpreadConstraints = forging.spread(carried?.topologySpreadConstraints ?? []);
  const affinity: Affinity = {
    ...(podAffinity && { podAffinity }),
    ...(podAntiAffinity && { podAntiAffinity }),
  };
  return {
    spec: {
      ...(Object.keys(affinity).length > 0 && { affinity }),
      ...(topologySpreadConstraints.length > 0 && { topologySpreadConstraints }),
    },
    left: forging.left,
    refused: forging.refused,
    ...(forging.isNowhere && { isNowhere: true }),
  };
}

/** Why a pod may not run over there; undefined: it may. */
export const placementRefusal = ({
  refused,
  isNowhere = false,
}: ForgedPlacement): { reason: OffloadedReason; message: string } | undefined =>
  refused.length === 0
    ? undefined
    : {
        reason: isNowhere ? OFFLOADED_REASONS.placementNowhere : OFFLOADED_REASONS.placementNotPossible,
        message: `${refused.join('; ')}; change the rule, or let it go with the annotation ${ANNOTATION_PLACEMENT}: Soft`,
      };

class Forging {
  readonly left: string[] = [];
  readonly refused: string[] = [];
  isNowhere = false;
  readonly #home: Pod;
  readonly #context: ForgeContext;
  readonly #placement: Placement;

  constructor(home: Pod, context: ForgeContext, placement: Placement) {
    this.#home = home;
    this.#context = context;
    this.#placement = placement;
  }

  refuse(why: string, isNowhere: boolean): void {
    this.refused.push(why);
    this.isNowhere ||= isNowhere;
  }

  affinity(kind: AffinityKind, carried: readonly PodAffinityTerm[]): Affinity[AffinityKind] {
    const said = this.#home.spec?.affinity?.[kind] ?? undefined;
    const terms = [...(said?.[REQUIRED] ?? []), ...carried].flatMap((term) => this.#term(kind, term, true));
    const wishes = (said?.[PREFERRED] ?? []).flatMap(({ weight, podAffinityTerm }) =>
      this.#term(kind, podAffinityTerm, false).map((term): WeightedPodAffinityTerm => ({
        weight,
        podAffinityTerm: term,
      })),
    );
    return asAffinity(...this.#sorted(kind, terms, wishes));
  }

  /** Required and preferred terms, as the choice has them. */
  #sorted(
    kind: AffinityKind,
    terms: readonly PodAffinityTerm[],
    wishes: readonly WeightedPodAffinityTerm[],
  ): [PodAffinityTerm[], WeightedPodAffinityTerm[]] {
    if (this.#placement === 'Soft') return [[], [...terms.map(softTerm), ...wishes]];
    // To be near a pod that may never come is no rule to harden.
    return this.#placement === 'Hard' && kind === 'podAntiAffinity'
      ? [[...terms, ...wishes.map(({ podAffinityTerm }) => podAffinityTerm)], []]
      : [[...terms], [...wishes]];
  }

  spread(carried: readonly TopologySpreadConstraint[]): TopologySpreadConstraint[] {
    const said = this.#home.spec?.topologySpreadConstraints ?? [];
    const constraints = [...carried, ...said].flatMap((constraint) => {
      const translated = this.#translated(constraint, () => 'all');
      return this.#judged('topologySpreadConstraints', constraint, isHard(constraint), translated);
    });
    if (this.#placement === 'Propagate') return constraints;
    return allAs(this.#placement === 'Soft' ? 'ScheduleAnyway' : 'DoNotSchedule', constraints);
  }

  #term(kind: AffinityKind, term: PodAffinityTerm, isRequired: boolean): PodAffinityTerm[] {
    const { namespaces: _names, namespaceSelector: _selector, ...rest } = term;
    const translated = this.#translated(rest, () => tenantsMeant(this.#home, term, this.#context));
    const isVain = translated === 'none' && kind === 'podAffinity';
    const judged = isVain
      ? { why: 'none of its namespaces is in the foreign cluster', isFatal: true }
      : translated;
    return this.#judged(kind, term, isRequired, judged);
  }

  /** Refuses the pod, or leaves the rule behind, where it cannot be said. */
  #judged<T extends { topologyKey: string }>(
    what: string,
    { topologyKey }: T,
    isRequired: boolean,
    translated: Translation<T>,
  ): T[] {
    if (translated === 'none') return [];
    if ('rule' in translated) return [translated.rule];
    const { why, isFatal, isNowhere = false } = translated;
    const isStrict = this.#placement === 'Hard' || (isRequired && isFatal);
    const message = `${isRequired ? 'required ' : ''}${what} by ${topologyKey} is not said over there: ${why}`;
    if (isStrict && this.#placement !== 'Soft') this.refuse(message, isNowhere);
    else this.left.push(message);
    return [];
  }

  #translated<T extends PodAffinityTerm | TopologySpreadConstraint>(
    rule: T,
    where: () => ReturnType<typeof tenantsMeant> | 'all',
  ): Translation<T> {
    const topologyKey = foreignKeyOf(rule.topologyKey);
    if (topologyKey === undefined) {
      // The whole foreign cluster has that one value of it, and the scheduler at home has seen to the rule.
      if (this.#context.nodeHas?.(rule.topologyKey) === true) return 'none';
      // As on a real node without the label: such a rule is no rule there.
      return { why: 'only host, zone and region mean the same in every cluster', isFatal: false };
    }
    const namespaces = where();
    if (namespaces === 'none') return 'none';
    if (namespaces === 'unknown') {
      return {
        why: 'its namespaceSelector speaks of labels, and namespaces have others there',
        isFatal: true,
        isNowhere: true,
      };
    }
    const more = typeof namespaces === 'string' ? {} : namespaces;
    return { rule: { ...withoutMergedKeys(rule), topologyKey, ...more } };
  }
}

const asAffinity = (
  required: PodAffinityTerm[],
  preferred: WeightedPodAffinityTerm[],
): Affinity[AffinityKind] =>
  required.length + preferred.length === 0
    ? undefined
    : {
        ...(required.length > 0 && { [REQUIRED]: required }),
        ...(preferred.length > 0 && { [PREFERRED]: preferred }),
      };
