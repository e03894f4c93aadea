import type { NamespaceMappingState } from '../api/namespace-offloading.ts';

/** What peering knows of the namespaces that it was asked to bring to a provider; borrowing is one. */
export interface Standing {
  /** From caches. Undefined: no word of it from the provider yet. */
  standing(clusterID: string, homeNamespace: string): NamespaceMappingState | undefined;
  /** Whether people name it for that provider by other means, too: its mapping then stays without us. */
  isNamed(clusterID: string, homeNamespace: string): boolean;
  /** Calls back after any answer may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}
