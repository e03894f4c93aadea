/**
 * Where and as what pods of a peer run, as annotations of its tenant namespaces: the same words whether a SharingPolicy
 * or a person says so. Pure.
 */
import type { SharingPolicySpec } from '../../api/sharing-policy.ts';
import {
  ANNOTATION_NODE_SELECTOR,
  ANNOTATION_RUNTIME_CLASS,
  ANNOTATION_STORAGE_CLASSES,
  ANNOTATION_TOLERATIONS,
} from './annotations.ts';

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
