import type { SharingPolicySpec } from '../api/sharing-policy.ts';
import type { KubeObject, ResourceList } from '../api/wire.ts';

/**
 * What a tenant namespace says about the pods in it. Written by lending from the SharingPolicy, or by people (`tributary
 * tenant`); read by admission, which runs in the API server, and by the guardian, also when the policy is gone.
 */

/** The runtime class of every pod. */
export const ANNOTATION_RUNTIME_CLASS = 'tributary.dev/runtime-class';
/** Labels of the nodes on which pods may run: `key=value`, joined by commas. */
export const ANNOTATION_NODE_SELECTOR = 'tributary.dev/node-selector';
/** Tolerations that every pod is given: JSON, a list as in a pod. */
export const ANNOTATION_TOLERATIONS = 'tributary.dev/tolerations';
/** StorageClasses that claims may name, joined by commas; none without it. */
export const ANNOTATION_STORAGE_CLASSES = 'tributary.dev/storage-classes';
/** How long pods outlive a home that does not come back, seconds. */
export const ANNOTATION_KEEP_FOR = 'tributary.dev/keep-for';

/**
 * Where and as what pods of a peer run, as annotations of its tenant namespaces: the same words whether a SharingPolicy
 * or a person says so. Pure.
 */

export type TenantTerms = Pick<
  SharingPolicySpec,
  'runtimeClassName' | 'nodeSelector' | 'tolerations' | 'storageClasses'
>;

/** Enforced by the PodNodeSelector admission plugin, where an API server has it switched on. */
export const ANNOTATION_PLUGIN_NODE_SELECTOR = 'scheduler.alpha.kubernetes.io/node-selector';

/** One day: how long pods outlive a home that does not come back. */
export const DEFAULT_KEEP_FOR_SECONDS = 86_400;

/** Those of placement are only there where something is said; storage classes always, since none means none. */
export function annotationsOfTerms({
  runtimeClassName,
  nodeSelector = {},
  tolerations = [],
  storageClasses = [],
}: TenantTerms): Record<string, string> {
  const selector = Object.entries(nodeSelector).map(([key, value]) => `${key}=${value}`);
  const nodes = selector.toSorted().join(',');
  return {
    [ANNOTATION_STORAGE_CLASSES]: storageClasses.toSorted().join(','),
    ...(tolerations.length > 0 && { [ANNOTATION_TOLERATIONS]: JSON.stringify(tolerations) }),
    ...(runtimeClassName !== undefined && { [ANNOTATION_RUNTIME_CLASS]: runtimeClassName }),
    ...(nodes !== '' && { [ANNOTATION_NODE_SELECTOR]: nodes, [ANNOTATION_PLUGIN_NODE_SELECTOR]: nodes }),
  };
}

/** Ten years. */
const MOST_SECONDS = 315_360_000;

/**
 * How long pods in this namespace are kept after their home has gone away, milliseconds. Without the annotation, or where it
 * cannot be read, they are kept for ever.
 */
export function keepForMs({ metadata }: KubeObject): number {
  const said = metadata.annotations?.[ANNOTATION_KEEP_FOR] ?? '';
  return /^[0-9]{1,15}$/.test(said) ? Math.min(Number(said), MOST_SECONDS) * 1000 : Infinity;
}

/** On a tenant namespace: the highest priority that pods there may have. */
export const ANNOTATION_MAX_PRIORITY = 'tributary.dev/max-priority';

/** On a tenant namespace: the extended resources that pods there may ask for, joined by commas. */
export const ANNOTATION_EXTENDED = 'tributary.dev/extended-resources';

/** Not cpu, memory and the like: what a quota bounds only where it names it, such as a GPU, or huge pages. */
export const isExtended = (resource: string): boolean =>
  resource.includes('/') || resource.startsWith('hugepages-');

/** The annotation for a quota's resources. */
export const extendedResources = (quota: Readonly<ResourceList>): string =>
  Object.keys(quota).filter(isExtended).toSorted().join(',');

/** On a tenant namespace: the ingress classes that Ingresses there may name, joined by commas. */
export const ANNOTATION_INGRESS_CLASSES = 'tributary.dev/ingress-classes';

/**
 * On a tenant namespace: the hosts that Ingresses there may name, joined by commas; each stands for itself and all
 * names below it, `*` for any host.
 */
export const ANNOTATION_INGRESS_HOSTS = 'tributary.dev/ingress-hosts';

/** On a tenant namespace: what becomes of it in the end, `Delete` or `Keep=<seconds>`. Written while all is well, because then the policy that says so may be gone. */
export const ANNOTATION_ON_END = 'tributary.dev/on-end';

/** On a tenant namespace that is kept after its contract has ended: until when, RFC 3339. */
export const ANNOTATION_KEEP_UNTIL = 'tributary.dev/keep-until';

/** Only there where the policy says something of the kind. */
export const ANNOTATIONS_OF_POLICY: readonly string[] = [
  ANNOTATION_RUNTIME_CLASS,
  ANNOTATION_NODE_SELECTOR,
  ANNOTATION_PLUGIN_NODE_SELECTOR,
  ANNOTATION_TOLERATIONS,
];
