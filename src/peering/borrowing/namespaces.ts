import { MAX_LENT_NAMESPACES } from '../../api/limits.ts';
import type { NamespaceMappingState, OffloadedNamespace } from '../../api/namespace-offloading.ts';
import type { NamespaceOffer } from '../../api/offer.ts';
import type { NamespaceMapping, VirtualNode } from '../../api/virtual-node.ts';
import type { Documents, WithheldNamespace } from '../protocol/documents.ts';
import { FORBIDDEN_KEYS } from '../protocol/validate.ts';
import { readContract } from './decide.ts';
import { type BorrowingWish, type Facts, type WantedNamespaces } from './facts.ts';

interface WantedSources {
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

const remoteNameOf = (wanted: WantedNamespaces, homeNamespace: string): string | undefined =>
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
interface AskedNamespaces {
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

interface RequestContext {
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

/**
 * Where a home namespace stands with a provider. Undefined: nothing is known of it yet, or it is neither wanted nor
 * there. Pure.
 */
export function standingOf(
  facts: Facts,
  homeNamespace: string,
  virtualNodes: readonly VirtualNode[],
): NamespaceMappingState | undefined {
  const { advertisement, wanted } = facts;
  const agreed = readContract(advertisement?.status?.contract)?.namespaces ?? [];
  const tenantNamespace = agreed.find((one) => one.homeNamespace === homeNamespace)?.tenantNamespace;
  const isMapped = virtualNodes.some(({ spec }) =>
    spec.namespaces?.some(
      (one) => one.homeNamespace === homeNamespace && one.tenantNamespace === tenantNamespace,
    ),
  );
  const remoteName = remoteNameOf(wanted, homeNamespace);
  if (tenantNamespace !== undefined && isMapped && (remoteName ?? tenantNamespace) === tenantNamespace) {
    return { state: 'Mapped', tenantNamespace };
  }
  if (!wanted.names.includes(homeNamespace)) return undefined;
  const word = saidOf(facts, homeNamespace) ?? misnamed(facts, homeNamespace, remoteName);
  if (word === undefined) return undefined;
  const { reason, message = MESSAGES[reason] } = word;
  return { state: 'Withheld', reason, message };
}

const MESSAGES: Readonly<Record<WithheldNamespace['reason'], string>> = {
  NameTaken: 'the name is taken over there',
  NamingNotAllowed: 'the provider chooses names itself',
};

/** In the provider's own words, which people look for over there. */
function saidOf({ heard: { grant } }: Facts, homeNamespace: string): WithheldNamespace | undefined {
  const said = grant?.withheld?.find((one) => one.homeNamespace === homeNamespace);
  if (said?.message === undefined) return said;
  return { ...said, message: `the provider says: ${said.message}` };
}

/** It has a tenant, but not under the name that was asked for; a provider may know nothing of such wishes. */
function misnamed(
  { advertisement }: Facts,
  homeNamespace: string,
  remoteName: string | undefined,
): WithheldNamespace | undefined {
  if (remoteName === undefined) return undefined;
  const offered = advertisement?.spec.offer.namespaces.find((one) => one.homeNamespace === homeNamespace);
  if (offered === undefined || offered.tenantNamespace === remoteName) return undefined;
  const message = `the provider calls it ${offered.tenantNamespace}, not ${remoteName}, so it is not used`;
  return { homeNamespace, reason: 'NamingNotAllowed', message };
}

/** Of every namespace that anything can be said of, by name. */
export function standingsOf(
  facts: Facts,
  virtualNodes: readonly VirtualNode[],
): ReadonlyMap<string, NamespaceMappingState> {
  const agreed = readContract(facts.advertisement?.status?.contract)?.namespaces ?? [];
  const names = new Set([...facts.wanted.names, ...agreed.map(({ homeNamespace }) => homeNamespace)]);
  return new Map(
    [...names].flatMap((name): [string, NamespaceMappingState][] => {
      const standing = standingOf(facts, name, virtualNodes);
      return standing === undefined ? [] : [[name, standing]];
    }),
  );
}
