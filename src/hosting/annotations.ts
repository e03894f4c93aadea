/**
 * What a tenant namespace says about itself and the pods in it. Written from a SharingPolicy, or by people (`tributary
 * tenant`). Read by admission, which runs in the API server, and by the guardian, even when the policy is gone.
 */
import type { SharingPolicySpec } from '../api/sharing-policy.ts';
import type { KubeObject, ResourceList } from '../api/wire.ts';
import { DEFAULT_WRITES, WRITE_BOUNDS, type WriteTerms } from '../api/write-terms.ts';

/** The runtime class of every pod. */
export const ANNOTATION_RUNTIME_CLASS = 'tributary.dev/runtime-class';
/** Labels of the nodes on which pods may run: `key=value`, joined by commas. */
export const ANNOTATION_NODE_SELECTOR = 'tributary.dev/node-selector';
/** The same for the PodNodeSelector admission plugin, which enforces it where an API server has the plugin switched on. */
const ANNOTATION_PLUGIN_NODE_SELECTOR = 'scheduler.alpha.kubernetes.io/node-selector';
/** Tolerations that every pod is given: JSON, a list as in a pod. */
export const ANNOTATION_TOLERATIONS = 'tributary.dev/tolerations';
/**
 * Keys of taints that pods may tolerate of their own accord, joined by commas; `*` for all but those of control planes and cordoned
 * nodes. Without it, none.
 */
export const ANNOTATION_OWN_TOLERATIONS = 'tributary.dev/own-tolerations';
/** `Always`: images are pulled with the credentials of each pod, never taken from what others have left on a node. */
export const ANNOTATION_IMAGE_PULL_POLICY = 'tributary.dev/image-pull-policy';
/** `privileged`: the level of Pod Security is lifted. Any other: the policies over tenants hold `baseline` themselves, too. */
export const ANNOTATION_POD_SECURITY = 'tributary.dev/pod-security';
/** `Allow`: Services may be of type ExternalName. */
export const ANNOTATION_EXTERNAL_NAMES = 'tributary.dev/external-names';
/** StorageClasses that claims may name, joined by commas. Without it, claims may name none. */
export const ANNOTATION_STORAGE_CLASSES = 'tributary.dev/storage-classes';
/** The highest priority that pods may have. */
export const ANNOTATION_MAX_PRIORITY = 'tributary.dev/max-priority';
/** PriorityClasses that pods may name besides, joined by commas, if they preempt nobody. Without it, none. */
export const ANNOTATION_PRIORITY_CLASSES = 'tributary.dev/priority-classes';
/** The extended resources that pods may ask for, joined by commas. */
export const ANNOTATION_EXTENDED = 'tributary.dev/extended-resources';
/** The largest object, KiB; DEFAULT_WRITES without it, as for the next two. */
export const ANNOTATION_OBJECT_KIB = 'tributary.dev/max-object-kib';
/** How many objects the peer may have in all its namespaces. */
export const ANNOTATION_OBJECTS = 'tributary.dev/max-objects';
/** How many KiB the peer may write in a minute in all its namespaces. */
export const ANNOTATION_KIB_PER_MINUTE = 'tributary.dev/write-kib-per-minute';
/** The ingress classes that Ingresses may name, joined by commas. */
export const ANNOTATION_INGRESS_CLASSES = 'tributary.dev/ingress-classes';
/**
 * The hosts that Ingresses may name, joined by commas. Each stands for itself and all names below it, `*` for any host.
 */
export const ANNOTATION_INGRESS_HOSTS = 'tributary.dev/ingress-hosts';
/** How many seconds pods outlive a home that does not come back. */
export const ANNOTATION_KEEP_FOR = 'tributary.dev/keep-for';
/**
 * What happens to the namespace when its contract ends: `Delete` or `Keep=<seconds>`. Written as long as the contract is in
 * force, because the policy that says so may be gone at its end.
 */
export const ANNOTATION_ON_END = 'tributary.dev/on-end';
/** Until when a namespace is kept whose contract has ended, RFC 3339. */
export const ANNOTATION_KEEP_UNTIL = 'tributary.dev/keep-until';

/** `true`: its pods are stopped and none are taken, because their home may run them itself. */
export const ANNOTATION_FENCED = 'tributary.dev/fenced';

export const isFenced = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[ANNOTATION_FENCED] === 'true';

/** Annotations that are absent where the policy says nothing of the kind. */
export const ANNOTATIONS_OF_POLICY: readonly string[] = [
  ANNOTATION_RUNTIME_CLASS,
  ANNOTATION_NODE_SELECTOR,
  ANNOTATION_PLUGIN_NODE_SELECTOR,
  ANNOTATION_TOLERATIONS,
  ANNOTATION_IMAGE_PULL_POLICY,
];

/** One day: how long pods outlive a home that does not come back, where nobody says otherwise. */
export const DEFAULT_KEEP_FOR_SECONDS = 86_400;
/** Ten years. */
const MAX_KEEP_FOR_SECONDS = 315_360_000;

/** Where and as what pods of a peer run; in the same words whether a SharingPolicy or a person says so. */
export type TenantTerms = Pick<
  SharingPolicySpec,
  | 'runtimeClassName'
  | 'nodeSelector'
  | 'tolerations'
  | 'ownTolerations'
  | 'storageClasses'
  | 'priorityClasses'
  | 'imagePullPolicy'
  | 'podSecurity'
  | 'externalNames'
>;

/** What must mean none where nothing is said is always there; the others only where something is said. */
export function annotationsOfTerms({
  runtimeClassName,
  nodeSelector = {},
  tolerations = [],
  storageClasses = [],
  priorityClasses = [],
  ownTolerations = [],
  imagePullPolicy,
  podSecurity = 'baseline',
  externalNames = 'Forbid',
}: TenantTerms): Record<string, string> {
  const selector = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  const nodes = selector.toSorted().join(',');
  return {
    [ANNOTATION_STORAGE_CLASSES]: storageClasses.toSorted().join(','),
    [ANNOTATION_PRIORITY_CLASSES]: priorityClasses.toSorted().join(','),
    [ANNOTATION_OWN_TOLERATIONS]: ownTolerations.toSorted().join(','),
    [ANNOTATION_POD_SECURITY]: podSecurity,
    [ANNOTATION_EXTERNAL_NAMES]: externalNames,
    ...(imagePullPolicy === 'Always' && { [ANNOTATION_IMAGE_PULL_POLICY]: imagePullPolicy }),
    ...(tolerations.length > 0 && { [ANNOTATION_TOLERATIONS]: JSON.stringify(tolerations) }),
    ...(runtimeClassName !== undefined && { [ANNOTATION_RUNTIME_CLASS]: runtimeClassName }),
    ...(nodes !== '' && { [ANNOTATION_NODE_SELECTOR]: nodes, [ANNOTATION_PLUGIN_NODE_SELECTOR]: nodes }),
  };
}

const WRITE_ANNOTATIONS: Readonly<Record<keyof WriteTerms, string>> = {
  objectKiB: ANNOTATION_OBJECT_KIB,
  objects: ANNOTATION_OBJECTS,
  kibPerMinute: ANNOTATION_KIB_PER_MINUTE,
};

const WRITE_WORDS = Object.keys(WRITE_ANNOTATIONS) as (keyof WriteTerms)[];

export function annotationsOfWrites(writes: WriteTerms = {}): Record<string, string> {
  const whole = { ...DEFAULT_WRITES, ...writes };
  return Object.fromEntries(WRITE_WORDS.map((word) => [WRITE_ANNOTATIONS[word], String(whole[word])]));
}

/** What cannot be read, or is out of bounds, counts as not said. */
export function writesOf(annotations: Readonly<Record<string, string>>): Required<WriteTerms> {
  const said = (word: keyof WriteTerms): number => {
    const text = annotations[WRITE_ANNOTATIONS[word]] ?? '';
    const { minimum, maximum } = WRITE_BOUNDS[word];
    const isSaid = /^[0-9]{1,8}$/u.test(text) && Number(text) >= minimum && Number(text) <= maximum;
    return isSaid ? Number(text) : DEFAULT_WRITES[word];
  };
  return { objectKiB: said('objectKiB'), objects: said('objects'), kibPerMinute: said('kibPerMinute') };
}

/** The value of ANNOTATION_EXTENDED for a quota. Extended is what a quota bounds only where it names it: GPUs, huge pages. */
export const extendedResources = (quota: Readonly<ResourceList>): string =>
  Object.keys(quota)
    .filter((resource) => resource.includes('/') || resource.startsWith('hugepages-'))
    .toSorted()
    .join(',');

/**
 * How long pods in this namespace are kept after their home has gone away, milliseconds. Infinity where the annotation is
 * absent or cannot be read.
 */
export function keepForMs({ metadata }: KubeObject): number {
  const text = metadata.annotations?.[ANNOTATION_KEEP_FOR] ?? '';
  return /^[0-9]{1,15}$/.test(text) ? Math.min(Number(text), MAX_KEEP_FOR_SECONDS) * 1000 : Infinity;
}
