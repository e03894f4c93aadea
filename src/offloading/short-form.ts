import type { LabelSelector } from '../api/label-selector.ts';
import { matchesSelector } from '../api/label-selector.ts';
import { LABEL_OFFLOAD, LABEL_OFFLOADING_ORIGIN } from '../api/names.ts';
import { API_VERSION } from '../api/virtual-node.ts';
import { OFFLOADING_NAME } from '../api/namespace-offloading.ts';
import type { NamespaceOffloading, PodStrategy } from '../api/namespace-offloading.ts';
import type { Draft, KubeObject } from '../api/wire.ts';

/** Values of LABEL_OFFLOADING_ORIGIN. */
export type Origin = 'label' | 'selector';

/** What to do about the NamespaceOffloading of a namespace that may have the short form. */
export type ShortFormAction =
  | { kind: 'Nothing' }
  | { kind: 'Create'; draft: Draft<NamespaceOffloading> }
  | { kind: 'Patch'; body: object }
  | { kind: 'Delete' }
  | { kind: 'Complain'; reason: 'OffloadingRefused' | 'OffloadLabelInvalid'; message: string };

export interface ShortFormFacts {
  namespace: KubeObject;
  offloading: NamespaceOffloading | undefined;
  selector: LabelSelector | undefined;
  /** Why the namespace never leaves this cluster. */
  refusal: string | undefined;
}

const STRATEGIES: Readonly<Record<string, PodStrategy>> = {
  true: 'LocalAndRemote',
  Local: 'Local',
  Remote: 'Remote',
  LocalAndRemote: 'LocalAndRemote',
};
const NOTHING: ShortFormAction = { kind: 'Nothing' };

/**
 * Pure. A person's own object wins over label and selector; the label wins over the selector, and `false` keeps a
 * namespace home that the selector would take. A label that says nothing we know changes nothing: a slip of the hand
 * must not end what runs.
 */
export function shortFormAction({
  namespace,
  offloading,
  selector,
  refusal,
}: ShortFormFacts): ShortFormAction {
  const { metadata } = namespace;
  if (metadata.deletionTimestamp !== undefined) return NOTHING;
  const label = metadata.labels?.[LABEL_OFFLOAD];
  const wanted = wish(label, metadata.labels, selector);
  if (wanted === 'unknown') return { kind: 'Complain', ...unknownLabel(metadata.name, label) };
  const ours = isOurs(offloading) ? offloading : undefined;
  if (refusal !== undefined || wanted === undefined) {
    if (ours !== undefined) return { kind: 'Delete' };
    // Whom the operator's selector happens to match has asked for nothing.
    const isAsked = refusal !== undefined && wanted?.origin === 'label';
    return isAsked ? { kind: 'Complain', reason: 'OffloadingRefused', message: refusal } : NOTHING;
  }
  if (offloading === undefined) return { kind: 'Create', draft: draftOf(metadata.name, wanted) };
  return ours === undefined ? NOTHING : corrected(ours, wanted);
}

/** Made by the short form. One on its way out is waited for; what is wanted then is made when it has gone. */
const isOurs = (offloading: NamespaceOffloading | undefined): boolean =>
  offloading?.metadata.labels?.[LABEL_OFFLOADING_ORIGIN] !== undefined &&
  offloading.metadata.deletionTimestamp === undefined;

interface Wish {
  origin: Origin;
  podStrategy: PodStrategy;
}

function wish(
  label: string | undefined,
  labels: Record<string, string> = {},
  selector: LabelSelector | undefined,
): Wish | undefined | 'unknown' {
  if (label === undefined) {
    return selector !== undefined && matchesSelector(selector, labels)
      ? { origin: 'selector', podStrategy: 'LocalAndRemote' }
      : undefined;
  }
  if (label === 'false') return undefined;
  const podStrategy = Object.hasOwn(STRATEGIES, label) ? STRATEGIES[label] : undefined;
  return podStrategy === undefined ? 'unknown' : { origin: 'label', podStrategy };
}

const draftOf = (namespace: string, { origin, podStrategy }: Wish): Draft<NamespaceOffloading> => ({
  apiVersion: API_VERSION,
  kind: 'NamespaceOffloading',
  metadata: { name: OFFLOADING_NAME, namespace, labels: { [LABEL_OFFLOADING_ORIGIN]: origin } },
  spec: { podStrategy },
});

/** What a person has set in it besides stays. */
function corrected({ metadata, spec }: NamespaceOffloading, { origin, podStrategy }: Wish): ShortFormAction {
  const labels =
    metadata.labels?.[LABEL_OFFLOADING_ORIGIN] === origin ? undefined : { [LABEL_OFFLOADING_ORIGIN]: origin };
  const differs = (spec.podStrategy ?? 'LocalAndRemote') !== podStrategy;
  if (labels === undefined && !differs) return NOTHING;
  const { uid } = metadata;
  return {
    kind: 'Patch',
    body: { metadata: { uid, ...(labels && { labels }) }, ...(differs && { spec: { podStrategy } }) },
  };
}

const unknownLabel = (
  namespace: string,
  label: string | undefined,
): { reason: 'OffloadLabelInvalid'; message: string } => ({
  reason: 'OffloadLabelInvalid',
  message:
    `label ${LABEL_OFFLOAD}=${label} of namespace ${namespace} says nothing that is known, so nothing was changed; ` +
    `allowed: ${Object.keys(STRATEGIES).join(', ')}, false`,
});
