/** Rules whose kind is somewhere else, or nowhere: they would change nothing, and nobody would see why. Pure. */
import { DEFAULT_REFLECTION } from '../../api/reflection.ts';
import type { GroupResource } from './rules.ts';

/** Kinds of the core group without a default that no rule brings across. */
export const CORE_UNMIRRORED: readonly string[] = [
  'bindings',
  'componentstatuses',
  'endpoints',
  'events',
  'limitranges',
  'namespaces',
  'nodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'resourcequotas',
  'serviceaccounts',
];

/** Kinds that each cluster has, by group, beside those with a default. */
const BUILT_IN: Readonly<Record<string, readonly string[]>> = {
  // All that there are: this group gets no new ones.
  '': [...CORE_UNMIRRORED, 'podtemplates', 'replicationcontrollers'],
  apps: ['controllerrevisions', 'daemonsets', 'deployments', 'replicasets', 'statefulsets'],
  autoscaling: ['horizontalpodautoscalers'],
  batch: ['cronjobs', 'jobs'],
  'networking.k8s.io': ['ingressclasses'],
  policy: ['poddisruptionbudgets'],
};
const SHORT: Readonly<Record<string, string>> = {
  cm: 'configmaps',
  ing: 'ingresses',
  netpol: 'networkpolicies',
  svc: 'services',
};

const GROUPS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(BUILT_IN).flatMap(([group, names]) => names.map((name) => [name, group] as const)),
  ...DEFAULT_REFLECTION.map(({ group, resource }) => [resource, group] as const),
]);
const PLURALS: ReadonlyMap<string, string> = new Map([
  ...[...GROUPS.keys()].map((plural) => [singularOf(plural), plural] as const),
  ...Object.entries(SHORT),
]);

function singularOf(plural: string): string {
  if (plural.endsWith('ies')) return `${plural.slice(0, -3)}y`;
  return plural.replace(plural.endsWith('sses') ? /es$/u : /s$/u, '');
}

/**
 * What is wrong with the name of the kind, and what to write. Undefined where nothing is known against it: other groups, and custom
 * resources, may have kinds of these names.
 */
export function misnamed({ group, resource }: GroupResource): string | undefined {
  if (!isBuiltIn(group) || GROUPS.get(resource) === group) return undefined;
  const plural = GROUPS.has(resource) ? resource : PLURALS.get(resource);
  const right = plural === undefined ? undefined : GROUPS.get(plural);
  if (plural !== undefined && right !== undefined) {
    const where = right === '' ? 'the core group, so without a group' : `group ${right}`;
    return `the kind is resource ${plural} of ${where}; until the rule names it so, it travels as without this rule`;
  }
  if (group !== '') return undefined;
  return 'the core group has no such kind; `kubectl api-resources` shows the group (in APIVERSION) and the plural name of each';
}

/** Custom resources have a domain of somebody as their group. */
const isBuiltIn = (group: string): boolean => !group.includes('.') || group in BUILT_IN;
