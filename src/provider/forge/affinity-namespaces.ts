import { matchesSelector, type LabelRequirement } from '../../api/label-selector.ts';
import { isGuest } from '../../api/pod.ts';
import { LABEL_NAMESPACE_NAME, LABEL_PEER } from '../../api/names.ts';
import type { Pod, PodAffinityTerm } from '../../api/wire.ts';
import { withoutKeys } from '../../lib/fields.ts';
import type { ForgeContext } from './context.ts';

type Selector = NonNullable<PodAffinityTerm['namespaceSelector']>;

/**
 * Pure: the namespaces over there whose pods a term of affinity means. `own`: that of the pod itself; `none`: none of them is over
 * there; `unknown`: that cannot be told. By a selector, which the provider narrows to our own namespaces; it takes no list of names.
 */
export function tenantsMeant(
  home: Pod,
  { namespaces = [], namespaceSelector }: PodAffinityTerm,
  { tenantNamespace, tenants }: ForgeContext,
): Pick<PodAffinityTerm, 'namespaceSelector'> | 'own' | 'none' | 'unknown' {
  const selector = namespaceSelector ?? undefined;
  if (namespaces.length === 0 && selector === undefined) return 'own';
  const bySelector = selector && nameSelector(home, selector);
  if (selector !== undefined && bySelector === undefined) return 'unknown';
  const meant = [...(tenants?.() ?? [[home.metadata.namespace ?? '', tenantNamespace] as const])]
    .filter(
      ([name]) =>
        namespaces.includes(name) ||
        (bySelector !== undefined && matchesSelector(bySelector, { [LABEL_NAMESPACE_NAME]: name })),
    )
    .map(([, tenant]) => tenant);
  if (meant.length === 0) return 'none';
  if (meant.every((tenant) => tenant === tenantNamespace)) return 'own';
  return {
    namespaceSelector: {
      matchExpressions: [{ key: LABEL_NAMESPACE_NAME, operator: 'In', values: meant.toSorted() }],
    },
  };
}

/** The selector, if it speaks of names alone: labels of namespaces are not known here. */
function nameSelector(
  home: Pod,
  { matchLabels = {}, matchExpressions = [] }: Selector,
): { matchLabels: Record<string, string>; matchExpressions: LabelRequirement[] } | undefined {
  // On a pod that returns to where it came from, it was put there by the cluster between: all that is ours there.
  const labels = isGuest(home) ? withoutKeys(matchLabels, [LABEL_PEER]) : matchLabels;
  const isKnown = [...Object.keys(labels), ...matchExpressions.map(({ key }) => key)].every(
    (key) => key === LABEL_NAMESPACE_NAME,
  );
  return isKnown
    ? { matchLabels: labels, matchExpressions: matchExpressions as LabelRequirement[] }
    : undefined;
}
