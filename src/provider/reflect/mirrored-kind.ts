import type { EventReason } from '../../api/reasons/events.ts';
import { ANNOTATION_HOME_NAMESPACE, isOwnKey, LABEL_MANAGED_BY } from '../../api/names.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { DraftMeta, KubeObject, ObjectMeta } from '../../api/wire.ts';
import type { Informer } from '../../kube/informer.ts';
import { withoutKeys } from '../../lib/fields.ts';
import type { NetworkView } from '../network-view.ts';
import type { PolicyContext } from './policy-rules.ts';
import type { PolicyWorld } from './policy-world.ts';
import type { GroupResource } from './rules.ts';

/** As kubectl names kinds: `services`, `ingresses.networking.k8s.io`, `timetables.times.example.com`. */
export type MirroredKindName = string;

/** The objects of one kind on both sides of one offloaded namespace; over there only ours. */
export interface Sides<T extends KubeObject = KubeObject> {
  home: Informer<T>;
  remote: Informer<T>;
}

/** What a translation may look at besides the object itself. */
export interface MirrorContext {
  /** What marks objects over there as ours. */
  owner: string;
  /** Name of the VirtualNode: events on one object come from several. */
  virtualNode: string;
  homeNamespace: string;
  tenantNamespace: string;
  network: NetworkView;
  dns: PolicyContext['dns'];
  /** See PolicyContext. */
  isOther: PolicyContext['isOther'];
  /** Complete where the kind needs it. */
  world: PolicyWorld;
  /** From classes of Ingresses at home to those over there. */
  ingressClasses: Readonly<Record<string, string>>;
  /** Whether there is an object of that name at home that is selected. */
  isSelected: (kind: MirroredKindName, name: string) => boolean;
  /** Whether it is selected, and its reflection over there is ours. */
  isReflected: (kind: MirroredKindName, name: string) => boolean;
}

/** An object as it is to be over there. */
export type Wanted<T extends KubeObject> = Omit<T, 'metadata'> & { metadata: DraftMeta };

/** What people are told about an object. */
export interface News {
  reason: EventReason;
  message: string;
  /** All of it, where the message names the first alone. */
  causes?: readonly string[];
}

export interface Forged<T extends KubeObject> {
  /** Absent: nothing is to be there at the moment. */
  object?: Wanted<T>;
  /** What could not be brought over there, for people. */
  leftOut?: News;
}

/**
 * How copies of one kind are kept over there, where rules say what travels. (ConfigMaps and Secrets, which mostly travel
 * because a pod names them, are the Reflector's.) All functions are pure.
 */
export interface MirroredKind<T extends KubeObject = KubeObject, Copy extends KubeObject = T> {
  readonly kind: MirroredKindName;
  readonly type: ResourceType<T>;
  /** What copies are over there. Default: the same. */
  readonly copyType?: ResourceType<Copy>;
  /** The kind whose rule says what travels: itself, unless it follows another kind. */
  readonly ruledBy: GroupResource;
  /** Its objects belong to objects of that kind and travel with them, whatever rule names them. */
  readonly follows?: MirroredKindName;
  /** Copies are useless unless a network joins the clusters. */
  readonly needsNetwork: boolean;
  /** No field of it can be dropped: with less, it would mean something else. */
  readonly isWhole?: true;
  /** Whether the pods and namespaces of home have to be known to bring that object over there. Default: no. */
  readonly needsPods?: (source: T) => boolean;
  readonly remoteName: (homeName: string) => string;
  /** Undefined for a name that no copy can have. */
  readonly homeName: (remoteName: string) => string | undefined;
  /** Whether the object may travel at all, besides what the rule says. */
  readonly select: (source: T, context: MirrorContext) => boolean;
  /** `copy`: what is there now. Undefined: nothing is to be there, and nobody needs to be told. */
  readonly forge: (source: T, context: MirrorContext, copy: Copy | undefined) => Forged<Copy> | undefined;
  /** Whether no update can turn the copy into what is wanted. */
  readonly mustReplace: (copy: Copy, wanted: Wanted<Copy>) => boolean;
  /** Copies may be deleted and made anew where an update is refused for what they were before: they hold nothing of their own. */
  readonly mayReplace?: true;
  /** What to write where that is refused; undefined or absent: nothing. */
  readonly lesser?: (wanted: Wanted<Copy>) => Wanted<Copy> | undefined;
  /** What to write over the copy; equal to it where nothing differs. What others put there stays. */
  readonly merge: (copy: Copy, wanted: Wanted<Copy>) => Copy;
}

/** Of kinds whose copies have the name of the object at home. */
export const SAME_NAME: Pick<MirroredKind, 'remoteName' | 'homeName'> = {
  remoteName: (name) => name,
  homeName: (name) => name,
};

/** A copy of an object of another cluster is not sent on: two clusters could reflect each other forever. */
export const mayBeCopied = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.[LABEL_MANAGED_BY] === undefined && metadata.deletionTimestamp === undefined;

/** Without our own labels, which describe the cluster that they were set in. */
export const travellingLabels = (labels: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !isOwnKey(key)));

/** Domains of Kubernetes, kubectl and ours: such marks describe the cluster that they were set in. */
const MANAGED = /^([^/]*\.)?(tributary\.dev|kubernetes\.io|k8s\.io)\//u;
/** Labels of people themselves, as Kubernetes recommends them. */
const RECOMMENDED = 'app.kubernetes.io/';

/** Labels or annotations without those domains. */
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
 * Labels are exactly as wanted, since they decide who acts on the object. Annotations of others stay; those in `owned` go
 * where they are not wanted.
 */
export function mergedMeta(copy: ObjectMeta, wanted: DraftMeta, owned: readonly string[]): ObjectMeta {
  return {
    ...copy,
    labels: wanted.labels ?? {},
    annotations: { ...withoutKeys(copy.annotations ?? {}, owned), ...wanted.annotations },
  };
}
