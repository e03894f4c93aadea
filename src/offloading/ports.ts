import type { ReflectionRule } from '../api/reflection.ts';

/** What peering knows of the namespaces that it was asked to bring to a provider; borrowing is one. */
export interface Standing {
  /** From caches. Undefined: no word of it from the provider yet. */
  standing(clusterID: string, homeNamespace: string): NamespaceStanding | undefined;
  /** Whether people name it for that provider by other means, too: its mapping then stays without us. */
  isNamed(clusterID: string, homeNamespace: string): boolean;
  /** Calls back after any answer may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

export type NamespaceStanding =
  | { state: 'Mapped'; tenantNamespace: string }
  | { state: 'Withheld'; reason: 'NameTaken' | 'NamingNotAllowed'; message: string };

/** A namespace that is to go to a provider; peering's NamespaceOffloadings answer with these. */
export interface OffloadedNamespace {
  homeNamespace: string;
  /** The name that its tenant must have, or there shall be none; undefined: as the provider likes. */
  remoteName?: string;
  reflection: readonly ReflectionRule[];
}
