import { MAX_LENT_NAMESPACES } from '../../api/limits.ts';
import type { NamespaceMappingState, OffloadedNamespace } from '../../api/namespace-offloading.ts';
import type { NamespaceOffer } from '../../api/offer.ts';
import type { NamespaceMapping, VirtualNode } from '../../api/virtual-node.ts';
import type { Documents, WithheldNamespace } from '../protocol/documents.ts';
import { present } from '../../lib/fields.ts';
import { FORBIDDEN_KEYS } from '../../lib/untrusted.ts';
import { readContract } from './own-contract.ts';
import type { BorrowingFacts, BorrowingIntent, DesiredNamespaces } from './facts.ts';

interface DesiredSources {
  intent: BorrowingIntent;
  offloaded: readonly OffloadedNamespace[];
  /** Whether that namespace exists here and may leave the cluster. */
  mayOffload: (namespace: string) => boolean;
  /** What runs over there already: where there are too many, these come first. */
  agreed: readonly NamespaceOffer[];
}

/** Whether people name it, whatever NamespaceOffloadings say. */
export const isNamed = ({ policy, namespaces }: BorrowingIntent, homeNamespace: string): boolean =>
  namespaces.includes(homeNamespace) || (policy?.spec.namespaces ?? []).includes(homeNamespace);

/** What people name by other means stays open, whoever else leaves it. */
const stillNamed = (
  { leaving, ...one }: OffloadedNamespace,
  intent: BorrowingIntent,
): OffloadedNamespace => ({
  ...one,
  ...(leaving === true && !isNamed(intent, one.homeNamespace) && { leaving }),
});

/** What people have named here. Whatever a provider maps beyond these is not used. Pure. */
export function desiredNamespaces({
  intent,
  offloaded,
  mayOffload,
  agreed,
}: DesiredSources): DesiredNamespaces {
  const { policy, namespaces } = intent;
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
    offloaded: new Map(offloaded.map((one) => [one.homeNamespace, stillNamed(one, intent)])),
  };
}

/**
 * The provider's mapping, cut down to what we want, under the names that we want. It comes from a peer: a namespace that
 * nobody here has named must not leave the cluster because a peer has named it. One that asks for a certain name gets
 * this name or none, even from a provider that knows nothing of such names.
 */
export function usedNamespaces(
  offered: readonly NamespaceOffer[],
  desired: DesiredNamespaces,
): NamespaceOffer[] {
  const names = new Set(desired.names);
  return offered.filter(
    ({ homeNamespace, tenantNamespace }) =>
      names.has(homeNamespace) &&
      (remoteNameOf(desired, homeNamespace) ?? tenantNamespace) === tenantNamespace,
  );
}

const remoteNameOf = (desired: DesiredNamespaces, homeNamespace: string): string | undefined =>
  desired.offloaded.get(homeNamespace)?.remoteName;

/** As a VirtualNode holds them, with the rules for their objects. */
export const mappingsOf = (
  used: readonly NamespaceOffer[],
  { offloaded }: DesiredNamespaces,
): NamespaceMapping[] =>
  used.map(({ homeNamespace, tenantNamespace }) => {
    // With the default that the API server fills in; otherwise they would always differ.
    const { reflection = [], leaving } = offloaded.get(homeNamespace) ?? {};
    const rules = reflection.map(({ group = '', ...rule }) => ({ group, ...rule }));
    return {
      homeNamespace,
      tenantNamespace,
      ...(rules.length > 0 && { reflection: rules }),
      ...(leaving && { leaving }),
    };
  });

/** What the agents look after: what they are asked for, and what they have not given up yet. */
const heldBy = (virtualNodes: readonly VirtualNode[]): NamespaceMapping[] =>
  virtualNodes.flatMap(({ spec, status }) => [...(spec.namespaces ?? []), ...(status?.namespaces ?? [])]);

/** What a request says of namespaces. */
interface AskedNamespaces {
  namespaces: string[];
  names?: Record<string, string>;
}

/**
 * A namespace that is no longer wanted is asked for until no agent holds it, so that what runs there can be ended while
 * we still have access. For the same reason a new name is asked for only after the old one was given up.
 */
export function askedNamespaces(
  desired: DesiredNamespaces,
  agreed: readonly NamespaceOffer[],
  virtualNodes: readonly VirtualNode[],
): AskedNamespaces {
  const held = heldBy(virtualNodes);
  const leaving = agreed
    .map(({ homeNamespace }) => homeNamespace)
    .filter((name) => !desired.names.includes(name) && held.some((one) => one.homeNamespace === name));
  const isElsewhere = (homeNamespace: string, remoteName: string): boolean =>
    held.some((one) => one.homeNamespace === homeNamespace && one.tenantNamespace !== remoteName);
  const names = desired.names.flatMap((name): [string, string][] => {
    const remoteName = remoteNameOf(desired, name);
    // No peer reads such a key (lib/untrusted.ts): the name cannot be asked for, so the namespace is not used.
    const isUnsayable = FORBIDDEN_KEYS.has(name);
    return remoteName === undefined || isUnsayable || isElsewhere(name, remoteName)
      ? []
      : [[name, remoteName]];
  });
  return {
    namespaces: [...desired.names, ...leaving].toSorted(),
    ...(names.length > 0 && { names: Object.fromEntries(names) }),
  };
}

/**
 * What we say to a provider. A request stays until nothing that was made for it is left here, so that the agent can end
 * what runs over there. Then it is withdrawn, and the provider cleans up.
 *
 * @param clusterName of this cluster
 * @param virtualNodes those that were made because of this provider
 */
export function documentsOf(
  facts: BorrowingFacts,
  clusterName: string,
  virtualNodes: readonly VirtualNode[],
): Pick<Documents, 'request' | 'acceptance'> {
  const { intent, advertisement, hasBelongings, desired } = facts;
  const isWanted = intent.wanted && advertisement?.metadata.deletionTimestamp === undefined;
  if (!isWanted && !hasBelongings) return {};
  const contract = advertisement?.status?.contract;
  const agreed = readContract(contract)?.namespaces ?? [];
  const asked = isWanted
    ? askedNamespaces(desired, agreed, virtualNodes)
    : { namespaces: agreed.map(({ homeNamespace }) => homeNamespace).toSorted() };
  const { consumerSignature: signature, text = '' } = contract ?? {};
  return {
    request: {
      clusterName,
      ...asked,
      ...(intent.tie === 'Tether' && { tether: true }),
      ...present({ fence: intent.fence }),
      ...joinToken(facts),
    },
    ...(signature !== undefined && { acceptance: { text, signature } }),
  };
}

/** It can be used once, by whoever reads it: it is sent only until it has done its work. */
function joinToken({ intent, received, advertisement }: BorrowingFacts): { joinToken?: string } {
  const isDecided = received.offer != null || advertisement?.status?.contract !== undefined;
  return intent.joinToken === undefined || isDecided ? {} : { joinToken: intent.joinToken };
}

/** Undefined: nothing is known of the namespace yet, or it is neither wanted nor over there. Pure. */
export function mappingStateOf(
  facts: BorrowingFacts,
  homeNamespace: string,
  virtualNodes: readonly VirtualNode[],
): NamespaceMappingState | undefined {
  const { advertisement, desired } = facts;
  const agreed = readContract(advertisement?.status?.contract)?.namespaces ?? [];
  const tenantNamespace = agreed.find((one) => one.homeNamespace === homeNamespace)?.tenantNamespace;
  const isMapped = virtualNodes.some(({ spec }) =>
    spec.namespaces?.some(
      (one) => one.homeNamespace === homeNamespace && one.tenantNamespace === tenantNamespace,
    ),
  );
  const remoteName = remoteNameOf(desired, homeNamespace);
  if (tenantNamespace !== undefined && isMapped && (remoteName ?? tenantNamespace) === tenantNamespace) {
    return { state: 'Mapped', tenantNamespace };
  }
  if (!desired.names.includes(homeNamespace)) return undefined;
  const withheld = saidOf(facts, homeNamespace) ?? misnamed(facts, homeNamespace, remoteName);
  return withheld && stateOf(withheld);
}

const stateOf = ({
  reason,
  ending,
  message = MESSAGES[reason],
}: WithheldNamespace): NamespaceMappingState => ({
  state: 'Withheld',
  reason,
  message,
  ...(ending === true && { ending }),
});

const MESSAGES: Readonly<Record<WithheldNamespace['reason'], string>> = {
  NameTaken: 'the name is taken over there',
  NamingNotAllowed: 'the provider chooses names itself',
};

/** What the provider says, in its own words: people look for them over there. */
function saidOf(
  { received: { grant } }: BorrowingFacts,
  homeNamespace: string,
): WithheldNamespace | undefined {
  const said = grant?.withheld?.find((one) => one.homeNamespace === homeNamespace);
  if (said?.message === undefined) return said;
  return { ...said, message: `the provider says: ${said.message}` };
}

/** It has a tenant, but not under the name that was asked for: a provider may know nothing of such wishes. */
function misnamed(
  { advertisement }: BorrowingFacts,
  homeNamespace: string,
  remoteName: string | undefined,
): WithheldNamespace | undefined {
  if (remoteName === undefined) return undefined;
  const offered = advertisement?.spec.offer.namespaces.find((one) => one.homeNamespace === homeNamespace);
  if (offered === undefined || offered.tenantNamespace === remoteName) return undefined;
  const message = `the provider calls it ${offered.tenantNamespace}, not ${remoteName}, so it is not used`;
  return { homeNamespace, reason: 'NamingNotAllowed', message };
}

/** By name, for each namespace of which something can be said. */
export function mappingStatesOf(
  facts: BorrowingFacts,
  virtualNodes: readonly VirtualNode[],
): ReadonlyMap<string, NamespaceMappingState> {
  const agreed = readContract(facts.advertisement?.status?.contract)?.namespaces ?? [];
  const names = new Set([...facts.desired.names, ...agreed.map(({ homeNamespace }) => homeNamespace)]);
  return new Map(
    [...names].flatMap((name): [string, NamespaceMappingState][] => {
      const state = mappingStateOf(facts, name, virtualNodes);
      return state === undefined ? [] : [[name, state]];
    }),
  );
}
