import { isEndpoint } from '../../api/forms.ts';
import { TUNNEL_LIMITS } from '../../api/limits.ts';
import type { GatewayFacts, OwnNetwork } from '../../api/own-network.ts';
import type { NetworkDocument } from '../../api/peer-documents.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import { splitEndpoint } from '../../lib/endpoint.ts';
import {
  contains,
  formatAddress,
  formatPrefix,
  parseAddress,
  prefixesOf,
  tryPrefix,
} from '../../lib/prefix.ts';
import { NEVER_DIALLED } from '../../lib/never-dialled.ts';

const MAX_ENDPOINTS = 8;

export interface DocumentFacts {
  facts: GatewayFacts;
  own: Pick<OwnNetwork, 'pods' | 'external'>;
  /** Absent until the Tunnel is made. */
  tunnel?: Tunnel;
  transit: readonly string[];
  presharedHalf?: string;
}

/** The prefixes that a peer is told: as many as a Tunnel holds. With more, the peer would refuse the whole document. */
function exported(
  own: Pick<OwnNetwork, 'pods' | 'external'>,
  transit: readonly string[],
): { pods: string[]; external: string[]; transit: string[] } {
  const pods = own.pods.slice(0, TUNNEL_LIMITS.pods);
  return { pods, external: [own.external], transit: transit.slice(0, TUNNEL_LIMITS.views - pods.length - 1) };
}

/** The same prefixes in one list. */
export const exportedTo = (
  own: Pick<OwnNetwork, 'pods' | 'external'>,
  transit: readonly string[],
): string[] => Object.values(exported(own, transit)).flat();

/** What we say to one peer. It names the views that are stored, since only these outlive this process. */
export function composeDocument({
  facts,
  own,
  tunnel,
  transit,
  presharedHalf,
}: DocumentFacts): NetworkDocument {
  const views = tunnel?.status?.views ?? [];
  return {
    publicKey: facts.publicKey,
    endpoints: facts.endpoints.slice(0, MAX_ENDPOINTS),
    ...exported(own, transit),
    views: views.map(({ prefix, as }) => ({ prefix, as })),
    ...(presharedHalf !== undefined && { presharedHalf }),
    ...(tunnel?.spec.apiServer && { apiServer: tunnel.spec.apiServer }),
    ...(tunnel?.spec.homeApiServer === 'Forbidden' && { forbidsHomeApiServer: true }),
  };
}

export interface CheckedDocument {
  document: NetworkDocument;
  /** What was left out, and why, in one line each. */
  problems: string[];
}

/**
 * Keeps what makes sense: real prefixes in one spelling, each once, and endpoints that can belong to somebody else. IPAM decides
 * whether a prefix may be used. The form has been checked before.
 */
export function checkDocument(given: NetworkDocument): CheckedDocument {
  const problems: string[] = [];
  const prefixes = (field: string, list: readonly string[]): string[] => {
    const found = list.flatMap((text) => {
      const prefix = tryPrefix(text);
      if (prefix === undefined) problems.push(`${field}: ${text.slice(0, 60)} is not a CIDR`);
      return prefix === undefined ? [] : [formatPrefix(prefix)];
    });
    return [...new Set(found)];
  };
  const endpoints = given.endpoints.filter((text) => {
    const isFit = isDiallable(text);
    if (!isFit) problems.push(`endpoints: ${text.slice(0, 60)} cannot be dialled from here`);
    return isFit;
  });
  const { apiServer, ...rest } = given;
  const document: NetworkDocument = {
    ...rest,
    endpoints: [...new Set(endpoints)],
    pods: prefixes('pods', given.pods),
    external: prefixes('external', given.external),
    transit: prefixes('transit', given.transit),
  };
  if (apiServer === undefined) return { document, problems };
  const address = addressWithin(apiServer.address, document.external);
  if (address !== undefined)
    return { document: { ...document, apiServer: { ...apiServer, address } }, problems };
  problems.push(`apiServer: ${apiServer.address.slice(0, 60)} is not in the external range`);
  return { document, problems };
}

/** The address as it is usually written; undefined where it is none, or outside of all these prefixes. */
function addressWithin(text: string, prefixes: readonly string[]): string | undefined {
  const address = parseAddress(text);
  const isInside = address !== undefined && prefixesOf(prefixes).some((prefix) => contains(prefix, address));
  return isInside ? formatAddress(address) : undefined;
}

function isDiallable(text: string): boolean {
  const endpoint = splitEndpoint(text);
  if (endpoint === undefined || !isEndpoint(text)) return false;
  const address = parseAddress(endpoint.host);
  return address === undefined || !NEVER_DIALLED.contains(address);
}
