import type { AddressPort } from '../../api/tunnel.ts';
import { formatAddress, formatPrefix, type IpFamily, parseAddress, prefixesOf } from '../../lib/prefix.ts';
import type { SetConfig } from '../host/host-config.ts';
import { type Transport, TRANSPORTS } from './names.ts';
import { FAMILIES, WORDS } from './peer.ts';

/** Drops the packet without an answer, and counts it under this name (see `listCounters`). */
export const refuse = (name: string): string => `counter drop comment "${name}"`;

/** The prefixes must not overlap. Adjacent ones are not joined, so that a new prefix changes no other element. */
export function prefixSet(name: string, family: IpFamily, prefixes: readonly string[]): SetConfig {
  const known = prefixesOf(prefixes).filter((prefix) => prefix.family === family);
  const keys = new Set(known.map(formatPrefix));
  return {
    name,
    type: `ipv${family}_addr`,
    interval: true,
    elements: [...keys].map((key) => ({ key })),
  };
}

/** One set for each family. Texts that are no addresses are passed over. */
export function addressSets(
  name: (family: IpFamily) => string,
  addresses: readonly string[],
  families: readonly IpFamily[] = FAMILIES,
): SetConfig[] {
  const parsed = addresses.flatMap((text) => parseAddress(text) ?? []);
  return families.map((family) => {
    const texts = parsed.filter((address) => address.family === family).map(formatAddress);
    const elements = [...new Set(texts)].toSorted().map((key) => ({ key }));
    return { name: name(family), type: `ipv${family}_addr`, interval: false, elements };
  });
}

/**
 * Addresses with ports, in one set for each family and transport that occur. The transport is not part of the key, since nft writes
 * and reads its name by a table of the host (/etc/protocols) that need not be there. Texts that are no addresses are passed over.
 */
export function portSets(
  name: (transport: Transport, family: IpFamily) => string,
  places: readonly AddressPort[],
  families: readonly IpFamily[] = FAMILIES,
): PortSet[] {
  const keys = new Map<string, Set<string>>();
  for (const { address, protocol, port } of places) {
    const parsed = parseAddress(address);
    if (parsed === undefined || !Number.isInteger(port)) continue;
    const kind = `${protocol.toLowerCase()}${parsed.family}`;
    const found = keys.get(kind) ?? new Set();
    keys.set(kind, found.add(`${formatAddress(parsed)} . ${port}`));
  }
  return families.flatMap((family) =>
    TRANSPORTS.flatMap((transport) => {
      const found = keys.get(`${transport}${family}`);
      if (found === undefined) return [];
      const elements = [...found].toSorted().map((key) => ({ key }));
      const type = `ipv${family}_addr . inet_service`;
      return [{ family, transport, set: { name: name(transport, family), type, interval: false, elements } }];
    }),
  );
}

export interface PortSet {
  family: IpFamily;
  transport: Transport;
  set: SetConfig;
}

/** Matches packets to one of the places in the set. */
export const toOneOf = ({ family, transport, set: { name } }: PortSet): string =>
  `${WORDS[family]} daddr . ${transport} dport @${name}`;
