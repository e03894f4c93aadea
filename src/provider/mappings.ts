import { DEFAULT_REFLECTION, type ReflectionRule } from '../api/reflection.ts';
import type { NamespaceMapping } from '../api/virtual-node.ts';
import { groupResourceKey, type GroupResource } from './reflect/rules.ts';

/**
 * The namespaces to look after: those asked for, and those no longer asked for in which something of ours still lives.
 * Without the latter, taking a namespace out of the list would leave its remote pods running with nobody to end them.
 * One that came back under another tenant namespace waits until the old one is empty.
 *
 * @param recorded from the VirtualNode's status, so that a restart knows them too
 */
export function effectiveMappings(
  asked: readonly NamespaceMapping[],
  recorded: readonly NamespaceMapping[],
  inUse: (mapping: NamespaceMapping) => boolean,
): NamespaceMapping[] {
  const draining = recorded.filter((mapping) => !includesMapping(asked, mapping) && inUse(mapping));
  const busy = new Set(draining.map(({ homeNamespace }) => homeNamespace));
  return [...asked.filter(({ homeNamespace }) => !busy.has(homeNamespace)), ...draining];
}

export const includesMapping = (
  mappings: readonly NamespaceMapping[] | undefined,
  { homeNamespace, tenantNamespace }: NamespaceMapping,
): boolean =>
  mappings?.some(
    (mapping) => mapping.homeNamespace === homeNamespace && mapping.tenantNamespace === tenantNamespace,
  ) ?? false;

/** As the CRD has it. */
const MAX_RULES = 32;

/**
 * The mapping with the rules that hold for it, and with those that have been taken away while something is still there by
 * them, as None: so that a restart knows them, too.
 *
 * @param recorded the same mapping, from the VirtualNode's status
 * @param isDrained whether nothing of the kind is over there any more
 */
export function withRetiredRules(
  mapping: NamespaceMapping,
  recorded: NamespaceMapping | undefined,
  isDrained: (kind: GroupResource) => boolean,
): NamespaceMapping {
  const asked = mapping.reflection ?? [];
  const known = new Set([...asked, ...DEFAULT_REFLECTION].map(keyOfRule));
  const retired = (recorded?.reflection ?? [])
    .filter((rule) => !known.has(keyOfRule(rule)) && !isDrained({ group: '', ...rule }))
    .map((rule): ReflectionRule => ({ ...rule, policy: 'None' }));
  if (retired.length === 0) return mapping;
  return { ...mapping, reflection: [...asked, ...retired].slice(0, MAX_RULES) };
}

const keyOfRule = ({ group = '', resource }: ReflectionRule): string => groupResourceKey({ group, resource });

/** Whether the namespace is on record, and the kind named there or one of those that everybody knows of. */
export const recordsKind = (recorded: NamespaceMapping | undefined, kind: GroupResource): boolean =>
  recorded !== undefined &&
  [...(recorded.reflection ?? []), ...DEFAULT_REFLECTION].some(
    (rule) => keyOfRule(rule) === groupResourceKey(kind),
  );
