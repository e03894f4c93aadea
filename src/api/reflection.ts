/** Which objects of an offloaded namespace travel besides what its pods need anyway. */

/**
 * Referenced: what pods over there refer to (ConfigMaps and Secrets only). All: every object of the namespace. OptIn:
 * those that say so themselves. None: not even those. An object's own word (ANNOTATION_REFLECT `true` or `false`) comes
 * before `Referenced` and `All`, never before `None`.
 */
export type ReflectionPolicy = 'Referenced' | 'All' | 'OptIn' | 'None';

/** One kind of a namespace, by group and resource; of kinds that are not named the defaults hold. */
export interface ReflectionRule {
  /** Default: the core group. */
  group?: string;
  /** Plural, as in `kubectl api-resources`: `configmaps`, `ingresses`, `widgets`. */
  resource: string;
  /** Of a kind that this program has no descriptor for; default `v1`. */
  version?: string;
  policy: ReflectionPolicy;
  /** Fields that do not travel, as paths such as `spec.clusterName`; of metadata only labels and annotations may be named. */
  drop?: string[];
}

/** What holds for kinds without a rule; every other kind stays home. */
export const DEFAULT_REFLECTION: readonly (ReflectionRule & { group: string })[] = [
  { group: '', resource: 'configmaps', policy: 'Referenced' },
  { group: '', resource: 'secrets', policy: 'Referenced' },
  { group: '', resource: 'services', policy: 'All' },
  { group: 'networking.k8s.io', resource: 'ingresses', policy: 'All' },
  { group: 'networking.k8s.io', resource: 'networkpolicies', policy: 'All' },
];

/** A kind that a provider lets its peers bring into their tenant namespaces. */
export interface ReflectableKind {
  group: string;
  resource: string;
}
