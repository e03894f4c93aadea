import type { VirtualNode } from '../../api/virtual-node.ts';
import type { Documents } from '../protocol/documents.ts';
import { readContract } from './decide.ts';
import type { Facts } from './facts.ts';
import { askedNamespaces } from './wanted.ts';

export interface RequestContext {
  /** Of this cluster. */
  clusterName: string;
  /** Those that were made because of this provider. */
  virtualNodes: readonly VirtualNode[];
}

/**
 * What we say to a provider. A request stays until nothing of it is left here, so that the agent can end what runs
 * over there; then it is withdrawn, and the provider cleans up.
 */
export function documentsOf(
  facts: Facts,
  { clusterName, virtualNodes }: RequestContext,
): Pick<Documents, 'request' | 'acceptance'> {
  const { wish, advertisement, hasBelongings, wanted } = facts;
  const isWanted = wish.wanted && advertisement?.metadata.deletionTimestamp === undefined;
  if (!isWanted && !hasBelongings) return {};
  const contract = advertisement?.status?.contract;
  const agreed = readContract(contract)?.namespaces ?? [];
  const asked = isWanted
    ? askedNamespaces(wanted, agreed, virtualNodes)
    : { namespaces: agreed.map(({ homeNamespace }) => homeNamespace).toSorted() };
  const { consumerSignature: signature, text = '' } = contract ?? {};
  return {
    request: { clusterName, ...asked, ...joinToken(facts) },
    ...(signature !== undefined && { acceptance: { text, signature } }),
  };
}

/** One-time, and worth something to whoever reads it: said only until it has done its work. */
function joinToken({ wish, heard, advertisement }: Facts): { joinToken?: string } {
  const isDecided = heard.offer != null || advertisement?.status?.contract !== undefined;
  return wish.joinToken === undefined || isDecided ? {} : { joinToken: wish.joinToken };
}
