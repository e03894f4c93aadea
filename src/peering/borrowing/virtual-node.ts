import {
  ANNOTATION_CLOSED,
  ANNOTATION_ENDING,
  ANNOTATION_OWNED,
  ANNOTATION_SHARING_POLICY,
  LABEL_PROVIDER,
  LABEL_DEVICE,
  TAINT_CLOSED,
  TAINT_DEVICE,
} from '../../api/names.ts';
import {
  API_VERSION,
  type NamespaceMapping,
  type VirtualNode,
  type VirtualNodeSpec,
} from '../../api/virtual-node.ts';
import type { Draft, Taint } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present, withoutKeys } from '../../lib/fields.ts';

/** What peering sets in one VirtualNode; everything else in it belongs to people. */
export interface DesiredVirtualNode extends Pick<
  VirtualNodeSpec,
  | 'kubeconfigSecretRef'
  | 'resources'
  | 'nodeSizes'
  | 'prices'
  | 'homeApiServer'
  | 'declaredFeatures'
  | 'taintEffect'
  | 'podAdditions'
> {
  name: string;
  provider: string;
  labels: Record<string, string>;
  namespaces: NamespaceMapping[];
  ingressClasses: Record<string, string>;
  storageClasses: Record<string, string>;
  offeredStorageClasses: string[];
  priorityClasses: string[];
  /** It is tethered to us: only what means devices goes there. */
  device: boolean;
  /** Why nothing new is to be placed there; undefined: it takes pods. */
  closed: string | undefined;
  /** The provider's, by its name; undefined while the provider has not said it. */
  sharingPolicy?: string;
}

/** The API server leaves this out of objects in a list. */
const KIND = { apiVersion: API_VERSION, kind: 'VirtualNode' };

interface Owned {
  labels: string[];
}

/** Fields that are taken off where nothing is to be said in them. */
const OURS = [
  'nodeSizes',
  'prices',
  'declaredFeatures',
  'taints',
  'ingressClasses',
  'storageClasses',
  'priorityClasses',
  'podAdditions',
] as const satisfies readonly (keyof VirtualNodeSpec)[];

/** A VirtualNode that does not exist yet. */
export function draftVirtualNode(desired: DesiredVirtualNode): Draft<VirtualNode> {
  const { name, provider, kubeconfigSecretRef, resources } = desired;
  const bare = {
    ...KIND,
    metadata: { name, labels: { [LABEL_PROVIDER]: provider } },
    spec: { kubeconfigSecretRef, resources },
  };
  return merged(bare, desired);
}

/**
 * The object as it should be: our fields set, our earlier ones removed, those of people kept. The same object where
 * nothing differs.
 */
export function updatedVirtualNode(current: VirtualNode, desired: DesiredVirtualNode): VirtualNode {
  const next = merged(current, desired);
  return deepEqual(next, current) ? current : { ...KIND, ...next };
}

function merged<T extends Draft<VirtualNode>>(current: T, desired: DesiredVirtualNode): T {
  const { metadata, spec } = current;
  const labels = {
    ...desired.labels,
    ...(desired.device && { [LABEL_DEVICE]: 'true' }),
    [LABEL_PROVIDER]: desired.provider,
  };
  const owned: Owned = { labels: Object.keys(labels).toSorted() };
  const before = new Set(readOwned(current).labels);
  const others = Object.entries(spec.labels ?? {}).filter(([key]) => !before.has(key));
  const annotations = withoutKeys(metadata.annotations ?? {}, [ANNOTATION_ENDING, ANNOTATION_CLOSED]);
  const {
    homeApiServer,
    declaredFeatures,
    ingressClasses,
    storageClasses,
    offeredStorageClasses,
    priorityClasses,
  } = desired;
  const {
    taintEffect = spec.taintEffect,
    podAdditions = spec.podAdditions ?? {},
    nodeSizes,
    prices,
  } = desired;
  const said = {
    ...present({ [ANNOTATION_SHARING_POLICY]: desired.sharingPolicy, [ANNOTATION_CLOSED]: desired.closed }),
    [ANNOTATION_OWNED]: JSON.stringify(owned),
  };
  const rest = withoutKeys(spec, OURS);
  const taints = withTaint(
    withClosed(spec.taints ?? [], desired.closed !== undefined),
    TAINT_DEVICE,
    desired.device,
  );
  return {
    ...current,
    metadata: { ...metadata, annotations: { ...annotations, ...said } },
    spec: {
      ...rest,
      kubeconfigSecretRef: withDefaults(spec, desired),
      resources: desired.resources,
      labels: { ...Object.fromEntries(others), ...labels },
      ...present({ nodeSizes, taintEffect, homeApiServer }),
      ...notEmpty(
        present({
          prices,
          taints,
          ingressClasses,
          storageClasses,
          priorityClasses,
          podAdditions,
          declaredFeatures,
        }),
      ),
      namespaces: movable(spec.namespaces ?? [], desired.namespaces),
      offeredStorageClasses,
    },
  };
}

/** Lists and maps that say something. */
const notEmpty = <T extends Partial<Record<keyof VirtualNodeSpec, object>>>(fields: T): Partial<T> =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => Object.keys(value).length > 0),
  ) as Partial<T>;

/** The API server fills in the key, which must not look like a difference. */
const withDefaults = (
  { kubeconfigSecretRef: current }: VirtualNodeSpec,
  { kubeconfigSecretRef: desired }: DesiredVirtualNode,
): VirtualNodeSpec['kubeconfigSecretRef'] =>
  current.key === undefined || desired.key !== undefined ? desired : { ...desired, key: 'kubeconfig' };

/** A home namespace that gets another tenant namespace is taken out first; the next look puts it back. */
function movable(
  current: readonly NamespaceMapping[],
  desired: readonly NamespaceMapping[],
): NamespaceMapping[] {
  const before = new Map(
    current.map(({ homeNamespace, tenantNamespace }) => [homeNamespace, tenantNamespace]),
  );
  return desired.filter(
    ({ homeNamespace, tenantNamespace }) =>
      (before.get(homeNamespace) ?? tenantNamespace) === tenantNamespace,
  );
}

/** The object, closed to new pods, which says why. */
export function closedVirtualNode(current: VirtualNode, why: string): VirtualNode {
  const { metadata, spec } = current;
  const { taints = [] } = spec;
  if (isClosed(taints) && metadata.annotations?.[ANNOTATION_CLOSED] === why) return current;
  return {
    ...KIND,
    ...current,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [ANNOTATION_CLOSED]: why } },
    spec: { ...spec, taints: withClosed(taints, true) },
  };
}

const PEERING_ENDS = 'the peering ends';

/** The object, closed to new pods and marked once with the time since when its pods are being ended. */
export function endingVirtualNode(current: VirtualNode, now: string): VirtualNode {
  const closed = closedVirtualNode(current, PEERING_ENDS);
  const { metadata } = closed;
  const { annotations = {} } = metadata;
  if (annotations[ANNOTATION_ENDING] !== undefined) return closed;
  return { ...closed, metadata: { ...metadata, annotations: { ...annotations, [ANNOTATION_ENDING]: now } } };
}

/** Milliseconds since the epoch; undefined where it is not ending. A time that cannot be read counts as long ago. */
export function endingSince({ metadata }: VirtualNode): number | undefined {
  const text = metadata.annotations?.[ANNOTATION_ENDING];
  if (text === undefined) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? 0 : time;
}

export const isClosed = (taints: readonly Taint[]): boolean => taints.some(({ key }) => key === TAINT_CLOSED);

const withClosed = (taints: readonly Taint[], closed: boolean): Taint[] =>
  withTaint(taints, TAINT_CLOSED, closed);

function withTaint(taints: readonly Taint[], key: string, wanted: boolean): Taint[] {
  const others = taints.filter((taint) => taint.key !== key);
  return wanted ? [...others, { key, effect: 'NoSchedule' }] : others;
}

function readOwned({ metadata }: Draft<VirtualNode>): Owned {
  try {
    const { labels } = JSON.parse(metadata.annotations?.[ANNOTATION_OWNED] ?? '{}') as Partial<Owned>;
    return { labels: Array.isArray(labels) ? labels : [] };
  } catch {
    return { labels: [] };
  }
}

/** Whether peering made it because of that provider. */
export const isOf = ({ metadata }: Pick<VirtualNode, 'metadata'>, provider: string): boolean =>
  metadata.labels?.[LABEL_PROVIDER] === provider;
