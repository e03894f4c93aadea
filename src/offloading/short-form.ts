import { type LabelSelector, matchesSelector } from '../api/label-selector.ts';
import type { Forwarding } from '../api/cluster-mode.ts';
import { LABEL_OFFLOAD, LABEL_OFFLOADING_ORIGIN, LABEL_VIRTUAL_NODE } from '../api/names.ts';
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  type NamespaceOffloadingSpec,
  OFFLOADING_NAME,
  type PodStrategy,
} from '../api/namespace-offloading.ts';
import { API_VERSION } from '../api/virtual-node.ts';
import type { Draft, KubeObject } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import { deleteByUid } from '../kube/write.ts';
import { deepEqual } from '../lib/equality.ts';
import { ignoring } from '../lib/errors.ts';
import { isOfTether, ORIGIN_TETHER, type View } from './view.ts';

/** Values of LABEL_OFFLOADING_ORIGIN. */
type Origin = 'label' | 'selector' | typeof ORIGIN_TETHER;

/** What to do about the NamespaceOffloading of a namespace that may use the short form. */
export type ShortFormAction =
  | { kind: 'Nothing' }
  | { kind: 'Create'; draft: Draft<NamespaceOffloading> }
  | { kind: 'Patch'; body: object }
  | { kind: 'Delete' }
  | { kind: 'Complain'; reason: 'OffloadingRefused' | 'OffloadLabelInvalid'; message: string };

/** What the operator offloads without anybody's label. */
export interface SelectedNamespaces {
  selector: LabelSelector;
  podStrategy: PodStrategy;
}

interface ShortFormFacts {
  namespace: KubeObject;
  offloading: NamespaceOffloading | undefined;
  selected: SelectedNamespaces | undefined;
  /** What the mode of the cluster says; undefined: nothing. */
  tether?: Forwarding | undefined;
  /** Why the namespace never leaves this cluster. */
  refusal: string | undefined;
}

/** The values of the label of a namespace, and what they stand for. */
export const LABEL_STRATEGIES: Readonly<Record<string, PodStrategy>> = {
  true: 'LocalAndRemote',
  Local: 'Local',
  Remote: 'Remote',
  LocalAndRemote: 'LocalAndRemote',
};
const NOTHING: ShortFormAction = { kind: 'Nothing' };

/**
 * Pure. A person's own object wins over label and selector. The label wins over the selector, and `false` keeps a namespace
 * home that the selector matches. While the cluster is tethered, its tether wins over both. A label with an unknown value changes nothing: a typing error must not end what runs.
 */
export function shortFormAction({
  namespace,
  offloading,
  selected,
  tether,
  refusal,
}: ShortFormFacts): ShortFormAction {
  const { metadata } = namespace;
  if (metadata.deletionTimestamp !== undefined) return NOTHING;
  const label = metadata.labels?.[LABEL_OFFLOAD];
  const wanted = tether === undefined ? wantedBy(label, metadata.labels, selected) : forwarded(tether);
  if (wanted === 'unknown') return { kind: 'Complain', ...unknownLabel(metadata.name, label) };
  const ours = isOurs(offloading) ? offloading : undefined;
  if (refusal !== undefined || wanted === undefined) {
    if (ours !== undefined) return { kind: 'Delete' };
    // A namespace that only the operator's selector matches has not asked for anything.
    const isAsked = refusal !== undefined && wanted?.origin === 'label';
    return isAsked ? { kind: 'Complain', reason: 'OffloadingRefused', message: refusal } : NOTHING;
  }
  if (offloading === undefined) return { kind: 'Create', draft: draftOf(metadata.name, wanted) };
  return ours === undefined ? NOTHING : corrected(ours, wanted);
}

/** Made by the short form, and not being deleted: what is wanted after a deletion is made when the object is gone. */
const isOurs = (offloading: NamespaceOffloading | undefined): boolean =>
  offloading?.metadata.labels?.[LABEL_OFFLOADING_ORIGIN] !== undefined &&
  offloading.metadata.deletionTimestamp === undefined;

interface Wanted {
  origin: Origin;
  podStrategy: PodStrategy;
  /** Absent: people may set them. */
  more?: Pick<NamespaceOffloadingSpec, 'clusterSelector' | 'existingPods'>;
}

/** To the Nodes of one cluster only: what it is tethered to decides where pods run. */
const forwarded = ({ podStrategy, nodes, evict }: Forwarding): Wanted => ({
  origin: ORIGIN_TETHER,
  podStrategy,
  more: {
    clusterSelector: {
      matchExpressions: [{ key: LABEL_VIRTUAL_NODE, operator: 'In', values: nodes.toSorted() }],
    },
    existingPods: evict ? 'Move' : 'Stay',
  },
});

function wantedBy(
  label: string | undefined,
  labels: Record<string, string> = {},
  selected: SelectedNamespaces | undefined,
): Wanted | undefined | 'unknown' {
  if (label === undefined) {
    return selected !== undefined && matchesSelector(selected.selector, labels)
      ? { origin: 'selector', podStrategy: selected.podStrategy }
      : undefined;
  }
  if (label === 'false') return undefined;
  const podStrategy = Object.hasOwn(LABEL_STRATEGIES, label) ? LABEL_STRATEGIES[label] : undefined;
  return podStrategy === undefined ? 'unknown' : { origin: 'label', podStrategy };
}

const draftOf = (namespace: string, { origin, podStrategy, more }: Wanted): Draft<NamespaceOffloading> => ({
  apiVersion: API_VERSION,
  kind: 'NamespaceOffloading',
  metadata: { name: OFFLOADING_NAME, namespace, labels: { [LABEL_OFFLOADING_ORIGIN]: origin } },
  spec: { podStrategy, ...more },
});

/** The object that the short form stands for, before there is one. */
export const shortFormOf = (namespace: string, podStrategy: PodStrategy): NamespaceOffloading => {
  const { metadata, spec } = draftOf(namespace, { origin: 'label', podStrategy });
  return {
    metadata: { ...metadata, name: OFFLOADING_NAME, uid: '', resourceVersion: '', creationTimestamp: '' },
    spec,
  };
};

/** Other fields that a person has set stay as they are. */
function corrected(ours: NamespaceOffloading, { origin, podStrategy, more = {} }: Wanted): ShortFormAction {
  const { metadata, spec } = ours;
  // Pods come home first, as the removal brings them; then it is made anew as its namespace asks for.
  if (isOfTether(ours) && origin !== ORIGIN_TETHER) return { kind: 'Delete' };
  const labels =
    metadata.labels?.[LABEL_OFFLOADING_ORIGIN] === origin ? undefined : { [LABEL_OFFLOADING_ORIGIN]: origin };
  const set = Object.entries(more).filter(
    ([key, value]) => !deepEqual(spec[key as keyof typeof spec], value),
  );
  const differs = (spec.podStrategy ?? 'LocalAndRemote') !== podStrategy || set.length > 0;
  if (labels === undefined && !differs) return NOTHING;
  const { uid } = metadata;
  return {
    kind: 'Patch',
    body: {
      metadata: { uid, ...(labels && { labels }) },
      ...(differs && { spec: { podStrategy, ...Object.fromEntries(set) } }),
    },
  };
}

const unknownLabel = (
  namespace: string,
  label: string | undefined,
): { reason: 'OffloadLabelInvalid'; message: string } => ({
  reason: 'OffloadLabelInvalid',
  message:
    `label ${LABEL_OFFLOAD} of namespace ${namespace} has the unknown value "${label}", which changes nothing: ` +
    `its pods go where they went before; allowed: ${Object.keys(LABEL_STRATEGIES).join(', ')}, false`,
});

interface ShortFormReconcilerOptions {
  client: KubeClient;
  events: EventRecorder;
  view: View;
  selected: SelectedNamespaces | undefined;
  tether: () => Forwarding | undefined;
}

/**
 * Makes the NamespaceOffloadings that labels of namespaces, or the operator's selector, ask for in short form. Keys are
 * namespaces.
 */
export class ShortFormReconciler {
  readonly #options: ShortFormReconcilerOptions;
  /** The last complaint about each namespace, by UID: one event, however often the namespace is looked at. */
  readonly #complaints = new Map<string, string>();

  constructor(options: ShortFormReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<void> {
    const { client, view, selected, tether } = this.#options;
    const namespace = view.namespace(name);
    if (namespace === undefined) return;
    const { uid } = namespace.metadata;
    const offloading = view.offloading(name);
    const action = shortFormAction({
      namespace,
      offloading,
      selected,
      tether: tether(),
      refusal: view.whyNotOffloadable(name),
    });
    if (action.kind !== 'Complain') this.#complaints.delete(uid);
    switch (action.kind) {
      case 'Nothing':
        return;
      case 'Create':
        // A person may have made one in the meantime, and that one wins.
        await client.create(namespaceOffloadings, action.draft, { signal }).catch(ignoring('AlreadyExists'));
        return;
      case 'Patch': {
        if (offloading === undefined) return;
        const patch = { type: 'merge', body: action.body } as const;
        await client.patch(namespaceOffloadings, offloading.metadata, patch, { signal });
        return;
      }
      case 'Delete':
        if (offloading === undefined) return;
        await deleteByUid(client, namespaceOffloadings, offloading, { signal });
        return;
      case 'Complain': {
        if (this.#complaints.get(uid) === action.message) return;
        this.#complaints.set(uid, action.message);
        const subject = { ...namespace, apiVersion: 'v1', kind: 'Namespace' };
        this.#options.events.event(subject, 'Warning', action.reason, action.message);
        return;
      }
      default:
        action satisfies never;
    }
  }

  /** The namespace is gone. */
  forget(uid: string): void {
    this.#complaints.delete(uid);
  }
}
