import type { NamespaceMappingState } from '../../api/namespace-offloading.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { WithheldNamespace } from '../protocol/documents.ts';
import { readContract } from './decide.ts';
import type { Facts } from './facts.ts';
import { remoteNameOf } from './wanted.ts';

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
