import { MAX_LENT_NAMESPACES } from '../../api/limits.ts';
import type { OffloadedNamespace } from '../../api/namespace-offloading.ts';
import type { NamespaceOffer } from '../../api/offer.ts';
import type { NamespaceMapping, VirtualNode } from '../../api/virtual-node.ts';
import { FORBIDDEN_KEYS } from '../protocol/validate.ts';
import type { BorrowingWish } from './ports.ts';

/** Which home namespaces are to be at one provider, and how. */
export interface WantedNamespaces {
  /** Sorted; no more than a provider takes. */
  readonly names: readonly string[];
  /** Named by people, and not there or the cluster's own. */
  readonly leftOut: readonly string[];
  /** By name: what a NamespaceOffloading says of it besides. */
  readonly offloaded: ReadonlyMap<string, OffloadedNamespace>;
}

export interface WantedSources {
  wish: BorrowingWish;
  offloaded: readonly OffloadedNamespace[];
  /** Whether that namespace exists here and may leave the cluster. */
  mayOffload: (namespace: string) => boolean;
  /** What runs over there already: of too many these come first. */
  agreed: readonly NamespaceOffer[];
}

/** Whether people name it, whatever NamespaceOffloadings say. */
export const isNamed = ({ policy, namespaces }: BorrowingWish, homeNamespace: string): boolean =>
  namespaces.includes(homeNamespace) || (policy?.spec.namespaces ?? []).includes(homeNamespace);

/** What people have named here; what a provider maps beyond these is not used. Pure. */
export function wantedNamespaces({ wish, offloaded, mayOffload, agreed }: WantedSources): WantedNamespaces {
  const { policy, namespaces } = wish;
  const asked = new Set([
    ...(policy?.spec.namespaces ?? []),
    ...namespaces,
    ...offloaded.map(({ homeNamespace }) => homeNamespace),
  ]);
  const there = new Set(agreed.map(({ homeNamespace }) => homeNamespace));
  const rank = (name: string): number => (there.has(name) ? 0 : 1);
  return {
    names: [...asked]
      .filter(mayOffload)
      .toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .slice(0, MAX_LENT_NAMESPACES)
      .toSorted(),
    leftOut: [...asked].filter((name) => !mayOffload(name)).toSorted(),
    offloaded: new Map(offloaded.map((one) => [one.homeNamespace, one])),
  };
}

/**
 * The provider's mapping, cut down to what we want, under the name that we want. It comes from a peer: a namespace that
 * nobody here has named must not leave the cluster because a peer has named it; and one that asks for a certain name
 * gets that or none, also from a provider that knows nothing of names.
 */
export function usedNamespaces(
  offered: readonly NamespaceOffer[],
  wanted: WantedNamespaces,
): NamespaceOffer[] {
  const names = new Set(wanted.names);
  return offered.filter(
    ({ homeNamespace, tenantNamespace }) =>
      names.has(homeNamespace) &&
      (remoteNameOf(wanted, homeNamespace) ?? tenantNamespace) === tenantNamespace,
  );
}

export const remoteNameOf = (wanted: WantedNamespaces, homeNamespace: string): string | undefined =>
  wanted.offloaded.get(homeNamespace)?.remoteName;

/** As a VirtualNode names them, with the rules for their objects. */
export const mappingsOf = (
  used: readonly NamespaceOffer[],
  { offloaded }: WantedNamespaces,
): NamespaceMapping[] =>
  used.map(({ homeNamespace, tenantNamespace }) => {
    // As the API server stores them; else they would differ for ever.
    const rules = (offloaded.get(homeNamespace)?.reflection ?? []).map(({ group = '', ...rule }) => ({
      group,
      ...rule,
    }));
    return { homeNamespace, tenantNamespace, ...(rules.length > 0 && { reflection: rules }) };
  });

/** What the agents look after: asked of them, or not yet given up. */
const heldBy = (virtualNodes: readonly VirtualNode[]): NamespaceMapping[] =>
  virtualNodes.flatMap(({ spec, status }) => [...(spec.namespaces ?? []), ...(status?.namespaces ?? [])]);

/** What a request says of namespaces. */
export interface AskedNamespaces {
  namespaces: string[];
  names?: Record<string, string>;
}

/**
 * A namespace that is no longer wanted is asked for until no agent holds it, so that what runs there is ended while we
 * still may. For the same reason another name is asked for only when the old one is given up.
 */
export function askedNamespaces(
  wanted: WantedNamespaces,
  agreed: readonly NamespaceOffer[],
  virtualNodes: readonly VirtualNode[],
): AskedNamespaces {
  const held = heldBy(virtualNodes);
  const leaving = agreed
    .map(({ homeNamespace }) => homeNamespace)
    .filter((name) => !wanted.names.includes(name) && held.some((one) => one.homeNamespace === name));
  const isElsewhere = (homeNamespace: string, remoteName: string): boolean =>
    held.some((one) => one.homeNamespace === homeNamespace && one.tenantNamespace !== remoteName);
  const names = wanted.names.flatMap((name): [string, string][] => {
    const remoteName = remoteNameOf(wanted, name);
    // A key that no peer reads (protocol/validate.ts); without the word the name cannot be had, and is not used.
    const isUnsayable = FORBIDDEN_KEYS.has(name);
    return remoteName === undefined || isUnsayable || isElsewhere(name, remoteName)
      ? []
      : [[name, remoteName]];
  });
  return {
    namespaces: [...wanted.names, ...leaving].toSorted(),
    ...(names.length > 0 && { names: Object.fromEntries(names) }),
  };
}
