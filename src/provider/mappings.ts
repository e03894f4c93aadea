import type { NamespaceMapping } from '../api/virtual-node.ts';

/**
 * The namespaces to look after: those asked for, and those no longer asked for in which pods still live. Without the
 * latter, taking a namespace out of the list would leave its remote pods running with nobody to end them.
 *
 * @param remembered from the VirtualNode's status, so that a restart knows them too
 */
export function effectiveMappings(
  asked: readonly NamespaceMapping[],
  remembered: readonly NamespaceMapping[],
  inUse: (mapping: NamespaceMapping) => boolean,
): NamespaceMapping[] {
  const names = new Set(asked.map(({ homeNamespace }) => homeNamespace));
  const draining = remembered.filter((mapping) => !names.has(mapping.homeNamespace) && inUse(mapping));
  return [...asked, ...draining];
}
