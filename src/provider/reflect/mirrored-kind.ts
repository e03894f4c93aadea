import type { ResourceType } from '../../api/resources.ts';
import type { DraftMeta, KubeObject } from '../../api/wire.ts';
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
