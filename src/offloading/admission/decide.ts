import type { Admission, JsonPatchOperation } from '../../api/admission.ts';
import {
  ANNOTATION_AVOIDS,
  ANNOTATION_STRATEGY,
  LABEL_OFFLOAD,
  LABEL_OFFLOADING_ORIGIN,
} from '../../api/names.ts';
import type { NamespaceOffloading, PodStrategy } from '../../api/namespace-offloading.ts';
import { isOfDaemonSet } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import { avoidsMark, isVirtualOnly, nodesToAvoid, type SelectedNode } from './avoid.ts';
import { keepApart } from './keep-apart.ts';
import { narrowed, type NodeTerm } from './node-terms.ts';
import { termsOf, toleratesAll, toleratesAny, TOLERATION } from './strategy.ts';

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

const NOTHING: Admission = { patch: [], warnings: [] };

/**
 * Pure: what has to be added to a pod that is being created, so that the scheduler follows the strategy. It only narrows: it
 * permits no node that the pod itself does not permit. Applied to its own result, it changes nothing.
 */
export function admit(pod: Pod, facts: AdmissionFacts): Admission {
  const { offloading } = facts;
  if (offloading === undefined || offloading.metadata.deletionTimestamp !== undefined) return NOTHING;
  // The controller of a DaemonSet has chosen the node, by matchFields.
  if (isPlaced(pod) || isOfDaemonSet(pod)) return NOTHING;
  const strategy = strategyFor(pod, offloading);
  const tolerations = pod.spec?.tolerations ?? [];
  // The taint alone keeps all other pods home, where it does.
  if (strategy === 'Local' && !facts.isOpen && !toleratesAny(tolerations)) return NOTHING;
  const away = nodesToAvoid(pod, { ...facts, offloading }, strategy);
  const placement = place(pod, termsOf(strategy, offloading.spec.clusterSelector ?? {}, away.nodes));
  const isLetIn = strategy === 'Local' || toleratesAll(tolerations) || areOpen(facts.selected);
  const apart = keptApart(pod, { ...facts, offloading }, strategy);
  return {
    patch: [
      ...(isLetIn ? [] : [tolerate(pod)]),
      ...placement.patch,
      ...apart.patch,
      ...record(pod, { ...marksOf(strategy, away.nodes), ...apart.annotations }),
    ],
    warnings: [...away.warnings, ...placement.warnings, ...apart.warnings],
  };
}

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
const areOpen = (selected: readonly SelectedNode[] = []): boolean =>
  selected.length > 0 && selected.every(({ isTainted }) => !isTainted);

/** A pod that people keep home leaves a cluster that is tethered: its own nodes are not for it. */
export function strategyFor({ metadata: pod }: Pod, { metadata, spec }: NamespaceOffloading): PodStrategy {
  const isForwarded = metadata.labels?.[LABEL_OFFLOADING_ORIGIN] === 'tether';
  return pod.labels?.[LABEL_OFFLOAD] === 'false' && !isForwarded
    ? 'Local'
    : (spec.podStrategy ?? 'LocalAndRemote');
}

/** Not the scheduler's to place: bound by hand, or a kubelet's own pod, read from files (shown as a mirror pod). */
function isPlaced({ metadata, spec }: Pod): boolean {
  const { 'kubernetes.io/config.mirror': mirror, 'kubernetes.io/config.source': source } =
    metadata.annotations ?? {};
  return (spec?.nodeName ?? '') !== '' || mirror !== undefined || (source !== undefined && source !== 'api');
}

const tolerate = ({ spec }: Pod): JsonPatchOperation =>
  spec?.tolerations === undefined || spec.tolerations === null
    ? { op: 'add', path: '/spec/tolerations', value: [TOLERATION] }
    : { op: 'add', path: '/spec/tolerations/-', value: TOLERATION };

function place(pod: Pod, ours: ReturnType<typeof termsOf>): Admission {
  if (ours.length === 0) return NOTHING;
  const own =
    pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const { terms, isContradiction, isSimplified } = narrowed(own, ours);
  const warnings = [
    ...(isContradiction ? ["the pod's own node affinity permits no node that the strategy permits"] : []),
    ...(isSimplified ? ['too many terms of node affinity: the pod is kept on real nodes'] : []),
  ].map((text) => `tributary: ${text}`);
  const isAsWanted = terms === undefined || deepEqual(own, terms);
  return { patch: isAsWanted ? [] : [require(pod, terms)], warnings };
}

/** Adds to the innermost object that exists; `add` replaces a member of the same name (RFC 6902, section 4.1). */
function require({ spec }: Pod, nodeSelectorTerms: NodeTerm[]): JsonPatchOperation {
  const required = { nodeSelectorTerms };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
  const affinity = spec?.affinity ?? undefined;
  if (affinity === undefined) return { op: 'add', path: '/spec/affinity', value: { nodeAffinity } };
  if ((affinity.nodeAffinity ?? undefined) === undefined) {
    return { op: 'add', path: '/spec/affinity/nodeAffinity', value: nodeAffinity };
  }
  const path = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution';
  return { op: 'add', path, value: required };
}

const marksOf = (strategy: PodStrategy, away: readonly string[]): Record<string, string | undefined> => ({
  [ANNOTATION_STRATEGY]: strategy,
  [ANNOTATION_AVOIDS]: strategy === 'Local' ? undefined : avoidsMark(away),
});

/** Whatever the pod has said itself; undefined: nothing is to be said. */
function record({ metadata }: Pod, marks: Record<string, string | undefined>): JsonPatchOperation[] {
  const { annotations } = metadata;
  if (annotations === undefined || annotations === null) {
    return [{ op: 'add', path: '/metadata/annotations', value: present(marks) }];
  }
  return Object.entries(marks)
    .filter(([key, value = '']) => (annotations[key] ?? '') !== value)
    .map(([key, value = '']) => {
      const path = `/metadata/annotations/${key.replaceAll('/', '~1')}`;
      return { op: 'add', path, value };
    });
}
