import type { NamespaceOffer } from '../../api/offer.ts';
import type { Documents } from '../protocol/documents.ts';
import { readContract } from './decide.ts';
import type { Facts } from './facts.ts';
import type { BorrowingWish } from './ports.ts';

export interface RequestContext {
  /** Of this cluster. */
  clusterName: string;
  /** Whether that namespace exists here and may leave the cluster. */
  mayOffload: (namespace: string) => boolean;
}

/** What runs in these belongs to a cluster itself. */
const SYSTEM = /^(kube|tributary)-/u;
/** As many as a document may hold (api/limits.ts). */
const MAX_NAMESPACES = 256;

/** A namespace that exists, is not about to go, and holds nobody's control plane. */
export const isOffloadable = (namespace: string, systemNamespace: string): boolean =>
  namespace !== systemNamespace && !SYSTEM.test(namespace);

/** Home namespaces that are wanted over there; what a provider maps beyond these is not used. */
export const namespacesOf = (wish: BorrowingWish, mayOffload: (namespace: string) => boolean): string[] =>
  askedOf(wish).filter(mayOffload).toSorted().slice(0, MAX_NAMESPACES);

/** What a person has named and will miss over there. */
export const leftOutOf = (wish: BorrowingWish, mayOffload: (namespace: string) => boolean): string[] =>
  askedOf(wish)
    .filter((namespace) => !mayOffload(namespace))
    .toSorted();

const askedOf = ({ policy, namespaces }: BorrowingWish): string[] => [
  ...new Set([...(policy?.spec.namespaces ?? []), ...namespaces]),
];

/**
 * The provider's mapping, cut down to what we want. It comes from a peer: a namespace that nobody here has named must
 * not leave the cluster because a peer has named it.
 */
export const usedNamespaces = (
  offered: readonly NamespaceOffer[],
  wanted: readonly string[],
): NamespaceOffer[] => offered.filter(({ homeNamespace }) => wanted.includes(homeNamespace));

/**
 * What we say to a provider. A request stays until nothing of it is left here, so that the agent can end what runs
 * over there; then it is withdrawn, and the provider cleans up.
 */
export function documentsOf(
  facts: Facts,
  context: RequestContext,
): Pick<Documents, 'request' | 'acceptance'> {
  const { wish, advertisement, hasBelongings } = facts;
  const isWanted = wish.wanted && advertisement?.metadata.deletionTimestamp === undefined;
  if (!isWanted && !hasBelongings) return {};
  const contract = advertisement?.status?.contract;
  const terms = readContract(contract);
  const { clusterName, mayOffload } = context;
  const namespaces = isWanted
    ? namespacesOf(wish, mayOffload)
    : (terms?.namespaces ?? []).map(({ homeNamespace }) => homeNamespace).toSorted();
  const { consumerSignature: signature, text = '' } = contract ?? {};
  return {
    request: { clusterName, namespaces, ...joinToken(facts) },
    ...(signature !== undefined && { acceptance: { text, signature } }),
  };
}

/** One-time, and worth something to whoever reads it: said only until it has done its work. */
function joinToken({ wish, heard, advertisement }: Facts): { joinToken?: string } {
  const isDecided = heard.offer != null || advertisement?.status?.contract !== undefined;
  return wish.joinToken === undefined || isDecided ? {} : { joinToken: wish.joinToken };
}
