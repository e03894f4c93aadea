import { ANNOTATION_HOME_NAMESPACE, LABEL_MANAGED_BY } from '../../api/names.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { DraftMeta, KubeObject, ObjectMeta } from '../../api/wire.ts';
import type { Informer } from '../../kube/informer.ts';
import type { NetworkView } from '../network-view.ts';
import type { GroupResource } from './rules.ts';

/** As kubectl names kinds: `services`, `ingresses.networking.k8s.io`, `timetables.times.example.com`. */
export type MirroredKindName = string;

/** The objects of one kind on both sides of one offloaded namespace. Over there only those that are ours. */
export interface Sides<T extends KubeObject = KubeObject> {
  home: Informer<T>;
  remote: Informer<T>;
}

/** What a translation may look at beside the object itself. */
export interface MirrorContext {
  /** What marks objects over there as ours. */
  owner: string;
  homeNamespace: string;
  tenantNamespace: string;
  network: NetworkView;
  /** Classes of Ingresses at home, and what they become over there. */
  ingressClasses: Readonly<Record<string, string>>;
  /** Whether there is an object of that name at home that is selected. */
  isSelected: (kind: MirroredKindName, name: string) => boolean;
  /** Whether it is selected, and its reflection over there is ours. */
  isReflected: (kind: MirroredKindName, name: string) => boolean;
}

/** An object as it is to be over there. */
export type Wanted<T extends KubeObject> = Omit<T, 'metadata'> & { metadata: DraftMeta };

export interface Forged<T extends KubeObject> {
  /** Absent: nothing is to be there at the moment. */
  object?: Wanted<T>;
  /** What of the source could not be brought there, for people to know. */
  leftOut?: { reason: string; message: string };
}

/**
 * How a kind is kept over there of which objects travel by a rule (ConfigMaps and Secrets, which travel mostly where a
 * pod names them, are the Reflector's). All functions are pure.
 */
export interface MirroredKind<T extends KubeObject = KubeObject> {
  readonly kind: MirroredKindName;
  readonly type: ResourceType<T>;
  /** Of whose rule it depends what travels: its own, but for what follows another kind. */
  readonly ruledBy: GroupResource;
  /** Objects belong to such of that kind, and travel with them, whatever the rule says of themselves. */
  readonly follows?: MirroredKindName;
  /** Means nothing over there unless a network joins the clusters. */
  readonly needsNetwork: boolean;
  readonly remoteName: (homeName: string) => string;
  /** Undefined for a name that no object of home can have over there. */
  readonly homeName: (remoteName: string) => string | undefined;
  /** Whether the object may be over there at all, beside what the rule says. */
  readonly select: (source: T, context: MirrorContext) => boolean;
  /** `copy` is what is there now. Undefined: nothing is to be there, and nothing is to be said. */
  readonly forge: (source: T, context: MirrorContext, copy: T | undefined) => Forged<T> | undefined;
  /** Whether no update can make the copy what is wanted. */
  readonly mustReplace: (copy: T, wanted: Wanted<T>) => boolean;
  /** What is to be written over the copy: equal to it where nothing differs. What others put there stays. */
  readonly merge: (copy: T, wanted: Wanted<T>) => T;
}

/** A reflection of somebody else's object; it is not sent on, or two clusters could reflect each other for ever. */
export const isReflection = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.[LABEL_MANAGED_BY] !== undefined;

/** Labels of ours speak of the cluster that they were set in. */
export const travellingLabels = (labels: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !/^([^/]*\.)?tributary\.dev\//u.test(key)));

/** What Kubernetes, kubectl and we keep on an object speaks of the cluster that it was set in. */
const MANAGED = /^([^/]*\.)?(tributary\.dev|kubernetes\.io|k8s\.io)\//u;
/** People's own, by the recommendation of Kubernetes. */
const RECOMMENDED = 'app.kubernetes.io/';

/** Labels or annotations of an object that this program knows nothing of. */
export const unmanaged = (marks: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(marks).filter(([key]) => key.startsWith(RECOMMENDED) || !MANAGED.test(key)),
  );

export function mirroredMeta(
  name: string,
  { owner, homeNamespace, tenantNamespace }: MirrorContext,
  marks: { labels: Record<string, string>; annotations: Record<string, string> },
): DraftMeta {
  return {
    name,
    namespace: tenantNamespace,
    labels: { ...marks.labels, [LABEL_MANAGED_BY]: owner },
    annotations: { ...marks.annotations, [ANNOTATION_HOME_NAMESPACE]: homeNamespace },
  };
}

/**
 * Labels exactly as wanted, since they decide who acts on the object; annotations of others stay, and of `owned` those
 * that are not wanted go.
 */
export function mergedMeta(copy: ObjectMeta, wanted: DraftMeta, owned: readonly string[]): ObjectMeta {
  const others = Object.entries(copy.annotations ?? {}).filter(([key]) => !owned.includes(key));
  return {
    ...copy,
    labels: wanted.labels ?? {},
    annotations: { ...Object.fromEntries(others), ...wanted.annotations },
  };
}
