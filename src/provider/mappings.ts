import type { NamespaceMapping } from '../api/virtual-node.ts';

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
