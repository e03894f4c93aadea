import type { Admission } from '../../api/admission.ts';
import {
  ANNOTATION_AVOIDS,
  ANNOTATION_PREFERRED,
  ANNOTATION_STRATEGY,
  ANNOTATION_TOO_LARGE,
  LABEL_OFFLOAD,
  LABEL_OFFLOADING_ORIGIN,
} from '../../api/names.ts';
import type { NamespaceOffloading, PodStrategy } from '../../api/namespace-offloading.ts';
import { PREFERRED, REQUIRED, unknownPlacement } from '../../api/placement.ts';
import { claimVolumes, isOfDaemonSet } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import type { AdmittedKind } from '../admitted/admitted-pods.ts';
import { isKeptHome } from '../held-off.ts';
import { avoidsMark, isVirtualOnly, nodesToAvoid, type SelectedNode, tooLargeMark } from './avoid.ts';
import { keepApart } from './keep-apart.ts';
import { narrowed, type NodeTerm } from './node-terms.ts';
import { affinity, record, tolerate } from './patches.ts';
import { preferring } from './prefer.ts';
import { termsOf, toleratesAll, toleratesAny } from './strategy.ts';

export interface AdmissionFacts {
  /** Of the pod's namespace; undefined: it is not offloaded. */
  offloading: NamespaceOffloading | undefined;
  /** VirtualNodes whose cluster has failed to take the namespace, or is about to lose it. */
  failedNodes: readonly string[];
  /** Virtual nodes that the offloading selects. */
  selected?: readonly SelectedNode[];
  /** Some virtual node takes pods that do not tolerate its taint. */
  isOpen: boolean;
  nowMs: number;
}

interface Admitted extends Admission {
  /** Its maker may be a controller, which shows no warnings: of which pods something is to be told; see src/offloading/admitted. */
  toTell?: AdmittedKind;
}

const NOTHING: Admission = { patch: [], warnings: [] };

/**
 * Pure: what has to be added to a pod that is being created, so that the scheduler follows the strategy. It only narrows: it
 * permits no node that the pod itself does not permit. Applied to its own result, it changes nothing.
 */
export function admit(pod: Pod, facts: AdmissionFacts): Admitted {
  const { offloading } = facts;
  if (offloading === undefined || offloading.metadata.deletionTimestamp !== undefined) return NOTHING;
  // The controller of a DaemonSet has chosen the node, by matchFields.
  if (isPlaced(pod) || isOfDaemonSet(pod)) return NOTHING;
  const strategy = strategyFor(pod, offloading, facts.nowMs);
  const tolerations = pod.spec?.tolerations ?? [];
  // The taint alone keeps all other pods home, where it does.
  if (strategy === 'Local' && !facts.isOpen && !toleratesAny(tolerations)) return NOTHING;
  return steer(pod, strategy, { ...facts, offloading });
}

/** What is added, where the strategy is to be said at all. */
function steer(
  pod: Pod,
  strategy: PodStrategy,
  facts: AdmissionFacts & { offloading: NamespaceOffloading },
): Admitted {
  const { offloading, selected = [] } = facts;
  const away = nodesToAvoid(pod, facts, strategy);
  const placement = place(pod, termsOf(strategy, offloading.spec.clusterSelector ?? {}, away.nodes));
  const preference = preferring(pod, strategy, { selected, away: away.nodes });
  const apart = keptApart(pod, facts, strategy);
  const isAbroad = strategy !== 'Local';
  const isLetIn = !isAbroad || toleratesAll(pod.spec?.tolerations ?? []) || areOpen(selected);
  return {
    patch: [
      ...(isLetIn ? [] : [tolerate(pod)]),
      ...affinity(pod, present({ [REQUIRED]: placement.required, [PREFERRED]: preference.terms })),
      ...apart.patch,
      ...record(pod, {
        [ANNOTATION_STRATEGY]: strategy,
        [ANNOTATION_AVOIDS]: isAbroad ? avoidsMark(away.nodes) : undefined,
        [ANNOTATION_TOO_LARGE]: isAbroad ? tooLargeMark(away.tooLarge) : undefined,
        [ANNOTATION_PREFERRED]: preference.mark,
        ...apart.annotations,
      }),
    ],
    warnings: [...away.warnings, ...placement.warnings, ...apart.warnings],
    ...present({ toTell: isAbroad ? toTell(pod, away.tooLarge) : undefined }),
  };
}

const toTell = (pod: Pod, tooLarge: Readonly<Record<string, string>>): AdmittedKind | undefined => {
  if (unknownPlacement(pod) !== undefined) return 'any';
  return Object.keys(tooLarge).length > 0 ? 'waiting' : undefined;
};

/** A pod that stays on real nodes is the scheduler's alone. */
const keptApart = (
  pod: Pod,
  { offloading, selected = [] }: AdmissionFacts & { offloading: NamespaceOffloading },
  strategy: PodStrategy,
): ReturnType<typeof keepApart> =>
  strategy === 'Local'
    ? { ...NOTHING, annotations: {} }
    : keepApart(pod, {
        placement: offloading.spec.placement,
        isVirtualOnly: isVirtualOnly(pod, selected, strategy),
      });

/**
 * Nodes that let in every pod need no toleration, and none is added: nobody may take it from a pod again, as programs do that write
 * a pod's tolerations anew. Where no node is known yet, its taint is expected.
 */
const areOpen = (selected: readonly SelectedNode[]): boolean =>
  selected.length > 0 && selected.every(({ isTainted }) => !isTainted);

/**
 * A pod that people keep home leaves a cluster that is tethered: its own nodes are not for it. While a cluster is away whose pods
 * come home, all stay home but those whose data may be there.
 */
export function strategyFor(pod: Pod, offloading: NamespaceOffloading, nowMs: number): PodStrategy {
  const { metadata, spec } = offloading;
  if (metadata.labels?.[LABEL_OFFLOADING_ORIGIN] !== 'tether') {
    if (pod.metadata.labels?.[LABEL_OFFLOAD] === 'false') return 'Local';
    if (isKeptHome(offloading, nowMs) && claimVolumes(pod).length === 0) return 'Local';
  }
  return spec.podStrategy ?? 'LocalAndRemote';
}

/** Not the scheduler's to place: bound by hand, or a kubelet's own pod, read from files (shown as a mirror pod). */
function isPlaced({ metadata, spec }: Pod): boolean {
  const { 'kubernetes.io/config.mirror': mirror, 'kubernetes.io/config.source': source } =
    metadata.annotations ?? {};
  return (spec?.nodeName ?? '') !== '' || mirror !== undefined || (source !== undefined && source !== 'api');
}

interface Placement {
  /** Undefined: the pod says it already. */
  required?: { nodeSelectorTerms: NodeTerm[] };
  warnings: string[];
}

function place({ spec }: Pod, ours: ReturnType<typeof termsOf>): Placement {
  if (ours.length === 0) return { warnings: [] };
  const own = spec?.affinity?.nodeAffinity?.[REQUIRED]?.nodeSelectorTerms;
  const { terms, isContradiction, isSimplified } = narrowed(own, ours);
  const warnings = [
    ...(isContradiction ? ["the pod's own node affinity permits no node that the strategy permits"] : []),
    ...(isSimplified ? ['too many terms of node affinity: the pod is kept on real nodes'] : []),
  ].map((text) => `tributary: ${text}`);
  const isAsWanted = terms === undefined || deepEqual(own, terms);
  return { ...(!isAsWanted && { required: { nodeSelectorTerms: terms } }), warnings };
}
